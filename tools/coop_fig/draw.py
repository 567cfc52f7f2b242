# SPDX-License-Identifier: BSD-3-Clause
"""The figures. A line is the median over the rounds; a band is the middle half of the runs."""

from coop_ab import host, plot, stats

from .protocols import LOOKS

MIB = 1 << 20
COPY, POLL, COMPUTE = "#0072B2", "#DDAA33", "#BBBBBB"


def samples(record, setting, column):
    """{size: values of the rounds}. Column 0 is the benchmark's main figure."""
    found = {}
    for run in record["runs"]:
        for key, row in run["values"] if run["setting"] == setting and not run["error"] else []:
            if column < len(row) and row[column] is not None:
                found.setdefault(key, []).append(row[column])
    return found


def setting_names(record):
    return [setting["name"] for setting in record["settings"]]


def draw_lines(axes, record, column=0, scale=1.0):
    """Draws a line per setting. Returns the sizes."""
    seen = set()
    for name in setting_names(record):
        values = samples(record, name, column)
        if not values:
            continue
        keys = sorted(values)
        seen.update(keys)
        quartiles = [stats.quartiles(values[key]) for key in keys]
        look = LOOKS[name].line()
        axes.plot(keys, [stats.median(values[key]) * scale for key in keys], label=name, **look)
        axes.fill_between(keys, [low * scale for low, _ in quartiles], [high * scale for _, high in quartiles],
                          color=look["color"], alpha=0.15, linewidth=0, zorder=1)
    return sorted(seen)


