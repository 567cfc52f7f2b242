# SPDX-License-Identifier: BSD-3-Clause
"""Figures of comparisons that a program of bench/ has measured with coop-ab: a panel for each. A line is the median over the rounds; a band is
the middle half of the runs."""

import os

from coop_ab import host, plot, record as records
from coop_ab.errors import BadInput
from coop_ab.summary import summarise

from .protocols import Look

COLUMNS = 3
OTHER = Look("#CC79A7", "P")


def load(folder, figure, names):
    """The records of the files FIGURE-NAME.json in the folder, in the order of the names; those that are missing are left out."""
    found = [records.load(path) for path in (f"{folder}/{figure}-{name}.json" for name in names) if os.path.exists(path)]
    if not found:
        raise BadInput(f"there is no file {figure}-*.json in '{folder}': bench/{figure} measures and writes them")
    return found


def panel(axes, record, looks, label):
    from matplotlib import ticker

    rows = summarise(record, 0.03)["rows"]
    plot.panel_frame(axes)
    for name in [setting["name"] for setting in record["settings"]]:
        keys, medians, low, high = plot.columns(rows, name, "median", "q1", "q3")
        look = looks.get(name, OTHER).line()
        axes.fill_between(keys, low, high, color=look["color"], alpha=0.15, linewidth=0, zorder=1)
        axes.plot(keys, medians, label=name, **look)
    keys = [row["key"] for row in rows]
    if keys:
        plot.key_axis(axes, record, keys)
        axes.set_xlabel(label)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(plot.plain))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
        axes.legend(frameon=False, fontsize=8)
    axes.set_ylabel(f"{record['unit']} ({record['better']} is better)")
    axes.set_title(record["title"], loc="left", fontsize=9.5)


def save(pages, path, title, looks, label):
    columns = min(COLUMNS, len(pages))
    rows = -(-len(pages) // columns)
    rounds = sorted({record["rounds"] for record in pages})
    facts = f"{host.one_line(pages[0]['host'])}; {' or '.join(map(str, rounds))} rounds"
    with plot.page(path, "coop-figures", 3.6 * rows + 0.6, title, facts) as page:
        panels = list(page.subplots(rows, columns, squeeze=False).flat)
        for axes, record in zip(panels, pages):
            panel(axes, record, looks, label)
        for axes in panels[len(pages):]:
            axes.axis("off")
