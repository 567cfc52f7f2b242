# SPDX-License-Identifier: BSD-3-Clause
"""The time that two programs spend in MPI on four virtual hosts, one rank each, measured with the library coop_wait: HPL, the
solver of Debian's HPC Challenge ("RDMA Read Based Rendezvous Protocol for MPI over InfiniBand", section 5.2, gives the share of
MPI_Wait in it), and coop_stencil, a halo exchange with computing between posting and waiting."""

import gzip
import os
import re
import shutil
import subprocess

from coop_ab import plot, stats
from coop_ab.errors import BadInput

from . import rounds
from .subnet import COMPARED, LABELS, SETTINGS, command

TITLE = "Time in MPI, four virtual hosts, mean of the ranks"
RANKS = 4
LIMITS = rounds.Limits(rounds=10, minutes=3.5, tolerance=0.05, relative=True)
HALO_BYTES, HALO_INTERIOR_US = 1 << 20, 10000
# The columns of coop_wait's lines '# mpi PART RANK ...'.
COLUMNS = ("elapsed", "wait", "blocking", "testing", "starting", "collective", "calls")
MPI = COLUMNS[1:6]
HPCC_EXAMPLE = "/usr/share/doc/hpcc/examples/_hpccinf.txt"


def read(part):
    """Returns a function that reads the lines '# mpi PART': the figure is the elapsed time; it and all columns are means over the ranks."""
    def reader(text):
        rows = [[float(word) for word in found.split()] for found in re.findall(rf"^# mpi {part} +\d+ (.*)$", text, re.M)]
        if len(rows) != RANKS or any(len(row) != len(COLUMNS) for row in rows):
            raise ValueError(f"{len(rows)} lines '# mpi {part}', expected {RANKS} with {len(COLUMNS)} columns each")
        mean = {name: sum(values) / len(values) for name, values in zip(COLUMNS, zip(*rows))}
        if mean["elapsed"] <= 0:
            raise ValueError(f"part '{part}' took no time")
        return {"elapsed": mean["elapsed"]}, mean
    return reader


def hpcc_input(folder, order, top):
    opener, path = (open, HPCC_EXAMPLE) if os.path.exists(HPCC_EXAMPLE) else (gzip.open, HPCC_EXAMPLE + ".gz")
    with opener(path, "rt") as file:
        example = file.read()
    script = os.path.join(top, "test/mpi/foreign/hpccinf.awk")
    made = subprocess.run(["awk", "-f", script, "-v", f"n={order}", "-v", "nb=64", "-v", "p=2", "-v", "q=2"], input=example, text=True,
                          capture_output=True, check=True)
    with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="utf-8") as file:
        file.write(made.stdout)


def jobs(context):
    if not shutil.which("hpcc"):
        raise BadInput("hpcc is not installed: apt-get install hpcc")
    hpcc_input(context.scratch, 400 if context.quick else 1000, context.top)
    halo = [f"{context.prefix}/libexec/ompi-coop/coop_stencil", "-m", str(HALO_BYTES), "--interior", str(HALO_INTERIOR_US), "-x", "2", "-i",
            "2" if context.quick else "10", "-b", "2" if context.quick else "5"]
    programs = {"HPL": (["hpcc"], "split", ["--wdir", context.scratch]), "halo": (halo, "all", [])}
    return [rounds.Job(name, SETTINGS[setting], command(context.prefix, RANKS, context.cores, program, profiled=True, options=options),
                       read(part), context.scratch)
            for name, (program, part, options) in programs.items() for setting in COMPARED]


def measure(context):
    return rounds.measure(jobs(context), context.limits(LIMITS), context.seed, context.quiet)


def medians(runs, job, setting):
    """{column: median over the rounds}, or None."""
    kept = [sample["kept"] for sample in runs if sample["job"] == job and sample["setting"] == setting and not sample["error"]]
    return {name: stats.median([row[name] for row in kept]) for name in COLUMNS} if kept else None


def names(runs):
    return list(dict.fromkeys(sample["job"] for sample in sorted(runs, key=lambda sample: sample["job"])))


def table(runs):
    lines = [f"{'program':8} {'setting':10} " + " ".join(f"{name + ' s':>12}" for name in (*COLUMNS[:6], "in MPI"))]
    for job in names(runs):
        for setting in COMPARED:
            found = medians(runs, job, setting)
            if found:
                shown = [found[name] for name in COLUMNS[:6]] + [sum(found[name] for name in MPI)]
                lines.append(f"{job:8} {setting:10} " + " ".join(f"{value:12.3f}" for value in shown))
    return lines


COLOURS = {"wait": "#0072B2", "blocking": "#D55E00", "testing": "#DDAA33", "starting": "#009E73", "collective": "#CC79A7"}
WORDS = {"wait": "MPI_Wait…", "blocking": "blocking calls", "testing": "MPI_Test…, MPI_Iprobe", "starting": "MPI_Isend, MPI_Irecv",
         "collective": "collectives"}


def draw(figure, runs, _end):
    for axes, job in zip(figure.subplots(1, len(names(runs)), squeeze=False)[0], names(runs)):
        plot.panel_frame(axes)
        shown = [(setting, medians(runs, job, setting)) for setting in COMPARED]
        shown = [(setting, found) for setting, found in shown if found]
        base = [0.0] * len(shown)
        for kind in MPI:
            heights = [found[kind] for _, found in shown]
            axes.bar(range(len(shown)), heights, bottom=base, width=0.7, color=COLOURS[kind], label=WORDS[kind])
            base = [low + height for low, height in zip(base, heights)]
        rest = [found["elapsed"] - low for (_, found), low in zip(shown, base)]
        axes.bar(range(len(shown)), rest, bottom=base, width=0.7, color="#dddddd", label="not in MPI")
        axes.set_xticks(range(len(shown)), [LABELS[setting] for setting, _ in shown], fontsize=8)
        axes.set_ylabel("s (lower is better)")
        axes.set_title(job, loc="left", fontsize=9.5)
    figure.axes[-1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


HEIGHT = 4.2
