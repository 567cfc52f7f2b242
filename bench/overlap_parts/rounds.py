# SPDX-License-Identifier: BSD-3-Clause
"""Runs jobs in rounds, every job once in each, in coop-ab's order, until the figures are stable. Records for every run what else
the machine did.

A figure is stable if the 95 % interval of its median over the rounds is no wider than twice the tolerance. There are at least six
rounds, because such an interval needs six, and an even number, because orders come in pairs (coop-ab(1)), unless the limit of
rounds or of time is reached before."""

import dataclasses
import os
import resource
import sys
import time

from coop_ab import session, stats
from coop_ab.run import run
from coop_ab.settings import Setting

LEAST_ROUNDS = 6
RUN_TIMEOUT_S = 120


@dataclasses.dataclass
class Job:
    name: str
    setting: Setting
    command: list
    read: object  # text -> figures: {name: number}, and further data for the record
    folder: str = None


@dataclasses.dataclass
class Limits:
    rounds: int
    minutes: float
    tolerance: float  # of a figure
    relative: bool    # the tolerance is a share of the figure


def machine():
    """Processor seconds: of the system since its start, in total and idle (/proc/stat), and of our own processes that have
    ended."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]  # user nice system idle iowait irq softirq steal
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    hertz = os.sysconf("SC_CLK_TCK")
    return sum(ticks) / hertz, (ticks[3] + ticks[4]) / hertz, own.ru_utime + own.ru_stime


def shares(before, after):
    """Shares of the machine's time between two readings: idle, our own, and other processes."""
    total, idle, own = (late - early for early, late in zip(before, after))
    total = max(total, 1e-9)
    return {"idle": round(idle / total, 4), "own": round(own / total, 4), "others": round(max(0.0, 1 - (idle + own) / total), 4)}


def one_run(job):
    here = os.getcwd()
    before = machine()
    try:
        if job.folder:
            os.chdir(job.folder)
        result = run(job.command, job.setting, RUN_TIMEOUT_S)
    finally:
        os.chdir(here)
    sample = {"job": job.name, "setting": job.setting.name, "wall_s": round(result.wall_s, 3), "machine": shares(before, machine()),
              "error": result.complaint(), "figures": {}, "kept": None}
    if not sample["error"]:
        try:
            sample["figures"], sample["kept"] = job.read(result.out)
        except ValueError as error:
            sample["error"] = str(error)
    if sample["error"]:
        print(f"overlap: left out: {job.name}, {job.setting.name}: {sample['error']}\n{result.tail()}", file=sys.stderr)
    return sample


def figures_of(runs):
    """{(job, setting, figure): its values}"""
    found = {}
    for sample in runs:
        for name, value in sample["figures"].items():
            found.setdefault((sample["job"], sample["setting"], name), []).append(value)
    return found


def half_width(values):
    low, high, _ = stats.median_interval(values)
    return (high - low) / 2


def unstable(runs, limits):
    """Figures whose interval is too wide."""
    wide = []
    for key, values in figures_of(runs).items():
        allowed = limits.tolerance * (abs(stats.median(values)) if limits.relative else 1)
        if len(values) < LEAST_ROUNDS or half_width(values) > allowed:
            wide.append(key)
    return wide


def measure(jobs, limits, seed, quiet):
    """Returns the runs, and a summary of how the measurement ended."""
    orders = session.orders(len(jobs), limits.rounds, seed)
    runs, start, longest, left, number = [], time.monotonic(), 0.0, [], 0
    for number, order in enumerate(orders, 1):
        begin = time.monotonic()
        if number > 1 and begin - start + longest > limits.minutes * 60:
            number -= 1
            break
        for position, index in enumerate(order):
            runs.append({"round": number, "position": position, **one_run(jobs[index])})
        longest = max(longest, time.monotonic() - begin)
        left = unstable(runs, limits)
        if not quiet:
            others = stats.median([sample["machine"]["others"] for sample in runs[-len(jobs):]])
            print(f"[{time.monotonic() - start:4.0f} s] round {number}: {len(left)} of {len(figures_of(runs))} figures not stable "
                  f"yet; {others:.0%} of the machine taken by others", file=sys.stderr, flush=True)
        if not left and number % 2 == 0:
            break
    end = {"rounds": number, "figures": len(figures_of(runs)), "not_stable": [list(key) for key in left], "tolerance": limits.tolerance,
           "relative": limits.relative, "seconds": round(time.monotonic() - start, 1)}
    return runs, end


def describe(end):
    by = f"{end['tolerance']:.0%}" if end["relative"] else f"{end['tolerance']:g}"
    stable = end["figures"] - len(end["not_stable"])
    return f"{end['rounds']} rounds; 95 % interval of the median within ±{by} for {stable} of {end['figures']} figures"


def of_machine(runs):
    """The machine's load in one line: medians over the runs."""
    parts = [f"{name} {stats.median([sample['machine'][name] for sample in runs]):.0%}" for name in ("idle", "own", "others")]
    return f"of the machine's time: {', '.join(parts)}"
