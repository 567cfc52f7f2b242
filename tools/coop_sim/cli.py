# SPDX-License-Identifier: BSD-3-Clause
"""The command line."""

import argparse
import json
import os
import signal
import sys

from coop_ab import errors, plot
from coop_ab.errors import BadInput, RunFailed

from . import draw, engine, figures, opensm, tables

SCHEMA = 1


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message} (--help lists the options)")


class Figure:
    """runs(forwarding) -> {name: options}; how the results look as text, and drawn."""

    def __init__(self, title, runs, text, picture, height):
        self.title, self.runs, self.text, self.picture, self.height = title, runs, text, picture, height


FIGURES = {
    "ring": Figure("Displaced ring, 24 processes on two leaves of the 144-port switch", figures.ring, tables.ring, draw.ring, 4.2),
    "collectives": Figure("Collectives on 64 nodes of the 144-port switch", figures.collectives, tables.collectives, draw.collectives, 9.5),
    "why": Figure("Alltoall, 64 processes, 64 KiB: one assumption at a time", figures.why,
                  lambda results: tables.by_group(results, "assumption", tables.last_us),
                  lambda page, results: draw.grouped(page, results, tables.last_us), 5.2),
    "scale": Figure("Larger, beside others, and with a spine lost: Alltoall", lambda _: figures.scale(),
                    lambda results: tables.by_group(results, "Alltoall"), draw.grouped, 4.2),
    "huge": Figure("4096 endpoints: Alltoall, 256 KiB", lambda _: figures.huge(),
                   lambda results: tables.by_group(results, "Alltoall"), draw.grouped, 4.2),
}


def parser():
    p = Parser(prog="coop-sim", allow_abbrev=False, description="Runs the schedulers of btl/coopib on simulated InfiniBand subnets.")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("run", add_help=False, help="one run; its options: coop-sim run --help. Prints JSON")
    t = commands.add_parser("tables", help="the dissertation's tables and figures, and what is beyond them")
    t.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(FIGURES)} (default: all but huge, which takes longest)")
    t.add_argument("--out", default="simulated", metavar="FOLDER", help="where JSON and SVG go (default: simulated)")
    t.add_argument("--forwarding", metavar="FILE", help="ring, collectives, why: also, or instead of the simulator's own routes, "
                   "these of the 144-port switch; 'coop-sim opensm' makes them")
    t.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (default 1)")
    t.add_argument("--redraw", action="store_true", help="from the JSON files in the folder; runs nothing")
    t.add_argument("--quiet", action="store_true", help="no progress on stderr")
    o = commands.add_parser("opensm", help="forwarding tables of a real opensm, on ibsim, for 'run --forwarding'")
    o.add_argument("--fat-tree", default="12,12:12", metavar="SHAPE", help="default 12,12:12, the 144-port switch")
    o.add_argument("--lmc", type=int, default=4, metavar="N", help="default 4")
    o.add_argument("--engine", metavar="NAME", help="opensm's routing engine (default: its own, minhop)")
    o.add_argument("--out", default="forwarding.txt", metavar="FILE", help="default forwarding.txt")
    return p


def write(path, text):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise BadInput(f"cannot write '{path}': {error.strerror}") from None


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read '{path}': {error}") from None
    if not isinstance(data, dict) or data.get("program") != "coop-sim" or data.get("schema") != SCHEMA:
        raise BadInput(f"'{path}' was not written by this coop-sim")
    return data["results"]


def make_figure(name, options, program):
    figure, path = FIGURES[name], os.path.join(options.out, f"{name}.json")
    if options.redraw:
        results = load(path)
    else:
        results = engine.run_all(program, figure.runs(options.forwarding), options.jobs, options.quiet)
        write(path, json.dumps({"program": "coop-sim", "schema": SCHEMA, "figure": name, "results": results}) + "\n")
    print(f"{figure.title}\n\n{figure.text(results)}", flush=True)
    if plot.available():
        draw.save(figure.picture, results, os.path.join(options.out, f"{name}.svg"), figure.title, figure.height)
        print(f"figure: {options.out}/{name}.svg", flush=True)
    else:
        print(f"coop-sim: no figures: {plot.MISSING}", file=sys.stderr)


def run_tables(options, program):
    unknown = [name for name in options.names if name not in FIGURES]
    if unknown:
        raise BadInput(f"there is no table '{unknown[0]}' (there are {', '.join(FIGURES)})")
    if not 1 <= options.jobs <= 256:
        raise BadInput(f"--jobs {options.jobs}: must be from 1 to 256")
    os.makedirs(options.out, exist_ok=True)
    for name in options.names or [name for name in FIGURES if name != "huge"]:
        make_figure(name, options, program)


def terminated(_signal, _frame):
    raise KeyboardInterrupt


def main(arguments, program):
    signal.signal(signal.SIGTERM, terminated)
    try:
        if arguments[:1] == ["run"]:
            progress = ["--progress"] if sys.stderr.isatty() and "--progress" not in arguments else []
            try:
                os.execv(program, [program] + arguments[1:] + progress)
            except OSError as error:
                raise BadInput(f"cannot run the engine '{program}': {error.strerror}") from None
        options = parser().parse_args(arguments)
        if options.command == "opensm":
            opensm.make(options.fat_tree, options.lmc, options.out, options.engine)
        else:
            run_tables(options, program)
    except BadInput as error:
        print(f"coop-sim: {error}", file=sys.stderr)
        return errors.BAD_INPUT
    except RunFailed as error:
        print(f"coop-sim: {error}", file=sys.stderr)
        return errors.RUN_FAILED
    except KeyboardInterrupt:
        return errors.INTERRUPTED
    return errors.OK