def size_panel(axes, record, keys, title, label, log=True, ticks=7):
    from matplotlib import ticker

    plot.panel_frame(axes)
    if keys:
        plot.key_axis(axes, {"key": "size"}, keys)
        axes.set_xticks(keys[::max(1, -(-len(keys) // ticks))])
    if log and keys:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(plot.plain))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    axes.set_ylabel(label or record["unit"])
    axes.set_title(title, loc="left", fontsize=9.5)


def legend(axes):
    entries = len(axes.get_legend_handles_labels()[0])
    if entries:
        axes.legend(frameon=False, fontsize=8, ncol=2 if entries > 6 else 1)


def nothing(axes, words):
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, color="#777777")


def by_title(pages, title):
    return next((record for record in pages if record["title"] == title), None)


def draw_bandwidth(page, pages):
    for axes, title in zip(page.subplots(1, 2), ("one way", "both ways")):
        record = by_title(pages, title)
        keys = draw_lines(axes, record, scale=1e-3)
        limit = by_title(pages, "limit")
        if title == "one way" and limit:
            for name, words in (("both", "limit, both copy"), ("one", "limit, one copies")):
                values = samples(limit, name, 0)
                axes.plot(sorted(values), [stats.median(values[key]) * 1e-3 for key in sorted(values)], label=words,
                          **LOOKS[name].line())
        size_panel(axes, record, keys, title, "GB/s (higher is better)", log=False)
        axes.set_ylim(bottom=0)
        legend(axes)


def draw_small(page, pages):
    words = {"half round trip": "us (lower is better)", "64 under way": "MB/s (higher is better)"}
    for axes, record in zip(page.subplots(1, len(pages), squeeze=False)[0], pages):
        size_panel(axes, record, draw_lines(axes, record), record["title"], words[record["title"]])
        legend(axes)


def draw_stack(axes, record, name, first):
    """How one side spends its time. Its columns, from `first`: in MPI, copying, polling, computing."""
    shares = [samples(record, name, first + 1 + i) for i in range(3)]
    known = all(shares[0].get(key) for key in shares[2])
    if not known or not shares[0]:
        shares, parts = [samples(record, name, first), None, shares[2]], (("in MPI", POLL), None, ("computing", COMPUTE))
    else:
        parts = (("copying", COPY), ("polling", POLL), ("computing", COMPUTE))
    keys = sorted(shares[0])
    base = [0.0] * len(keys)
    for values, part in zip(shares, parts):
        if part:
            heights = [stats.median(values[key]) for key in keys]
            axes.bar(range(len(keys)), heights, bottom=base, width=0.8, label=part[0], color=part[1])
            base = [low + height for low, height in zip(base, heights)]
    step = max(1, -(-len(keys) // 6))
    axes.set_xticks(range(0, len(keys), step), [plot.byte_text(key) for key in keys[::step]])
    axes.set_ylim(0, 100)


def draw_profile(page, pages):
    record = pages[0]
    names = setting_names(record)
    for row, name in zip(page.subplots(len(names), 2, squeeze=False), names):
        for axes, side, first in zip(row, ("sender", "receiver"), (1, 5)):
            plot.panel_frame(axes)
            draw_stack(axes, record, name, first)
            axes.set_title(f"{name}, {side}", loc="left", fontsize=9.5)
            axes.set_ylabel("% of the time")
            axes.legend(fontsize=8, loc="lower right")


def draw_bcast(page, pages):
    from matplotlib import ticker

    keys = sorted({key for record in pages for run in record["runs"] for key, _ in run["values"]})
    keys = keys[:1] + keys[len(keys) // 2:len(keys) // 2 + 1] + keys[-1:] if len(keys) > 3 else keys
    chunks = [int(record["title"]) for record in pages]
    for axes, key in zip(page.subplots(1, len(keys), squeeze=False)[0], keys):
        plot.panel_frame(axes)
        top = 0.0
        for name in setting_names(pages[0]):
            values = [samples(record, name, 0).get(key) for record in pages]
            points = [(count, stats.median(value)) for count, value in zip(chunks, values) if value]
            if points:
                axes.plot(*zip(*points), label=name, **LOOKS[name].line())
                top = max([top] + [value for _, value in points])
        axes.set_xscale("log", base=2)
        axes.set_xticks(chunks)
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(plot.plain))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.set_ylim(0, 1.08 * top or 1)
        axes.set_xlabel("chunks")
        axes.set_ylabel("us (lower is better)")
        axes.set_title(plot.byte_text(key), loc="left", fontsize=9.5)
        legend(axes)


def draw_patterns(page, pages):
    for axes, record in zip(page.subplots(1, len(pages), squeeze=False)[0], pages):
        size_panel(axes, record, draw_lines(axes, record), record["title"], "us (lower is better)", ticks=4)
        legend(axes)


def rank_values(record, name, size, column):
    """{rank: percent of the ideal} from the last round that measured the ranks. The columns of run["ranks"]: size,
    rank, copies, ideal copies, milliseconds of copying, ideal milliseconds, copied bytes, operations, milliseconds of
    waiting, milliseconds of computing."""
    for run in record["runs"][::-1]:
        rows = [row for row in run["ranks"] if row[0] == size] if run["setting"] == name and not run["error"] else []
        if rows and None not in [row[column] for row in rows] and sum(row[column] for row in rows) > 0:
            return {int(row[1]): row[column] / row[column + 1] * 100 for row in rows if row[column + 1]}
    return {}


def draw_ranks(axes, record, size, column, title):
    plot.panel_frame(axes)
    found = [(name, rank_values(record, name, size, column)) for name in setting_names(record)]
    found = [(name, values) for name, values in found if values]
    for place, (name, values) in enumerate(found):
        across = [rank + (place - (len(found) - 1) / 2) * 0.8 / len(found) for rank in values]
        axes.bar(across, values.values(), width=0.8 / len(found), label=name, color=LOOKS[name].color)
    if found:
        axes.axhline(100, color=plot.BASE_COLOUR, linestyle="--", linewidth=1.2, label="ideal")
        axes.set_xticks(sorted(found[0][1]))
    else:
        nothing(axes, "no component reported its copies")
    axes.set_xlabel("rank")
    axes.set_ylabel("% of the ideal")
    axes.set_title(title, loc="left", fontsize=9.5)
    legend(axes)


def draw_stencil(page, pages):
    record = pages[0]
    left, middle, right = page.subplots(1, 3)
    keys = draw_lines(left, record)
    size_panel(left, record, keys, "time of an iteration", "us (lower is better)", ticks=4)
    legend(left)
    shown = min(keys, key=lambda key: abs(key - MIB)) if keys else MIB
    draw_ranks(middle, record, shown, 2, f"copies, {plot.byte_text(shown)}")
    draw_ranks(right, record, shown, 4, f"time in copies, {plot.byte_text(shown)}")


def draw_overlap(page, pages):
    for axes, record in zip(page.subplots(1, len(pages), squeeze=False)[0], pages):
        keys = draw_lines(axes, record)
        size_panel(axes, record, keys, f"{record['title']} computes", "% hidden (higher is better)", log=False)
        axes.axhline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
        axes.set_ylim(-20, 110)
        legend(axes)


# name: (title, drawing, height of a row in inches)
FIGURES = {
    "profile": ("How sender and receiver of a blocking message spend their time", draw_profile, 2.3),
    "small": ("Short and medium messages between two ranks of a node", draw_small, 4.0),
    "bandwidth": ("Bandwidth of blocking messages between two ranks of a node", draw_bandwidth, 4.3),
    "bcast": ("Broadcast along a chain of ranks, in chunks", draw_bcast, 4.0),
    "patterns": ("One to all, all to one, and reduce by reduce-scatter and gather", draw_patterns, 4.0),
    "stencil": ("Halo exchange of a 3-D stencil, and the copies of each rank", draw_stencil, 4.0),
    "overlap": ("Share of a transfer that overlaps with computing", draw_overlap, 4.0),
}


def save(name, pages, path):
    title, drawing, height = FIGURES[name]
    rows = len(setting_names(pages[0])) if name == "profile" else 1
    rounds = max((run["round"] for record in pages for run in record["runs"]), default=0)
    ranks = pages[0]["command"][2]
    facts = f"{host.one_line(pages[0]['host'])}; {ranks} ranks, {rounds} rounds"
    with plot.page(path, "coop-figures", height * rows + 0.6, title, facts) as page:
        drawing(page, pages)
