# SPDX-License-Identifier: BSD-3-Clause
"""The command line."""

import argparse
import glob
import os
import shlex
import shutil
import subprocess
import sys

from coop_ab import installation
from coop_ab.errors import BadInput
from coop_fig import node
from coop_fig.cli import draw_all

from . import judge
from .parts import COOP, CROWDED, OB1, PARTS, UCX, chosen

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
MPICC, MPICH_RUN = "mpicc.mpich", "mpirun.mpich"
EPILOG = """\
Each part compares pml/coop with ob1 over vader, with pml/ucx over shared memory and CMA, and with MPICH if Debian's packages mpich and
libmpich-dev are installed. MPICH's waiting ranks do not yield, so it takes part where each rank has a core. 'limit' is coop_line_limit or
coop_window_limit, shared memory without MPI; with 'limit-read' the receiver lets the kernel copy.

The CPUs of a virtual machine may be near each other at one time and far at another. So coop_latency, coop_bw, coop_bibw and the limits only count
what was measured while a cache line took at most NS nanoseconds from one core to the other (option --near of the programs); by default 2.5 times the
least of a few medians that coop_line_limit finds at the beginning.

At the end, and with --redo, the tables are compared with the goals of this project; a missed goal is no error."""
# For a short run.
NEAR = 2.5  # times the least: within a cache that cores share, the time varies by 2; outside of it, it is 5 times as long
LOOKS = 10  # at the distance of the cores
QUICK, QUICK_RANKS = "-d -i 1 -b 2 -x 0 -m 1K:2K", 4


def parse(arguments):
    words = list(dict.fromkeys(name.split("-")[0] for name in PARTS))
    p = argparse.ArgumentParser(prog="bench/node", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, epilog=EPILOG,
                                description="Compares messages inside a node under several MPI libraries, interleaved by coop-ab. Writes\n"
                                "node-PART.json with every sample, node-PART.txt with the table, node.txt with the goals, and node.svg.")
    p.add_argument("parts", nargs="*", metavar="PART", help=f"a part or the word before its first hyphen: {' '.join(words)} (--list; default: all)")
    p.add_argument("--prefix", default="_install", metavar="P", help="the installation to measure (default: ./_install)")
    p.add_argument("--out", default="_results/node", metavar="FOLDER", help="where the files go (default: ./_results/node)")
    p.add_argument("--rounds", type=int, default=12, metavar="N", help="rounds of each part (default: 12)")
    p.add_argument("--near", type=float, metavar="NS", help="count only what was measured while the cores were so near (default: see below; 0: everything)")
    p.add_argument("--coop", default="", metavar="WORDS", help="more words for pml/coop, for example '--mca pml_coop_lane 0'")
    p.add_argument("--quick", action="store_true", help="one short round that checks every byte, to see that everything works")
    p.add_argument("--redo", action="store_true", help="compare the files in the folder with the goals again, measure nothing")
    p.add_argument("--list", action="store_true", help="print the parts, measure nothing")
    options = p.parse_args(arguments)
    if not 1 <= options.rounds <= 1000:
        p.error(f"--rounds {options.rounds}: must be from 1 to 1000")
    if options.near is not None and not 0 <= options.near <= 1e6:
        p.error(f"--near {options.near:g}: must be from 0 to 1000000")
    for word in options.parts:
        if not chosen([word]):
            p.error(f"there is no part '{word}' (--list)")
    options.parts = chosen(options.parts)
    return options


def has_ucx():
    shown = subprocess.run(["ompi_info", "--parsable", "--param", "pml", "ucx", "--level", "9"], capture_output=True, text=True, check=False).stdout
    return "mca:pml:ucx:" in shown


def compile_with_mpich(programs, folder):
    """Returns whether MPICH can take part."""
    missing = [name for name in (MPICC, MPICH_RUN) if not shutil.which(name)]
    if missing:
        print(f"node: MPICH is left out: there is no {' and no '.join(missing)} (Debian: mpich, libmpich-dev)", file=sys.stderr)
        return False
    os.makedirs(folder, exist_ok=True)
    shared = [f"{TOP}/bench/bench_{name}.c" for name in ("common", "line", "operation", "options", "shared", "threads", "verify")]
    for program in programs:
        subprocess.run([MPICC, "-O2", "-w", "-o", f"{folder}/{program}", f"{TOP}/bench/{program}.c", *shared, "-lm", "-pthread"], check=True)
    return True


