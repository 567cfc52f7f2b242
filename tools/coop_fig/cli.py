# SPDX-License-Identifier: BSD-3-Clause
"""The command line."""

import os
import sys

from coop_ab import errors, files, host, plot, program
from coop_ab.errors import BadInput
from coop_ab.program import Parser

from . import allgather, apm, draw, failover, measure, node
from .jobs import figure_jobs

PROGRAM = "coop-figures"
SCHEMA = 1
DRAWN = {module.NAME: module for module in (allgather, node)}  # figures of files that a program of bench/ has written
SUBNET = {module.NAME: module for module in (failover, apm)}  # figures of software subnets


def parser():
    p = Parser(prog=PROGRAM, allow_abbrev=False,
               description="Compares rendezvous protocols of pml/coop and stock components on this machine, interleaved, and "
               "draws the results: per figure an SVG and a JSON file with every sample.")
    p.add_argument("figures", nargs="*", metavar="FIGURE", help=f"{', '.join(draw.FIGURES)} (default: all of these); {', '.join(SUBNET)}: "
                   f"measured on software subnets; {', '.join(DRAWN)}: drawn from the files that the program of bench/ with this name has "
                   "written to the folder")
    p.add_argument("--out", default="figures", metavar="FOLDER", help="where the files go (default: figures)")
    p.add_argument("--quick", action="store_true", help="one round, fewer sizes: to see that everything works")
    p.add_argument("--redraw", action="store_true", help="draw from the JSON files in the folder, measure nothing")
    p.add_argument("--rounds", type=int, metavar="N", help="at most this many rounds (default 6; 1 with --quick)")
    p.add_argument("--minutes", type=float, default=7, metavar="M", help="do not start a round that would end later (default 7)")
    p.add_argument("--ranks", type=int, metavar="N", help="ranks of bcast, patterns and stencil (default: the cores, from 4 to 8)")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="seed for the order of the runs (default 1)")
    p.add_argument("--mpirun", default="mpirun", metavar="PROGRAM", help="the mpirun of the Open MPI to measure")
    p.add_argument("--bench", metavar="FOLDER", help="where the benchmarks are")
    p.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return p


def check(options, bench):
    options.rounds = options.rounds or (1 if options.quick else 6)
    options.bench = os.path.abspath(options.bench or bench)
    cores = len(os.sched_getaffinity(0))
    options.ranks = options.ranks or max(4, min(cores, 8))
    for name, value, low, high in (("--rounds", options.rounds, 1, 1000), ("--minutes", options.minutes, 0.01, 10000),
                                   ("--ranks", options.ranks, 2, 1024)):
        if not low <= value <= high:
            raise BadInput(f"{name} {value}: must be from {low} to {high}")
    known = (*draw.FIGURES, *SUBNET, *DRAWN)
    unknown = [name for name in options.figures if name not in known]
    if unknown:
        raise BadInput(f"there is no figure '{unknown[0]}' (figures: {', '.join(known)})")
    drawn = [name for name in options.figures if name in DRAWN]
    if drawn:
        if len(options.figures) > 1:
            raise BadInput(f"{drawn[0]} is drawn from files of bench/{drawn[0]}: give no other figure with it")
        options.redraw = True
    if not options.redraw and not os.access(f"{options.bench}/coop_bw", os.X_OK):
        raise BadInput(f"the benchmarks are not in '{options.bench}' (--bench FOLDER)")
    os.makedirs(options.out, exist_ok=True)
    return options.figures or list(draw.FIGURES)


def keep(name, pages, folder):
    load = host.load()
    for record in pages:
        record["host"]["load_after"] = load
    files.save({"program": PROGRAM, "schema": SCHEMA, "figure": name, "comparisons": pages}, f"{folder}/{name}.json")


def load_pages(name, folder):
    if name in DRAWN:
        return DRAWN[name].load(folder)
    return files.load(f"{folder}/{name}.json", PROGRAM, SCHEMA)["comparisons"]


def draw_all(pages_of, folder):
    """pages_of: {figure: its records}."""
    if not plot.available():
        print(f"coop-figures: no figures: {plot.MISSING}", file=sys.stderr)
        return
    for name, pages in pages_of.items():
        own = {**DRAWN, **SUBNET}
        if name in own:
            own[name].save(pages, f"{folder}/{name}.svg")
        else:
            draw.save(name, pages, f"{folder}/{name}.svg")
        print(f"figure: {folder}/{name}.svg")


def measure_all(names, options):
    jobs = {name: jobs for name, jobs in figure_jobs(options.quick, options.ranks).items() if name in names}
    pages_of, failures = {}, 0
    if jobs:
        present = measure.available(options.mpirun, options.bench)
        pages_of, failures = measure.measure(jobs, present, options, len(os.sched_getaffinity(0)))
    for name in [name for name in names if name in SUBNET]:
        pages_of[name], failed = SUBNET[name].measure(options)
        failures += failed
    for name, pages in pages_of.items():
        keep(name, pages, options.out)
        print(f"samples: {options.out}/{name}.json")
    draw_all(pages_of, options.out)
    return errors.RUN_FAILED if failures else errors.OK


def start(arguments, bench):
    options = parser().parse_args(arguments)
    names = check(options, bench)
    if options.redraw:
        draw_all({name: load_pages(name, options.out) for name in names}, options.out)
        return errors.OK
    return measure_all(names, options)


def main(arguments, bench):
    return program.run(PROGRAM, lambda: start(arguments, bench))
