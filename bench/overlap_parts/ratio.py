# SPDX-License-Identifier: BSD-3-Clause
"""The overlap tests of "RDMA Read Based Rendezvous Protocol for MPI over InfiniBand", section 5.1, figures 4 and 5: the ratio
W/T of computing time to total time, over W, for the sender and for the receiver."""

from coop_ab import plot, stats
from coop_ab.reading import number

from . import rounds
from .subnet import COMPARED, LABELS, LOOKS, RATE_MB_PER_S, SETTINGS, command

TITLE = "Computing time / total time (W/T): 1 if the whole transfer overlaps with computing"
SIDES = ("sender", "receiver")
SIZES = (1 << 16, 1 << 18, 1 << 20)
QUICK_SIZES = (1 << 16, 1 << 18)
# The columns of coop_overlap's lines '# point SIZE NUMBER ...'.
COLUMNS = ("hidden", "total_us", "transfer_us", "compute_us", "ratio", "cpu_us", "engine_us", "others_us", "lost_us", "corrected")
LIMITS = rounds.Limits(rounds=16, minutes=3.5, tolerance=0.01, relative=False)


def read(text):
    """Returns the figures W/T of every point, and all columns, {size: [[...] of each point]}."""
    kept, figures = {}, {}
    for line in text.splitlines():
        words = line.split()
        if words[:2] == ["#", "point"] and len(words) == 4 + len(COLUMNS) and int(words[2]) in SIZES:
            size, point = words[2], int(words[3])
            kept.setdefault(size, []).append([number(word) for word in words[4:]])
            figures[f"{size}/{point}"] = number(words[4 + COLUMNS.index("ratio")])
    if not kept or None in figures.values():
        raise ValueError("no lines '# point', or one without a ratio")
    return figures, kept


def jobs(context):
    sizes = QUICK_SIZES if context.quick else SIZES
    count, seconds = (2, 0.01) if context.quick else (8, 0.03)
    # W is the same under all settings: up to twice the time of the message on the rail.
    options = ["--compute", "2", "--rate", str(RATE_MB_PER_S), "--points", str(count), "-m", f"{sizes[0]}:{sizes[-1]}", "-T", f"{seconds:g}"]
    return [rounds.Job(side, SETTINGS[name],
                       command(context.prefix, 2, context.cores,
                               [f"{context.prefix}/libexec/ompi-coop/coop_overlap", "--side", side, *options]), read)
            for side in SIDES for name in COMPARED]


def measure(context):
    return rounds.measure(jobs(context), context.limits(LIMITS), context.seed, context.quiet)


def points(runs, side, setting, size):
    """[{column: values over the rounds} of each point]"""
    result = []
    for sample in runs:
        if sample["job"] == side and sample["setting"] == setting and not sample["error"]:
            for place, row in enumerate(sample["kept"].get(str(size), [])):
                if place == len(result):
                    result.append({name: [] for name in COLUMNS})
                for name, value in zip(COLUMNS, row):
                    if value is not None:
                        result[place][name].append(value)
    return result


def sizes_in(runs):
    """The measured sizes that are also in the paper."""
    return sorted({int(size) for sample in runs for size in sample["kept"] or {}} & set(SIZES))


def table(runs):
    """The lines of the table: W/T for a computing time of once and of twice the message's time on the rail; the same two values
    without the time of the emulated HCA; then the processor time per transfer for the longer computing time."""
    lines = [f"{'side':8} {'size':>8} {'setting':10} {'W/T at 1':>9} {'at 2':>7} {'±':>6} | {'no HCA 1':>8} {'at 2':>7} | "
             f"{'cpu us':>8} {'HCA us':>7} {'others us':>9}"]
    for side in SIDES:
        for size in sizes_in(runs):
            for name in COMPARED:
                found = points(runs, side, name, size)
                if not found:
                    continue
                middle, last = found[len(found) // 2 - 1], found[-1]
                shown = [stats.median(p["ratio"]) for p in (middle, last)]
                without = [stats.median(p["corrected"]) if p["corrected"] else float("nan") for p in (middle, last)]
                cpu = [stats.median(last[column]) if last[column] else float("nan") for column in ("cpu_us", "engine_us", "others_us")]
                lines.append(f"{side:8} {plot.byte_text(size):>8} {name:10} {shown[0]:9.3f} {shown[1]:7.3f} "
                             f"{rounds.half_width(last['ratio']):6.3f} | {without[0]:8.3f} {without[1]:7.3f} | "
                             f"{cpu[0]:8.0f} {cpu[1]:7.0f} {cpu[2]:9.0f}")
    return lines


def draw_line(axes, found, column, label, look):
    found = [p for p in found if p[column]]
    across = [stats.median(p["compute_us"]) for p in found]
    quartiles = [stats.quartiles(p[column]) for p in found]
    axes.plot([0, *across], [0, *[stats.median(p[column]) for p in found]], label=label, markersize=4, linewidth=1.3, **look)
    axes.fill_between(across, [low for low, _ in quartiles], [high for _, high in quartiles], color=look["color"], alpha=0.15,
                      linewidth=0)


def draw_panel(axes, runs, side, size):
    plot.panel_frame(axes)
    for name in COMPARED:
        found = points(runs, side, name, size)
        if found:
            draw_line(axes, found, "ratio", LABELS[name], LOOKS[name])
        if name == "interrupt" and found:
            draw_line(axes, found, "corrected", f"{LABELS[name]}, without the HCA's CPU time",
                      {"color": LOOKS[name]["color"], "linestyle": ":", "marker": "."})
    on_rail_us = size / RATE_MB_PER_S
    axes.plot([0, on_rail_us, 2 * on_rail_us], [0, 1, 1], color="#bbbbbb", linewidth=0.9, zorder=0, label="complete overlap")
    axes.set_xlim(0, 2.1 * on_rail_us)
    axes.set_ylim(0, 1.05)
    axes.set_title(f"{side} computes, {plot.byte_text(size)}", loc="left", fontsize=9.5)
    axes.set_xlabel("computing W, us")
    axes.set_ylabel("W/T (higher is better)")


def draw(figure, runs, _end):
    sizes = sizes_in(runs)
    grid = figure.subplots(len(SIDES), len(sizes), squeeze=False)
    for row, side in zip(grid, SIDES):
        for axes, size in zip(row, sizes):
            draw_panel(axes, runs, side, size)
    grid[0][-1].legend(frameon=False, fontsize=7.5, loc="lower right")


HEIGHT = 7.0
