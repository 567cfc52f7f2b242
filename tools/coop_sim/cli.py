# SPDX-License-Identifier: BSD-3-Clause
"""The command line."""

import os
import sys

from coop_ab import errors, files, plot, program
from coop_ab.errors import BadInput
from coop_ab.program import Parser

from . import allgather, allgather_growth, draw, engine, figures, opensm, tables

PROGRAM = "coop-sim"
SCHEMA = 1


class Figure:
    """runs(forwarding) returns {name: options}; text(results) and picture(page, results) show the results."""

    def __init__(self, title, runs, text, picture, height):
        self.title, self.runs, self.text, self.picture, self.height = title, runs, text, picture, height


FIGURES = {
    "ring": Figure("Displaced ring, 24 processes on two leaves of the 144-port switch", figures.ring, tables.ring, draw.ring, 4.2),
    "collectives": Figure("Collectives on 64 nodes of the 144-port switch", figures.collectives, tables.collectives, draw.collectives, 9.5),
    "why": Figure("Alltoall, 64 processes, 64 KiB: one assumption at a time", figures.why,
                  lambda results: tables.by_group(results, "assumption", tables.last_us),
                  lambda page, results: draw.grouped(page, results, tables.last_us), 5.2),
    "scale": Figure("Alltoall: 512 endpoints, beside other jobs, and with a lost spine", lambda _: figures.scale(),
                    lambda results: tables.by_group(results, "Alltoall"), draw.grouped, 4.2),
    "huge": Figure("4096 endpoints: Alltoall, 256 KiB", lambda _: figures.huge(),
                   lambda results: tables.by_group(results, "Alltoall"), draw.grouped, 4.2),
    "allgather": Figure("Allgather over RDMA against point-to-point messages", lambda _: allgather.paper_runs(), allgather.paper_table,
                        draw.allgather, 5.2),
    "allgather-scale": Figure("Allgather over RDMA on a fat tree of 4096 hosts, against the lower bound", lambda _: allgather.scale_runs(),
                              allgather.scale_table, draw.allgather_scale, 7.5),
    "allgather-growth": Figure("Allgather of 32 KiB over RDMA and by point-to-point messages, 4 to 4096 processes",
                               lambda _: allgather_growth.growth_runs(), allgather_growth.growth_table, draw.allgather_growth, 4.2),
    "allgather-hosts": Figure("Allgather over RDMA with several processes on each host, against the lower bound",
                              lambda _: allgather_growth.hosts_runs(), allgather_growth.hosts_table, draw.allgather_hosts, 7.5),
}
LONG = ("huge", "allgather-scale", "allgather-hosts")


def parser():
    p = Parser(prog=PROGRAM, allow_abbrev=False, description="Runs the schedulers of btl/coopib on simulated InfiniBand subnets.")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("run", add_help=False, help="one run, printed as JSON; 'coop-sim run --help' lists its options")
    t = commands.add_parser("tables", help="the tables and figures of the dissertation on multi-pathing with "
                            "InfiniBand (docs/simulation.rst), and further ones")
    t.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(FIGURES)} (default: all but {', '.join(LONG[:-1])} and {LONG[-1]}, which "
                   "take longest)")
    t.add_argument("--out", default="simulated", metavar="FOLDER", help="where the JSON and SVG files go (default: simulated)")
    t.add_argument("--forwarding", metavar="FILE", help="forwarding tables of the 144-port switch, from 'coop-sim "
                   "opensm': the tables 'ring' and 'collectives' use them instead of the simulator's own routes, the "
                   "table 'why' uses both")
    t.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (default 1)")
    t.add_argument("--redraw", action="store_true", help="draw from the JSON files in the folder, run nothing")
    t.add_argument("--quiet", action="store_true", help="no progress on stderr")
    o = commands.add_parser("opensm", help="get forwarding tables for 'run --forwarding' from a real opensm on ibsim")
    o.add_argument("--fat-tree", default="12,12:12", metavar="SHAPE", help="the fat tree (default 12,12:12, the 144-port switch)")
    o.add_argument("--lmc", type=int, default=4, metavar="N", help="the LMC of all ports (default 4)")
    o.add_argument("--engine", metavar="NAME", help="opensm's routing engine (default: opensm's default, minhop)")
    o.add_argument("--out", default="forwarding.txt", metavar="FILE", help="the file to write (default forwarding.txt)")
    return p


def make_figure(name, options, simulator):
    figure, path = FIGURES[name], os.path.join(options.out, f"{name}.json")
    if options.redraw:
        results = files.load(path, PROGRAM, SCHEMA)["results"]
    else:
        results = engine.run_all(simulator, figure.runs(options.forwarding), options.jobs, options.quiet)
        files.save({"program": PROGRAM, "schema": SCHEMA, "figure": name, "results": results}, path, indent=None)
    print(f"{figure.title}\n\n{figure.text(results)}", flush=True)
    if plot.available():
        draw.save(figure.picture, results, os.path.join(options.out, f"{name}.svg"), figure.title, figure.height)
        print(f"figure: {options.out}/{name}.svg", flush=True)
    else:
        print(f"coop-sim: no figures: {plot.MISSING}", file=sys.stderr)


def run_tables(options, simulator):
    unknown = [name for name in options.names if name not in FIGURES]
    if unknown:
        raise BadInput(f"there is no table '{unknown[0]}' (tables: {', '.join(FIGURES)})")
    if not 1 <= options.jobs <= 256:
        raise BadInput(f"--jobs {options.jobs}: must be from 1 to 256")
    os.makedirs(options.out, exist_ok=True)
    for name in options.names or [name for name in FIGURES if name not in LONG]:
        make_figure(name, options, simulator)


def become_engine(simulator, arguments):
    progress = ["--progress"] if sys.stderr.isatty() and "--progress" not in arguments else []
    try:
        os.execv(simulator, [simulator] + arguments + progress)
    except OSError as error:
        raise BadInput(f"cannot run the engine '{simulator}': {error.strerror}") from None


def start(arguments, simulator):
    if arguments[:1] == ["run"]:
        become_engine(simulator, arguments[1:])
    options = parser().parse_args(arguments)
    if options.command == "opensm":
        opensm.make(options.fat_tree, options.lmc, options.out, options.engine)
    else:
        run_tables(options, simulator)
    return errors.OK


def main(arguments, simulator):
    return program.run(PROGRAM, lambda: start(arguments, simulator))
