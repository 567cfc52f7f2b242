# SPDX-License-Identifier: BSD-3-Clause
"""Measures how a message inside a node and one between nodes overlap: figure 3 of "Cooperative Rendezvous Protocols for Improved
Performance and Overlap", and the remedy in section II-C of that paper, copying in chunks. Two virtual hosts, two ranks on the first."""

from coop_ab import plot, stats
from coop_ab.errors import BadInput
from coop_ab.reading import number
from coop_ab.settings import Setting

from . import rounds
from .subnet import on_subnet

TITLE = "Receiving inside a node and from another node at once: share of the shorter transfer that overlaps with the longer"
RANKS = 3
RATIO = 24  # a core copies about 6 GB/s, the rail carries 250 MB/s: both messages take about the same time
SIZES = (1 << 20, 1 << 22)
QUICK_SIZES = (1 << 18,)
# The columns of coop_mixed: the first in percent, the others in microseconds.
COLUMNS = ("hidden", "both", "intra", "inter", "intra_end", "inter_end")
LIMITS = rounds.Limits(rounds=16, minutes=2.5, tolerance=3, relative=False)

COOP = "--mca pml coop --mca btl coopib,vader,self"
# With `rget` only the receiver copies, as in the figure; by default both sides of a long message do.
SETTINGS = {setting.name: setting for setting in (
    Setting("coop", COOP),
    Setting("chunks", f"{COOP} --mca pml_coop_protocol rget"),
    Setting("whole", f"{COOP} --mca pml_coop_protocol rget --mca pml_coop_copy_chunk 1g"),
    Setting("openib", "--mca pml ob1 --mca btl openib,vader,self --mca btl_openib_allow_ib 1 --mca btl_openib_warn_default_gid_prefix 0"),
    Setting("ucx", "--mca pml ucx --mca btl self --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=rc_v,sm,self"))}
LABELS = {"coop": "pml/coop", "chunks": "pml/coop, rget,\nin chunks", "whole": "pml/coop, rget,\nin one piece",
          "openib": "ob1,\nopenib, vader", "ucx": "pml/ucx"}


def read(text):
    """Returns the figures {size: percent hidden}, and all columns, {size: [...]}."""
    kept, hosts = {}, []
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["#", "hosts:"]:
            hosts = words[2:]
        if line[:1].isdigit() and len(words) == 1 + len(COLUMNS):
            kept[words[0]] = [number(word) for word in words[1:]]
    if not kept or any(None in row for row in kept.values()):
        raise ValueError("no line of a size, or a column is missing")
    if len(hosts) != RANKS or hosts[0] != hosts[1] or hosts[0] == hosts[2]:
        raise ValueError(f"the ranks are on {' '.join(hosts) or 'unknown hosts'}: ranks 0 and 1 must share a host, rank 2 must be on another")
    return {size: row[0] for size, row in kept.items()}, kept


def jobs(context):
    sizes = QUICK_SIZES if context.quick else SIZES
    program = [f"{context.prefix}/libexec/ompi-coop/coop_mixed", "--ratio", str(RATIO), "-i", "1", "-x", "2", "-b",
               "3" if context.quick else "15"]
    # With fewer cores than polling ranks, idle ranks must yield.
    waiting = ["--mca", "mpi_yield_when_idle", "1"] if context.cores < RANKS else []
    return [rounds.Job(plot.byte_text(size), setting,
                       [*on_subnet(context.prefix, 2, 2), "mpirun", "-n", str(RANKS), "{}", *waiting, *program, "-m", str(size)], read)
            for size in sizes for setting in SETTINGS.values()]


def measure(context):
    if context.cores < 2:
        raise BadInput("mixed: needs two cores: nothing overlaps on a single one")
    return rounds.measure(jobs(context), context.limits(LIMITS), context.seed, context.quiet)


def sizes_in(runs):
    return sorted({int(size) for sample in runs for size in sample["kept"] or {}})


def values(runs, setting, size):
    """{column: values over the rounds}; empty if there are none."""
    rows = [sample["kept"][str(size)] for sample in runs
            if sample["setting"] == setting and not sample["error"] and str(size) in sample["kept"]]
    return dict(zip(COLUMNS, zip(*rows)))


def table(runs):
    lines = [f"{'size':>8} {'setting':8} {'hidden %':>9} {'±':>6} | " + " ".join(f"{name + ' us':>12}" for name in COLUMNS[1:])]
    for size in sizes_in(runs):
        for name in SETTINGS:
            found = values(runs, name, size)
            if found:
                shown = " ".join(f"{stats.median(found[column]):12.0f}" for column in COLUMNS[1:])
                lines.append(f"{plot.byte_text(size):>8} {name:8} {stats.median(found['hidden']):9.1f} "
                             f"{rounds.half_width(found['hidden']):6.1f} | {shown}")
    return lines


BARS = {"intra": ("inside the node, alone", "#DDAA33"), "inter": ("between nodes, alone", "#009E73"), "both": ("both at once", "#0072B2")}


def draw_panel(axes, runs, size):
    plot.panel_frame(axes)
    shown = [(name, found) for name, found in ((name, values(runs, name, size)) for name in SETTINGS) if found]
    for place, (column, (label, color)) in enumerate(BARS.items()):
        across = [at + (place - 1) * 0.27 for at in range(len(shown))]
        middle = [stats.median(found[column]) / 1e3 for _, found in shown]
        quartiles = [stats.quartiles([value / 1e3 for value in found[column]]) for _, found in shown]
        spread = [[max(0.0, at - low) for at, (low, _) in zip(middle, quartiles)],
                  [max(0.0, high - at) for at, (_, high) in zip(middle, quartiles)]]
        axes.bar(across, middle, width=0.25, yerr=spread, color=color, label=label, error_kw={"linewidth": 0.8, "ecolor": "#555555"})
        if column == "both":
            for at, (_, high), (_, found) in zip(across, quartiles, shown):
                axes.annotate(f"{stats.median(found['hidden']):.0f} %", (at, high), xytext=(0, 3), textcoords="offset points",
                              ha="center", fontsize=8)
    axes.set_xticks(range(len(shown)), [LABELS[name] for name, _ in shown], fontsize=8)
    axes.set_ylabel("ms (lower is better)")
    axes.set_title(f"{plot.byte_text(size)} from another node, {plot.byte_text(size * RATIO)} inside the node", loc="left", fontsize=9.5)


def draw(figure, runs, _end):
    sizes = sizes_in(runs)
    for axes, size in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes):
        draw_panel(axes, runs, size)
    figure.axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    for axes in figure.axes:
        axes.margins(y=0.25)


HEIGHT = 4.4
