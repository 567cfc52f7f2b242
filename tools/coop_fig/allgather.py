# SPDX-License-Identifier: BSD-3-Clause
"""The figure of MPI_Allgather: time over the size of a block, a panel for each comparison that bench/allgather has measured with
coop-ab. A line is the median over the rounds; a band is the middle half of the runs."""

import glob

from coop_ab import host, plot, record as records
from coop_ab.errors import BadInput
from coop_ab.summary import summarise

from .protocols import Look

NAME = "allgather"
TITLE = "MPI_Allgather by coll/rdmaag and by other components"
COLUMNS = 3

LOOKS = {
    "rdmaag": Look("#000000", "*"),
    "coop": Look("#0072B2", "o"),
    "ob1": Look("#555555", "o", "--", True),
    "ring": Look("#D55E00", "v", "--", True),
    "ucx": Look("#999999", "s", "--", True),
    "han": Look("#009E73", "D", "--", True),
    "rdmaag_1": Look("#999999", "*"), "rdmaag_2": Look("#555555", "*"), "rdmaag_4": Look("#000000", "*"),
    "coop_1": Look("#56B4E9", "o", "--"), "coop_2": Look("#0072B2", "o", "--"), "coop_4": Look("#003355", "o", "--"),
}
OTHER = Look("#CC79A7", "P")


def load(folder):
    found = [records.load(path) for path in sorted(glob.glob(f"{folder}/allgather-*.json"))]
    if not found:
        raise BadInput(f"there is no file allgather-*.json in '{folder}': bench/allgather measures and writes them")
    return found


def panel(axes, record):
    from matplotlib import ticker

    rows = summarise(record, 0.03)["rows"]
    plot.panel_frame(axes)
    for name in [setting["name"] for setting in record["settings"]]:
        keys, medians, low, high = plot.columns(rows, name, "median", "q1", "q3")
        look = LOOKS.get(name, OTHER).line()
        axes.fill_between(keys, low, high, color=look["color"], alpha=0.15, linewidth=0, zorder=1)
        axes.plot(keys, medians, label=name, **look)
    keys = [row["key"] for row in rows]
    if keys:
        plot.key_axis(axes, record, keys)
        axes.set_xlabel("size of a block")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(plot.plain))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
        axes.legend(frameon=False, fontsize=8)
    axes.set_ylabel(f"{record['unit']} ({record['better']} is better)")
    axes.set_title(record["title"], loc="left", fontsize=9.5)


def save(pages, path):
    columns = min(COLUMNS, len(pages))
    rows = -(-len(pages) // columns)
    rounds = sorted({record["rounds"] for record in pages})
    facts = f"{host.one_line(pages[0]['host'])}; {' or '.join(map(str, rounds))} rounds"
    with plot.page(path, "coop-figures", 3.6 * rows + 0.6, TITLE, facts) as page:
        panels = list(page.subplots(rows, columns, squeeze=False).flat)
        for axes, record in zip(panels, pages):
            panel(axes, record)
        for axes in panels[len(pages):]:
            axes.axis("off")
