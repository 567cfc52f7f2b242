# SPDX-License-Identifier: BSD-3-Clause
"""The figures, in the style of coop-ab."""

import textwrap

from coop_ab import plot

from . import allgather as gather
from . import allgather_growth as growth
from . import figures, tables

LOOK = {"original": "#555555", "even:4": "#999999", "hsam:2": "#56B4E9", "hsam:4": "#0072B2", "hsam:8": "#003355",
        "bss:4,2": "#E69F00", "bss:8,2": "#D55E00", "bss:12,3": "#009E73",
        "p2p": "#555555", "doubling": "#56B4E9", "bruck": "#E69F00", "d-mod-k": "#0072B2", "crossbar": "#003355", "await": "#CC79A7",
        "ring": "#009E73", "neighbour": "#CC79A7", "best, start 0": "#D55E00", "bound": "#555555", "paper": "#000000"}


def heat_map(axes, result, title, highest):
    image = axes.imshow(result["mb_per_s"], cmap="viridis", vmin=0, vmax=highest, aspect="auto", origin="lower")
    axes.set_xlabel("process")
    axes.set_ylabel("step")
    axes.set_title(f"{title}: {tables.mean_bandwidth(result):.0f} MB/s", loc="left", fontsize=9.5)
    return image


def link_usage(axes, results):
    """Figure 3.5: the number of messages that share each uplink of the first leaf."""
    plot.panel_frame(axes)
    for index, policy in enumerate(("original", "hsam:4")):
        loads = tables.loads(results[f"{policy} step 12"])
        axes.bar([spine + 1 + 0.4 * index - 0.2 for spine in range(len(loads))], loads, width=0.38, color=LOOK[policy], label=policy)
    axes.axhline(1, color=plot.BASE_COLOUR, linewidth=1, linestyle="--")
    axes.set_xlabel("spine block")
    axes.set_ylabel("messages on the cable from leaf 1")
    axes.set_title("step 12: every message to the other leaf", loc="left", fontsize=9.5)
    axes.legend(frameon=False, fontsize=8)


def ring(page, results):
    left, middle, right = page.subplots(1, 3, gridspec_kw={"width_ratios": [1, 1.05, 1.05]})
    link_usage(left, results)
    highest = max(value for name in ("original ring", "hsam:4 ring") for step in results[name]["mb_per_s"] for value in step)
    heat_map(middle, results["original ring"], "original, 1 path", highest)
    image = heat_map(right, results["hsam:4 ring"], "HSAM, 4 paths", highest)
    page.colorbar(image, ax=right, label="MB/s")


def bars(axes, groups, title, base="original"):
    """groups: {group: {policy: time in us}}. Bars are relative to the policy `base` of their group."""
    plot.panel_frame(axes)
    policies = list(max(groups.values(), key=len))  # a group need not have all of them
    width = 0.8 / len(policies)
    for index, policy in enumerate(policies):
        heights = [times.get(policy, 0) / times[base] for times in groups.values()]
        axes.bar([place + (index - len(policies) / 2 + 0.5) * width for place in range(len(groups))], heights, width=width * 0.9,
                 color=LOOK.get(policy, "#CC79A7"), label=policy)
    axes.axhline(1, color=plot.BASE_COLOUR, linewidth=1, linestyle="--")
    axes.set_xticks(range(len(groups)), list(groups), fontsize=7.5 if len(groups) < 12 else 6.5)
    axes.set_ylabel(f"time, {base} = 1")
    axes.set_title(title, loc="left", fontsize=9.5)


def legend(axes):
    """Draws the legend above the bars."""
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])
    axes.legend(frameon=False, fontsize=7.5, ncol=8, loc="upper left")


def collectives(page, results):
    panels = page.subplots(len(figures.COLLECTIVES), 1)
    for axes, pattern in zip(panels, figures.COLLECTIVES):
        groups = {f"{ranks} {mapping}": {policy: tables.settled_us(results[f"{pattern} {ranks} {mapping} {policy}"]) for policy in tables.policies_in(results)}
                  for ranks in figures.RANKS for mapping in figures.MAPPINGS}
        bars(axes, groups, f"{pattern}, {figures.COLLECTIVES[pattern]}")
    legend(panels[0])


def grouped(page, results, time_us=tables.settled_us):
    groups = {}
    for name, result in results.items():
        group, policy = name.split(" | ")
        groups.setdefault(group, {})[policy] = time_us(result)
    axes = page.subplots(1, 1)
    axes.margins(x=0.01)
    width = max(10, min(15, 170 // len(groups)))
    bars(axes, {textwrap.fill(group, width): times for group, times in groups.items()}, "")
    legend(axes)


def allgather(page, results):
    groups = gather.paper_times(results)
    for row, times in groups.items():
        if row in gather.PAPER:
            paper = gather.PAPER[row]
            times["paper"] = times["p2p"] * (1 / paper if row.endswith(" new") else 1 + paper / 100)
    axes = page.subplots(1, 1)
    axes.margins(x=0.01)
    bars(axes, {textwrap.fill(row, 8): times for row, times in groups.items()}, "", "p2p")
    axes.set_ylim(0, 2.4)  # the ring takes several times as long with 4 B
    axes.legend(fontsize=7.5, ncol=8, loc="upper left", framealpha=1, edgecolor="none")


def allgather_growth(page, results):
    """The paper's figure 7a: the times, and by how much RDMA is faster."""
    times = growth.growth_times(results)
    left, right = page.subplots(1, 2)
    for axes in (left, right):
        plot.panel_frame(axes)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(list(times), [str(ranks) for ranks in times])
        axes.set_xlabel("processes")
    for kind in growth.KINDS:
        left.plot(list(times), [of[kind] for of in times.values()], label=kind, color=LOOK[kind], marker="o", markersize=4)
    left.set_ylabel("us")
    left.legend(frameon=False)
    right.plot(list(times), [of["p2p"] - min(of["doubling"], of["ring"]) for of in times.values()], color=LOOK["ring"], marker="o", markersize=4)
    right.set_ylabel("us saved by RDMA")


def allgather_scale(page, results):
    against_the_bound(page, gather.scale_shares(results))


def allgather_hosts(page, results):
    against_the_bound(page, growth.hosts_shares(results))


def against_the_bound(page, shares):
    panels = page.subplots(len(gather.SIZES), 1)
    for axes, size in zip(panels, gather.SIZES):
        bars(axes, {row.removesuffix(f" {size}"): {"bound": 1} | found for row, (_, found) in shares.items() if row.endswith(f" {size}")}, size, "bound")
    panels[0].set_yscale("log")
    panels[0].legend(frameon=False, fontsize=7.5, ncol=8, loc="upper left")


def save(draw, results, path, title, height):
    with plot.page(path, "coop-sim", height, title) as page:
        draw(page, results)