def nearest(options):
    """NEAR times the time of a cache line in the fastest of a few short runs, in ns. Between them the system may move the CPUs."""
    program = f"{options.prefix}/libexec/ompi-coop/coop_line_limit"
    call = ["mpirun", "-n", "2", "--bind-to", "core", *OB1.split(), program, "-m", "8", "-T", "0.2"]
    found = []
    for _ in range(LOOKS):
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        found += [1e3 * float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("8 ")]
    if not found:
        raise BadInput(f"cannot measure how near the cores are (give --near 0 to measure without): {done.stderr.strip()[-300:]}")
    return NEAR * min(found)


def settings_of(part, ranks, options, present):
    """{name: the start of the command}. The first is the base."""
    placed = "--bind-to core" if ranks <= len(os.sched_getaffinity(0)) else CROWDED
    program = shlex.quote(f"{options.prefix}/libexec/ompi-coop/{part.program}")
    start = f"mpirun -n {ranks} {placed} --mca btl_base_warn_component_unused 0"
    settings = {judge.BASE: f"{start} {COOP} {options.coop} {program}", "ob1": f"{start} {OB1} {program}"}
    if "ucx" in present:
        settings["ucx"] = f"{start} {UCX} {program}"
    if "mpich" in present and ranks <= len(os.sched_getaffinity(0)):
        settings["mpich"] = f"{MPICH_RUN} -n {ranks} -bind-to core {shlex.quote(f'{options.out}/mpich/{part.program}')}"
    for name, words in part.limits:
        program, *arguments = words.split()
        settings[name] = " ".join([start, OB1, shlex.quote(f"{options.prefix}/libexec/ompi-coop/{program}"), *arguments])
    return settings


def measure(name, options, present):
    """Returns whether all runs worked."""
    part = PARTS[name]
    ranks = min(part.ranks, QUICK_RANKS) if options.quick else part.ranks
    call = ["coop-ab", "--quiet", "--title", part.title, "--json", judge.path_of(name, options.out), "--keep-going", "--seed", "1", "--timeout", "300",
            "--repeats", str(1 if options.quick else options.rounds), "--base", judge.BASE]
    call += [f"--setting={setting}={words}" for setting, words in settings_of(part, ranks, options, present).items()]
    near = ["--near", f"{options.near:g}"] if options.near and part.takes_near() else []
    words = ["{}", *part.arguments.split(), *near, *(QUICK.split() if options.quick else [])]
    done = subprocess.run([*call, "--", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with open(f"{options.out}/node-{name}.txt", "w", encoding="utf-8") as file:
        file.write(done.stdout)
    if done.returncode:
        print(done.stdout, flush=True)
    return done.returncode == 0


def tell(options):
    lines = judge.report(judge.load(options.out))
    with open(f"{options.out}/node.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines), flush=True)
    if any(os.path.exists(judge.path_of(name, options.out)) for name in node.PARTS):
        draw_all({node.NAME: node.load(options.out)}, options.out)


def run(options):
    options.prefix, options.out = os.path.abspath(options.prefix), os.path.abspath(options.out)
    installation.use(options.prefix)
    os.makedirs(options.out, exist_ok=True)
    present = {name for name, there in (("ucx", has_ucx()), ("mpich", compile_with_mpich(sorted({PARTS[name].program for name in options.parts}),
                                                                                       f"{options.out}/mpich"))) if there}
    if "ucx" not in present:
        print("node: UCX is left out: this Open MPI has no pml/ucx", file=sys.stderr)
    if options.near is None and not options.quick and len(os.sched_getaffinity(0)) > 1 and any(PARTS[name].takes_near() for name in options.parts):
        options.near = round(nearest(options))
        print(f"node: half round trips and bandwidths count while a cache line takes at most {options.near:.0f} ns", file=sys.stderr, flush=True)
    failed = []
    for number, name in enumerate(options.parts):
        print(f"node: {number + 1} of {len(options.parts)}: {name}, {PARTS[name].title}", file=sys.stderr, flush=True)
        if not measure(name, options, present):
            failed.append(name)
    for name in failed:
        print(f"node: incomplete: {name}", file=sys.stderr)
    if not options.quick:
        tell(options)
    return 1 if failed else 0


def main(arguments):
    options = parse(arguments)
    if options.list:
        for name in options.parts:
            part = PARTS[name]
            print(f"{name}: {part.title}: {part.ranks} ranks, {part.program} {part.arguments}")
        return 0
    if options.redo:
        if not glob.glob(judge.path_of("*", options.out)):
            sys.exit(f"node: there is no node-*.json in {options.out} (--out FOLDER)")
        tell(options)
        return 0
    try:
        return run(options)
    except BadInput as error:
        sys.exit(f"node: {error}")
