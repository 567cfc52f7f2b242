# SPDX-License-Identifier: BSD-3-Clause
"""The command line, and the file of samples, to which later runs add theirs."""

import fnmatch
import os
import sys
import time

from coop_ab import errors, files, host, installation, program, session
from coop_ab.errors import BadInput
from coop_ab.program import Parser

from . import catalogue, measure, table

PROGRAM, SCHEMA = "failover", 1


def parser():
    p = Parser(prog="bench/failover", allow_abbrev=False,
               description="Measures the fault catalogue of btl/coopib on software subnets: after which time the first message that a fault "
               "has held up arrives (t), and the bandwidth 20 messages later as a share of the rails that are left (b).")
    p.add_argument("faults", nargs="*", metavar="FAULT", help="names or patterns such as 'apm.*' (default: all)")
    p.add_argument("--prefix", default="_install", metavar="P", help="the installation to measure (default: _install)")
    p.add_argument("--out", default="_results/failover.json", metavar="FILE", help="samples; a file that exists is extended")
    p.add_argument("--rounds", type=int, default=5, metavar="N", help="every job once in each (default 5)")
    p.add_argument("--minutes", type=float, default=60, metavar="M", help="do not start a job that would end later (default 60)")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the order of the jobs")
    p.add_argument("--scale", type=float, default=1.0, metavar="X", help="make all times of jobs shorter, to see that everything works")
    p.add_argument("--table", choices=("text", "rst"), default="text", help="the form of the table")
    p.add_argument("--no-measuring", action="store_true", help="print the table of the file")
    p.add_argument("--list", action="store_true", help="list the faults")
    p.add_argument("--verbose", action="store_true", help="print what jobs print that end badly")
    return p


def chosen(patterns):
    found = [fault for fault in catalogue.FAULTS if not patterns or any(fnmatch.fnmatch(fault.name, pattern) for pattern in patterns)]
    if not found:
        raise BadInput(f"there is no fault '{patterns[0]}' (--list)")
    return found


def load(path):
    if not os.path.exists(path):
        return {"program": PROGRAM, "schema": SCHEMA, "host": host.facts(), "samples": []}
    return files.load(path, PROGRAM, SCHEMA)


def measure_all(faults, options, data):
    jobs = [(fault, pml) for fault in faults for pml in measure.PMLS]
    done = max((sample["round"] for sample in data["samples"]), default=0)
    start, longest = time.monotonic(), 0.0
    for number, order in enumerate(session.orders(len(jobs), options.rounds, options.seed + done), 1):
        for index in order:
            begin = time.monotonic()
            if begin - start + longest > options.minutes * 60:
                print(f"failover: the time is over in round {number}", file=sys.stderr)
                return
            fault, pml = jobs[index]
            sample, outcome = measure.one_run(options.prefix, fault, pml, options.scale)
            data["samples"].append({"round": done + number, "load": host.load(), **sample})
            longest = max(longest, time.monotonic() - begin)
            shown = ", ".join(f"{name} {value:g}" for name, value in sample["figures"].items())
            print(f"[{time.monotonic() - start:4.0f} s] {fault.name} {pml}: {sample['wrong'] or shown or 'as it has to'}", file=sys.stderr, flush=True)
            if options.verbose and (sample["wrong"] or not (sample["figures"] or fault.ends)):
                print(outcome.text, "\n".join(f"{at - (outcome.started or at):.6f} {words}" for at, words in outcome.trace[-60:]), file=sys.stderr)


def start(arguments):
    options = parser().parse_args(arguments)
    if options.list:
        print("\n".join(f"{fault.name:26} {fault.words}" for fault in catalogue.FAULTS))
        return errors.OK
    for name, value, low, high in (("--rounds", options.rounds, 1, 1000), ("--minutes", options.minutes, 0.01, 10000),
                                   ("--scale", options.scale, 0.1, 10)):
        if not low <= value <= high:
            raise BadInput(f"{name} {value}: must be from {low} to {high}")
    faults = chosen(options.faults)
    data = load(options.out)
    if not options.no_measuring:
        if not os.access(f"{options.prefix}/bin/coop-fabric", os.X_OK):
            raise BadInput(f"'{options.prefix}' has no bin/coop-fabric: not an installation with the software subnet (--prefix)")
        options.prefix = os.path.abspath(options.prefix)
        installation.use(options.prefix)
        os.makedirs(os.path.dirname(options.out) or ".", exist_ok=True)
        try:
            measure_all(faults, options, data)
        finally:
            files.save(data, options.out, indent=None)
    loads = [sample["load"] for sample in data["samples"]]
    print(table.rst(data["samples"]) if options.table == "rst" else table.text(data["samples"]))
    print(f"{host.one_line({**data['host'], 'load_before': min(loads, default=0), 'load_after': max(loads, default=0)})} (least and most load)")
    return errors.OK if table.complete(data["samples"]) else errors.RUN_FAILED


def main(arguments):
    return program.run(PROGRAM, lambda: start(arguments))
