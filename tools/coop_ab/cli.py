# SPDX-License-Identifier: BSD-3-Clause
"""The command line. All of it is checked before the first run, so that a typing error shows at once."""

import os
import random
import shlex
import sys

from . import errors, gates, plot, program, record as records, session, settings as setting_lib, table
from .errors import BadInput, RunFailed
from .program import Parser
from .reading import Reader
from .summary import summarise


def parser():
    p = Parser(prog="coop-ab", allow_abbrev=False, usage="coop-ab --setting NAME='WORDS' ... [options] -- COMMAND {} ...\n"
               "       coop-ab --replot FILE.json [--plot FILE] [--assert EXPR]\n"
               "       coop-ab --merge FILE.json ... --plot FILE",
               description="Runs one command under several settings, interleaved and repeated, and compares the numbers "
               "it prints. Ratios above 1 mean better than the base.")
    p.add_argument("--setting", action="append", default=[], metavar="NAME='WORDS'",
                   help="a setting; its words replace {} in the command (at least two settings)")
    p.add_argument("--env", action="append", default=[], metavar="NAME:VAR=VALUE", help="environment of a setting")
    p.add_argument("--base", metavar="NAME", help="the setting to compare with (default: the last)")
    p.add_argument("--repeats", type=int, metavar="N",
                   help="rounds (default: 10 for two settings; at least 10 for more, so that each runs first equally often; an "
                   "interval of 95 %% needs at least 6)")
    p.add_argument("--warmup", type=int, default=0, metavar="N", help="rounds whose numbers are thrown away (default 0)")
    p.add_argument("--seed", type=int, metavar="N", help="seed for the order of the runs (default: a new one, printed)")
    p.add_argument("--timeout", type=float, default=600, metavar="S", help="seconds for one run (default 600)")
    p.add_argument("--keep-going", action="store_true", help="leave failing runs out instead of stopping; the comparison is then incomplete (exit code 3)")
    how = p.add_argument_group("reading numbers (default: lines 'SIZE VALUE'; lines with # are ignored)")
    how.add_argument("--column", type=int, metavar="N", help="the column of the value (default 2)")
    how.add_argument("--match", metavar="REGEX", help="one figure: the group of the expression")
    how.add_argument("--wall", action="store_true", help="wall time of the command")
    how.add_argument("--unit", metavar="U", help="unit of the values")
    how.add_argument("--lower-is-better", dest="better", action="store_const", const="lower")
    how.add_argument("--higher-is-better", dest="better", action="store_const", const="higher")
    out = p.add_argument_group("results")
    out.add_argument("--title", metavar="T")
    out.add_argument("--tolerance", type=float, default=3, metavar="PERCENT",
                     help="differences up to this are called 'same' (default 3)")
    out.add_argument("--assert", dest="gates", action="append", default=[], metavar="EXPR",
                     help="e.g. 'ratio(coop)>=0.97', 'ratio(coop, 8)>=0.95', 'geomean(coop)>=1'; exit code 1 if violated")
    out.add_argument("--assert-by", choices=gates.BY, default="median",
                     help="the ratio that must pass: the median (default), or the favourable or the strict end of its interval")
    out.add_argument("--json", metavar="FILE", help="write samples and summary")
    out.add_argument("--plot", metavar="FILE", help="draw; .svg, .png or .pdf")
    out.add_argument("--quiet", action="store_true", help="no progress on stderr")
    saved = p.add_argument_group("working from files written with --json")
    saved.add_argument("--replot", metavar="FILE", help="table, plot and assertions of a finished comparison")
    saved.add_argument("--merge", nargs="+", metavar="FILE", help="several comparisons on one page of plots")
    return p


def check_ranges(options):
    for name, value, low, high in (("--repeats", 1 if options.repeats is None else options.repeats, 1, 10000), ("--warmup", options.warmup, 0, 1000),
                                   ("--timeout", options.timeout, 0.001, 1e7), ("--tolerance", options.tolerance, 0, 100),
                                   ("--column", options.column or 2, 2, 1000)):
        if not low <= value <= high:
            raise BadInput(f"{name} {value}: must be from {low} to {high:g}")
    if sum((options.wall, bool(options.match), options.column is not None)) > 1:
        raise BadInput("--wall, --match and --column exclude each other")
    if options.plot:
        plot.check_path(options.plot)
    if options.json and not os.path.isdir(os.path.dirname(options.json) or "."):
        raise BadInput(f"--json '{options.json}': there is no folder '{os.path.dirname(options.json)}'")


