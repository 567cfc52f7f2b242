# SPDX-License-Identifier: BSD-3-Clause
"""The command line."""

import argparse
import json
import os
import signal
import sys

from coop_ab import errors, host, plot
from coop_ab.errors import BadInput, RunFailed

from . import draw, measure
from .jobs import figure_jobs

SCHEMA = 1


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message} (--help lists the options)")


def parser():
    p = Parser(prog="coop-figures", allow_abbrev=False,
               description="Compares rendezvous protocols of pml/coop and stock components on this machine, interleaved, and "
               "draws the results: per figure an SVG and a JSON file with every sample.")
    p.add_argument("figures", nargs="*", metavar="FIGURE", help=f"{', '.join(draw.FIGURES)} (default: all)")
    p.add_argument("--out", default="figures", metavar="FOLDER", help="where the files go (default: figures)")
    p.add_argument("--quick", action="store_true", help="one round, fewer sizes: to see that everything works")
    p.add_argument("--redraw", action="store_true", help="draw from the JSON files in the folder, measure nothing")
    p.add_argument("--rounds", type=int, metavar="N", help="at most (default 6; 1 with --quick)")
    p.add_argument("--minutes", type=float, default=7, metavar="M", help="no round begins that would end later (default 7)")
    p.add_argument("--ranks", type=int, metavar="N", help="of bcast, patterns and stencil (default: cores, from 4 to 8)")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="of the order of the runs (default 1)")
    p.add_argument("--mpirun", default="mpirun", metavar="PROGRAM", help="of the Open MPI that is measured")
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
    unknown = [name for name in options.figures if name not in draw.FIGURES]
    if unknown:
        raise BadInput(f"there is no figure '{unknown[0]}' (there are {', '.join(draw.FIGURES)})")
    if not options.redraw and not os.access(f"{options.bench}/coop_bw", os.X_OK):
        raise BadInput(f"the benchmarks are not in '{options.bench}' (--bench FOLDER)")
    os.makedirs(options.out, exist_ok=True)
    return options.figures or list(draw.FIGURES)


def keep(name, pages, folder):
    load = host.load()
    for record in pages:
        record["host"]["load_after"] = load
    with open(f"{folder}/{name}.json", "w", encoding="utf-8") as file:
        json.dump({"program": "coop-figures", "schema": SCHEMA, "figure": name, "comparisons": pages}, file, indent=1)
        file.write("\n")


def load_pages(name, folder):
    try:
        with open(f"{folder}/{name}.json", encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read '{folder}/{name}.json': {error}") from None
    if not isinstance(data, dict) or data.get("program") != "coop-figures" or data.get("schema") != SCHEMA:
        raise BadInput(f"'{folder}/{name}.json' was not written by this coop-figures")
    return data["comparisons"]


def draw_all(pages_of, folder):
    if not plot.available():
        print(f"coop-figures: no figures: {plot.MISSING}", file=sys.stderr)
        return
    for name, pages in pages_of.items():
        draw.save(name, pages, f"{folder}/{name}.svg")
        print(f"figure: {folder}/{name}.svg")


def measure_all(names, options):
    jobs = {name: jobs for name, jobs in figure_jobs(options.quick, options.ranks).items() if name in names}
    present = measure.available(options.mpirun, options.bench)
    pages_of, failures = measure.measure(jobs, present, options, len(os.sched_getaffinity(0)))
    for name, pages in pages_of.items():
        keep(name, pages, options.out)
        print(f"samples: {options.out}/{name}.json")
    draw_all(pages_of, options.out)
    return errors.RUN_FAILED if failures else errors.OK


def terminated(_signal, _frame):
    raise KeyboardInterrupt


def main(arguments, bench):
    signal.signal(signal.SIGTERM, terminated)  # so that a run under way is stopped with us
    try:
        options = parser().parse_args(arguments)
        names = check(options, bench)
        if options.redraw:
            draw_all({name: load_pages(name, options.out) for name in names}, options.out)
            return errors.OK
        return measure_all(names, options)
    except BadInput as error:
        print(f"coop-figures: {error}", file=sys.stderr)
        return errors.BAD_INPUT
    except RunFailed as error:
        print(f"coop-figures: {error}", file=sys.stderr)
        return errors.RUN_FAILED
    except KeyboardInterrupt:
        print("coop-figures: interrupted", file=sys.stderr)
        return errors.INTERRUPTED
