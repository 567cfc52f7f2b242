# SPDX-License-Identifier: BSD-3-Clause
"""The figure of automatic path migration: what it costs by number of queue pairs, with plain verbs on a software subnet (chapter 9 of the
dissertation, 9.4 to 9.11). A line is the median of the rounds, a band their middle half."""

import dataclasses
import sys
import time

from coop_ab import host, plot, record as records, session, stats
from coop_ab.settings import Setting

from . import draw
from .measure import AllColumns
from .protocols import Look
from .subnet import tool

NAME = "apm"
TITLE = "Automatic path migration by number of queue pairs"
RUN_TIMEOUT_S = 300
BLUE, ORANGE, GREEN = Look("#0072B2", "o"), Look("#D55E00", "^"), Look("#009E73", "s")


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    unit: str
    log: bool
    scale: float     # from the benchmark's unit
    lines: tuple     # (name, column of coop_apm, look)


PANELS = (
    Panel("from INIT to RTS", "ms", True, 1e-3, (("without alternate path", 0, BLUE), ("with", 1, ORANGE))),
    Panel("transitions", "ms", True, 1e-3, (("Migrated to Armed", 2, BLUE), ("Armed to Migrated", 3, ORANGE))),
    Panel("one way, 128 bytes", "us", False, 1.0, (("alone", 4, GREEN), ("while arming", 5, BLUE), ("while moving", 6, ORANGE))),
    Panel("computing", "ms", False, 1.0, (("alone", 7, GREEN), ("while arming", 8, BLUE), ("while moving", 9, ORANGE))))


def command(options):
    most = 16 if options.quick else 2048
    return [tool(options.bench), "run", "--hosts", "2", "--ports", "2", "--latency", "1us", "--", options.mpirun, "-n", "2", "--oversubscribe",
            "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "mpi_yield_when_idle", "1", "{}", f"{options.bench}/coop_apm", "-q", str(most),
            "-n", "1"]


def measure(options):
    """The record, and the number of failed runs."""
    setting = Setting("coop_apm", "")
    record = records.new(command(options), [setting], setting.name, AllColumns(), options.seed, options.rounds, RUN_TIMEOUT_S)
    record.update({"title": NAME, "unit": "us", "better": "lower", "key": "queue pairs"})
    start, longest, failures = time.monotonic(), 0.0, 0
    for number in range(1, options.rounds + 1):
        begin = time.monotonic()
        if number > 1 and begin - start + longest > options.minutes * 60:
            print(f"coop-figures: {number - 1} of {options.rounds} rounds fit into {options.minutes:g} minutes", file=sys.stderr)
            break
        sample, _, details = session.one_sample(record, setting, AllColumns())
        record["runs"].append({"round": number, "position": 0, **sample})
        if sample["error"]:
            failures += 1
            print(f"coop-figures: left out: {details}", file=sys.stderr)
        longest = max(longest, time.monotonic() - begin)
        if not options.quiet:
            print(f"[{time.monotonic() - start:4.0f} s] round {number}  apm", file=sys.stderr, flush=True)
    record["complete"] = True
    return [record], failures


def lines(record, panel):
    """(name, {queue pairs: samples in the panel's unit}, look)"""
    for name, column, look in panel.lines:
        found = draw.samples(record, "coop_apm", column)
        if found:
            yield name, {key: [value * panel.scale for value in values] for key, values in found.items()}, look


def save(pages, path):
    record, = pages
    rounds = max(run["round"] for run in record["runs"])
    with plot.page(path, "coop-figures", 7.0, TITLE, f"{host.one_line(record['host'])}; {rounds} rounds") as page:
        for axes, panel in zip(page.subplots(2, 2, squeeze=False).flat, PANELS):
            plot.panel_frame(axes)
            for name, values, look in lines(record, panel):
                keys = sorted(values)
                style = look.line()
                axes.fill_between(keys, *zip(*(stats.quartiles(values[key]) for key in keys)), color=style["color"], alpha=0.15, linewidth=0, zorder=1)
                axes.plot(keys, [stats.median(values[key]) for key in keys], label=name, **style)
            axes.set_xscale("log", base=2)
            if panel.log:
                axes.set_yscale("log")
            else:
                axes.set_ylim(bottom=0)
            axes.set_xlabel("queue pairs")
            axes.set_ylabel(panel.unit)
            axes.set_title(panel.title, loc="left", fontsize=9.5)
            draw.legend(axes)
