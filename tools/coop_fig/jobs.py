# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks of each figure, with their options and settings."""

import dataclasses

from coop_ab.settings import Setting

from .protocols import SETTINGS

ALL = tuple(SETTINGS)
SMALL = ("ob1", "ucx", "hybrid")
STOCK_AND_MAIN = ("ob1", "ucx", "rget", "rput", "coop", "hybrid")
BY_PATTERN = ("ob1", "ucx", "rget", "rput", "coop", "coop_coll", "hybrid")
BY_LOAD = ("ob1", "rget", "rput", "coop", "coop_load", "hybrid")
CHUNKS = (1, 4, 16, 64)
LIMITS = (Setting("both", ""), Setting("one", "--one"))


@dataclasses.dataclass
class Job:
    """One comparison. The benchmark prints lines `SIZE VALUE ...`; all columns are kept."""

    name: str
    program: str
    options: list
    ranks: int
    settings: tuple
    limit: bool = False  # the settings are options of the program and choose no component

    def command(self, mpirun, bench, cores):
        placement = ["--bind-to", "core"] if self.ranks <= cores else ["--oversubscribe"]
        start = [mpirun, "-n", str(self.ranks), *placement]
        program = [f"{bench}/{self.program}", *self.options]
        return start + (["--mca", "pml", "ob1", *program, "{}"] if self.limit else ["{}", *program])


def sizes(low, high, seconds):
    return ["-m", f"{low}:{high}", "-T", f"{seconds:g}"]


def figure_jobs(quick, ranks):
    """{figure: its jobs}. Except in `small`, all sizes use a rendezvous protocol."""
    seconds = 0.01 if quick else 0.03
    top = "4M" if quick else "16M"
    pair, group = sizes("16K", top, seconds), sizes("16K", "1M" if quick else "4M", seconds)
    short = sizes("1", "4K" if quick else "128K", seconds)
    chunked = ["-m", "1M:4M" if quick else "1M:16M", "-T", f"{seconds:g}"]
    return {
        "profile": [Job("profile", "coop_profile", pair, 2, ("rput", "rget", "coop"))],
        "small": [Job("half round trip", "coop_latency", short, 2, SMALL), Job("64 under way", "coop_bw", short, 2, SMALL)],
        "bandwidth": [Job("one way", "coop_bw", [*pair, "--blocking"], 2, ALL),
                      Job("limit", "coop_copy_limit", pair, 2, tuple(s.name for s in LIMITS), limit=True),
                      Job("both ways", "coop_bibw", [*pair, "--blocking"], 2, ALL)],
        "bcast": [Job(str(count), "coop_bcast", [*chunked, "--chunks", str(count)], ranks, STOCK_AND_MAIN)
                  for count in (CHUNKS[::3] if quick else CHUNKS)],
        "patterns": [Job(name, f"coop_{name}", group, ranks, BY_PATTERN) for name in ("scatter", "gather", "reduce")],
        "stencil": [Job("stencil", "coop_stencil", [*group, "--skew", "20"], ranks, BY_LOAD)],
        "overlap": [Job(side, "coop_overlap", [*group, "--side", side, "--compute", "2.5"], 2, STOCK_AND_MAIN)
                    for side in ("sender", "receiver")],
    }


def settings_of(job, present):
    if job.limit:
        return list(LIMITS)
    return [SETTINGS[name] for name in job.settings if name in present]
