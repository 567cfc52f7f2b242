# SPDX-License-Identifier: BSD-3-Clause
"""Plots: per comparison one row of two panels, the values on the left and the ratio to the base on the right.
Colours are from Okabe and Ito, for colour-blind readers. Markers differ too, for prints in grey."""

import contextlib
import os

from . import host
from .errors import BadInput
from .summary import names

ENDINGS = (".svg", ".png", ".pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "os^Dv<"
BASE_COLOUR = "#555555"
TITLE = {"x": 0.01, "ha": "left", "fontsize": 11, "fontweight": "bold"}
FACTS = {"x": 0.99, "ha": "right", "fontsize": 7.5, "color": "#777777"}
SUBTITLE = {"loc": "left", "fontsize": 8.5, "color": "#444444"}
MISSING = "Python's matplotlib is missing: install the package python3-matplotlib"


def available():
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def check_path(path):
    if os.path.splitext(path)[1] not in ENDINGS:
        raise BadInput(f"--plot '{path}': the name must end in {', '.join(ENDINGS)}")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise BadInput(f"--plot '{path}': there is no folder '{folder}'")


def style(record, name):
    if name == record["base"]:
        return {"color": BASE_COLOUR, "marker": "o", "mfc": "white", "markersize": 7, "linestyle": "--",
                "zorder": 2}  # a ring, still visible around the dot of a setting with the same value
    index = names(record).index(name) % len(COLOURS)
    return {"color": COLOURS[index], "marker": MARKERS[index], "markersize": 4, "linestyle": "-", "zorder": 3}


def byte_text(value, _position=None):
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            break
        value /= 1024
    else:
        unit = "GiB"
    return f"{value:g} {unit}"


def key_axis(axes, record, keys):
    """Sizes are powers of two. There are at most seven ticks, such as 1 B, 64 B, 4 KiB ..."""
    from matplotlib import ticker

    axes.set_xscale("log", base=2)
    if record["key"] == "size":
        axes.set_xlabel("message size")
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(byte_text))
    else:
        axes.set_xlabel(record["key"])
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    step = max(1, -(-len(keys) // 7))
    axes.set_xticks(keys[::step])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.margins(x=0.03)


def panel_frame(axes):
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def plain(value, _position=None):
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def columns(rows, name, *fields):
    """The keys, and for each field its values, of the rows that have all fields."""
    kept = [row for row in rows if None not in [row["settings"][name][field] for field in fields]]
    return [row["key"] for row in kept], *[[row["settings"][name][field] for row in kept] for field in fields]


def values_over_size(axes, record, summary):
    from matplotlib import ticker

    for name in names(record)[::-1]:
        keys, medians, q1, q3 = columns(summary["rows"], name, "median", "q1", "q3")
        look = style(record, name)
        axes.fill_between(keys, q1, q3, color=look["color"], alpha=0.22, linewidth=0, zorder=1)
        axes.plot(keys, medians, label=name, linewidth=1.4, **look)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high / low < 200:  # decades alone would give only one or two labels
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(plain))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    axes.legend(*[part[::-1] for part in axes.get_legend_handles_labels()], frameon=False, loc="best")


def ratio_scale(axes, low, high):
    """Linear and at least ±10 % around 1, so that noise does not look large; logarithmic where factors are large."""
    from matplotlib import ticker

    low, high = min(low, 0.9), max(high, 1.1)
    if high / low > 4:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(plain))
        axes.set_ylim(low / 1.15, high * 1.15)
    else:
        edge = 0.05 * (high - low)
        axes.set_ylim(low - edge, high + edge)


def ratio_frame(axes, record, summary):
    tolerance = summary["tolerance"]
    axes.axhspan(1 / (1 + tolerance), 1 + tolerance, color="#eeeeee", linewidth=0, zorder=0)
    axes.axhline(1, color=BASE_COLOUR, linewidth=1.2, linestyle="--", zorder=2)
    axes.set_ylabel(f"ratio to {record['base']} (above 1: better)")


def ratio_over_size(axes, record, summary):
    extremes = []
    for name in names(record)[:-1]:
        keys, ratios, low, high = columns(summary["rows"], name, "ratio", "low", "high")
        look = style(record, name)
        axes.fill_between(keys, low, high, color=look["color"], alpha=0.22, linewidth=0, zorder=1)
        axes.plot(keys, ratios, label=name, linewidth=1.4, **look)
        extremes += low + high
    ratio_scale(axes, min(extremes, default=1), max(extremes, default=1))


