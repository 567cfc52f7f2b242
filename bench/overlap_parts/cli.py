# SPDX-License-Identifier: BSD-3-Clause
"""The command line."""

import dataclasses
import os
import sys
import tempfile

from coop_ab import errors, files, host, installation, plot, program
from coop_ab.errors import BadInput, RunFailed
from coop_ab.program import Parser

from . import mixed, ratio, rounds, timeline, wait

PARTS = {"ratio": ratio, "timeline": timeline, "wait": wait, "mixed": mixed}
PROGRAM = "overlap"
SCHEMA = 1
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def parser():
    p = Parser(prog=PROGRAM, usage="bench/overlap [options] [PART ...]", allow_abbrev=False,
               description="Measures how much of a transfer overlaps with computing, on a software subnet of virtual hosts with "
               "one rail at 250 MB/s. Compares pml/coop without and with interrupts, ob1 over openib, and pml/ucx, interleaved, in rounds "
               "until the figures are stable. ratio: W/T over W for the sender and the receiver. timeline: time stamps of one transfer of "
               "pml/coop (one round). wait: time in MPI of HPL (hpcc) and of a halo exchange on four hosts. mixed: a message inside a node "
               "and one between nodes at once, by pml/coop also in chunks and in one piece, by ob1 and by pml/ucx, with two ranks on one "
               "host. Each part prints a table and writes overlap-PART.json with every sample and overlap-PART.svg.")
    p.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    p.add_argument("--prefix", default="_install", metavar="P", help="the installation to measure (default: ./_install)")
    p.add_argument("--out", default="_results/overlap", metavar="FOLDER", help="where the files go (default: _results/overlap)")
    p.add_argument("--quick", action="store_true", help="one short round, to see that everything works")
    p.add_argument("--rounds", type=int, metavar="N", help="at most this many rounds (default: 16; for wait 10)")
    p.add_argument("--minutes", type=float, metavar="M", help="time limit of a part: do not start a round that would end later (default "
                   "3.5; for mixed 2.5)")
    p.add_argument("--tolerance", type=float, metavar="X", help="a figure is stable if half the width of its interval is at most this "
                   "(default: for ratio 0.01, for wait 5 percent as 0.05, for mixed 3 percentage points)")
    p.add_argument("--redraw", action="store_true", help="print and draw the files in the folder, measure nothing")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="seed for the order of the runs (default 1)")
    p.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return p


@dataclasses.dataclass
class Context:
    """The options and facts that parts use."""

    prefix: str
    quick: bool
    seed: int
    quiet: bool
    cores: int
    scratch: str
    top: str
    options: object

    def limits(self, default):
        given = {name: getattr(self.options, name) for name in ("rounds", "minutes", "tolerance") if getattr(self.options, name) is not None}
        if self.quick:
            given.setdefault("rounds", 1)
        return dataclasses.replace(default, **given)


def check(options):
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        raise BadInput(f"there is no part '{unknown[0]}' (parts: {', '.join(PARTS)})")
    for name, low, high in (("rounds", 1, 1000), ("minutes", 0.01, 10000), ("tolerance", 1e-6, 100)):
        value = getattr(options, name)
        if value is not None and not low <= value <= high:
            raise BadInput(f"--{name} {value}: must be from {low} to {high}")
    options.prefix = os.path.abspath(options.prefix)
    os.makedirs(options.out, exist_ok=True)
    return options.parts or list(PARTS)


def path_of(name, folder):
    return f"{folder}/overlap-{name}.json"


def measure(name, options):
    facts = host.facts()
    with tempfile.TemporaryDirectory(prefix="coop-overlap-") as scratch:
        context = Context(options.prefix, options.quick, options.seed, options.quiet, len(os.sched_getaffinity(0)), scratch, TOP, options)
        runs, end = PARTS[name].measure(context)
    facts["load_after"] = host.load()
    if not any(sample["figures"] for sample in runs):
        raise RunFailed(f"{name}: no run worked")
    record = {"program": PROGRAM, "schema": SCHEMA, "part": name, "seed": options.seed, "host": facts, "end": end, "runs": runs}
    files.save(record, path_of(name, options.out))
    return record


def show(name, record):
    print(f"\n{PARTS[name].TITLE}")
    print("\n".join(PARTS[name].table(record["runs"])))
    if record["end"]["figures"] and name != "timeline":
        print(rounds.describe(record["end"]))
    print(rounds.of_machine(record["runs"]), flush=True)


def draw(name, record, path):
    part = PARTS[name]
    words = "" if name == "timeline" else f"{rounds.describe(record['end'])}\n"
    words += f"{host.one_line(record['host'])}; {rounds.of_machine(record['runs'])}"
    with plot.page(path, PROGRAM, part.HEIGHT, part.TITLE, words) as figure:
        part.draw(figure, record["runs"], record["end"])


def start(arguments):
    options = parser().parse_args(arguments)
    names = check(options)
    if not options.redraw:
        installation.use(options.prefix)
        os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    failed = False
    for name in names:
        record = files.load(path_of(name, options.out), PROGRAM, SCHEMA) if options.redraw else measure(name, options)
        failed |= any(sample["error"] for sample in record["runs"])
        show(name, record)
        if plot.available():
            path = f"{options.out}/overlap-{name}.svg"
            draw(name, record, path)
            print(f"figure: {path}")
        else:
            print(f"overlap: no figures: {plot.MISSING}", file=sys.stderr)
    return errors.RUN_FAILED if failed else errors.OK


def main(arguments):
    return program.run(PROGRAM, lambda: start(arguments))