def parse_gates(options, names, base):
    return [gates.parse(text, names, base) for text in options.gates]


def draw(options, pages):
    """Without matplotlib there is a warning and no plot: the numbers are not lost."""
    if not plot.available():
        print(f"coop-ab: no plot: {plot.MISSING}", file=sys.stderr)
        return
    plot.save(pages, options.plot)
    print(f"plot: {options.plot}")


def finish(options, record, gate_list):
    """Table, gates, plot. Returns the exit code, which is an error for an incomplete comparison even if its gates hold."""
    summary = summarise(record, options.tolerance / 100)
    print(table.render(record, summary))
    results = [gates.check(gate, summary, options.assert_by) for gate in gate_list]
    for _, line in results:
        print(line)
    if options.json:
        records.save({**record, "summary": summary}, options.json)
        print(f"samples: {options.json}")
    if options.plot:
        draw(options, [(record, summary)])
    if summary["incomplete"]:
        return errors.RUN_FAILED
    return errors.OK if all(holds for holds, _ in results) else errors.GATE_VIOLATED


def replot(options):
    record = records.load(options.replot)
    if options.title:
        record["title"] = options.title
    names = [setting["name"] for setting in record["settings"]]
    return finish(options, record, parse_gates(options, names, record["base"]))


def merge(options):
    if not options.plot:
        raise BadInput("--merge needs --plot FILE")
    pages = [(record, summarise(record, options.tolerance / 100)) for record in map(records.load, options.merge)]
    if not plot.available():
        raise BadInput(plot.MISSING)
    draw(options, pages)
    return errors.RUN_FAILED if any(summary["incomplete"] for _, summary in pages) else errors.OK


def describe_numbers(options, record, header):
    """Unit, direction, key and title: from the options, else from the header that the program prints."""
    record["unit"] = options.unit or ("s" if options.wall else header.get("unit", ""))
    record["better"] = options.better or ("lower" if options.wall else header.get("better", ""))
    record["key"] = header.get("key", "size")
    record["title"] = options.title or header.get("benchmark") or shlex.join(record["command"])
    if record["better"] not in ("lower", "higher"):
        raise BadInput("the command does not say which direction is better: "
                       "give --lower-is-better or --higher-is-better")


def compare(options, command):
    if not command:
        raise BadInput("no command: write it after --, e.g. -- mpirun -n 2 {} ./coop_latency")
    setting_list = setting_lib.parse_settings(options.setting, options.env, command)
    names = [setting.name for setting in setting_list]
    base = options.base or names[-1]
    if base not in names:
        raise BadInput(f"--base '{base}': no such setting (settings: {', '.join(names)})")
    gate_list = parse_gates(options, names, base)
    rounds = options.repeats or session.balanced_rounds(len(names))
    reader = Reader(options.wall, options.match or "", options.column or 2)
    seed = random.SystemRandom().randrange(1 << 31) if options.seed is None else options.seed
    record = records.new(command, setting_list, base, reader, seed, rounds, options.timeout)
    if options.json:
        records.save(record, options.json)  # fails now if the folder is not writable
    if options.plot and not plot.available():
        print(f"coop-ab: there will be no plot: {plot.MISSING}", file=sys.stderr)
    if not options.quiet:
        print(f"coop-ab: {len(names)} settings, {rounds} rounds, seed {seed}", file=sys.stderr)
        if record["host"]["load_before"] > 0.5 * record["host"]["cores"]:
            print(f"coop-ab: the load is {record['host']['load_before']} on {record['host']['cores']} cores: "
                  "other programs are running, expect wide intervals", file=sys.stderr)
    try:
        session.measure(record, setting_list, reader, lambda header: describe_numbers(options, record, header),
                        options.warmup, options.keep_going, options.quiet)
        record["complete"] = True
    finally:
        if options.json and not record["complete"]:
            records.save(record, options.json)  # the runs until now
    if not record["better"]:
        raise RunFailed("every run failed")
    return finish(options, record, gate_list)


def start(arguments):
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser().parse_args(arguments[:split])
    check_ranges(options)
    command = arguments[split + 1:]
    if options.replot or options.merge:
        if command or options.setting or options.env:
            raise BadInput("--replot and --merge run nothing: give no settings and no command with them")
        return merge(options) if options.merge else replot(options)
    return compare(options, command)


def main(arguments):
    sys.stdout.reconfigure(errors="replace")  # an old locale may not know every sign of the table
    sys.stderr.reconfigure(errors="replace")
    return program.run("coop-ab", lambda: start(arguments))