def single_values(axes, record):
    """Without sizes: every run is a dot, the median a bar."""
    from . import stats

    shown = names(record)
    for place, name in enumerate(shown):
        values = [run["values"][0][1] for run in record["runs"] if run["setting"] == name and run["values"]]
        # Spread sideways in the order of the runs, so that equal values stay visible and drift shows.
        across = [place + 0.3 * (i / max(1, len(values) - 1) - 0.5) for i in range(len(values))]
        look = style(record, name)
        axes.plot(across, values, linestyle="none", marker=look["marker"], markersize=5, alpha=0.7,
                  color=look["color"], mfc=look.get("mfc", look["color"]))
        if values:
            axes.plot([place - 0.25, place + 0.25], [stats.median(values)] * 2, color=look["color"], linewidth=2.2)
    axes.set_xticks(range(len(shown)), shown)
    axes.set_xlim(-0.6, len(shown) - 0.4)
    low, high = axes.get_ylim()
    pad = max(0, 0.1 * abs(high + low) / 2 - (high - low)) / 2  # differences below 10 % should look small
    axes.set_ylim(low - pad, high + pad)


def single_ratio(axes, record, summary):
    others, extremes = names(record)[:-1], []
    for place, name in enumerate(others):
        _, ratios, low, high = columns(summary["rows"], name, "ratio", "low", "high")
        if not ratios:
            continue
        look = style(record, name)
        axes.errorbar([place], ratios, yerr=[[ratios[0] - low[0]], [high[0] - ratios[0]]], capsize=6, markersize=7,
                      linewidth=1.8, color=look["color"], marker=look["marker"])
        axes.annotate(f"{ratios[0]:.3f}", (place, ratios[0]), textcoords="offset points", xytext=(12, 7))
        extremes += low + high
    ratio_scale(axes, min(extremes, default=1), max(extremes, default=1))
    axes.set_xticks(range(len(others)), others)
    axes.set_xlim(-0.6, len(others) - 0.4)


def draw_row(left, right, record, summary):
    sized = len(summary["rows"]) > 1
    keys = [row["key"] for row in summary["rows"]]
    unit, better = record["unit"], record["better"]
    for axes in (left, right):
        panel_frame(axes)
    if sized:
        values_over_size(left, record, summary)
        ratio_over_size(right, record, summary)
        for axes in (left, right):
            key_axis(axes, record, keys)
    else:
        single_values(left, record)
        single_ratio(right, record, summary)
    left.set_ylabel(f"{unit} ({better} is better)" if unit else f"{better} is better")
    ratio_frame(right, record, summary)
    marks = ("line", "band", "middle half of the runs") if sized else ("bar", "dots", "the runs")
    left.set_title(f"{marks[0]}: median; {marks[1]}: {marks[2]}", **SUBTITLE)
    marks = ("line", "band") if sized else ("dot", "bar")
    right.set_title(f"{marks[0]}: median of {record['rounds']} rounds; {marks[1]}: its 95 % interval; grey: "
                    f"±{summary['tolerance'] * 100:g} %", **SUBTITLE)


@contextlib.contextmanager
def page(path, program, height, title="", facts=""):
    """Yields an empty page and writes it to the path at the end. The facts are small print below the drawing."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"font.size": 9, "svg.hashsalt": program, "axes.edgecolor": "#888888"})
    figure = pyplot.figure(figsize=(11, height), constrained_layout=True)
    try:
        if title:
            figure.suptitle(title, **TITLE)
        if facts:
            figure.supxlabel(facts, **FACTS)
        yield figure
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.endswith(".svg") else None)
    except OSError as error:
        raise BadInput(f"cannot write '{path}': {error.strerror}") from None
    finally:
        pyplot.close(figure)


def save(comparisons, path):
    """Draws one row of panels for each (record, summary)."""
    with page(path, "coop-ab", 4.1 * len(comparisons)) as figure:
        rows = figure.subfigures(len(comparisons), 1, squeeze=False, hspace=0.03)[:, 0]
        for row, (record, summary) in zip(rows, comparisons):
            title = record["title"] + (f" (incomplete: {summary['incomplete']})" if summary["incomplete"] else "")
            row.suptitle(title, **TITLE)
            row.supxlabel(host.one_line(record["host"]), **FACTS)
            draw_row(*row.subplots(1, 2, gridspec_kw={"wspace": 0.06}), record, summary)
