#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the built programs of MPICH's test/mpi by their testlists under a pml: tests that pass under stock ob1 must pass there.

usage: conformance.py --tree DIR --pml NAME --log DIR [--long] [--rdmaag LEAST] [--osc NAME] --folders pt2pt:90,comm … -- mpirun COMMON…

A test is a line of a testlist. As in MPICH's own runner, it passes with exit status 0 and the output "No Errors". A test that
fails is run under ob1, too. Prints a PASS line per folder if no test is worse here than under ob1 and at least as many pass as the
number after the folder (default 1); FAIL with the name for each test that passes under ob1 and not here; SKIP for each that ob1
fails; RETRIED for each that failed here once of three times. A test that reached the time limit, perhaps because the machine is busy,
has several times as long in its second and third run.

--rdmaag 9: coll/rdmaag is on, not under ob1. At least 9 tests of the folder coll must have done allgathers by it.

--osc NAME: windows are of this component only, not under ob1. There Open MPI selects a component; a test that fails with it is run with
osc/pt2pt, too, which Debian's settings exclude, and if it passes, that is what ours is compared with. With --long, the tests of windows
that pass here and under ob1 with neither are printed: BEYOND.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import signal
import subprocess
import sys
import time

# Seconds. Hang guards: nearly all tests take less than one. Tests that need more run only with --long.
TIME_LIMIT = 20
FURTHER_TIME_LIMIT = 120
LONG_TIME_LIMIT = 400
# For osc/pt2pt, which hangs in some tests and needs at most 15 s for the others.
OTHER_OSC_TIME_LIMIT = 60
# Programs, or programs with their arguments. Tens of thousands of communicators, or many duplicated at once by six ranks; gigabytes of
# puts and accumulates: on two cores these reach the limit under both pmls.
SLOW = {"ctxalloc", "ctxsplit", "comm_idup_nb", "comm_idup_isend", "rma_contig -iter=10000", "derived_acc_flush_local",
        "large_acc_flush_local"}
# The tests of windows.
RMA_FOLDERS = {"rma", "threads/rma", "errors/rma"}
# Jobs at a time. Half of the time of a short job is mpirun's start and end.
JOBS = 2
RDMAAG = ["--mca", "coll_rdmaag_priority", "40", "--mca", "coll_rdmaag_report", "1"]
# Components for windows under ob1: the default, else these (sm: shared windows).
STOCK_OSC = [None, "sm,pt2pt"]
HANG = "\n(hang: ended after the time limit)\n"


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", required=True)
    parser.add_argument("--pml", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--rdmaag", type=int, default=0)
    parser.add_argument("--osc")
    parser.add_argument("--folders", required=True)
    parser.add_argument("mpirun", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    options.mpirun = options.mpirun[1:]  # without the --
    options.limit = LONG_TIME_LIMIT if options.long else TIME_LIMIT
    return options


class Test:
    def __init__(self, folder, line):
        words = line.split()
        self.folder = folder
        self.program = os.path.basename(words[0])
        self.ranks = int(words[1]) if len(words) > 1 else 2
        self.arguments = [w[4:] for w in words[2:] if w.startswith("arg=")]
        self.settings = dict(w.split("=", 1) for w in words[2:] if "=" in w and not w.startswith("arg="))
        # A line with other settings for MPICH only (env=MPIR_CVAR…) is the same test again.
        self.name = "/".join([folder, self.program, str(self.ranks)] + self.arguments)

    def wanted(self, long):
        if "xfail" in self.settings or float(self.settings.get("mem", 0)) > 4:
            return False
        if long:
            return self.ranks <= 16
        # The smaller half: collectives on many ranks send the same kinds of messages, except those of coll/rdmaag.
        most = 10 if "allgather" in self.program else 5 if self.folder.startswith("coll") else 8
        return SLOW.isdisjoint({self.program, " ".join([self.program] + self.arguments)}) and self.ranks <= most


def read_tests(tree, folder, long):
    """The tests of a folder that were built, without duplicates; and how many were not built."""
    tests, missing = {}, 0
    with open(os.path.join(tree, folder, "testlist"), encoding="utf-8") as lines:
        for line in lines:
            line = line.split("#")[0].strip()
            if not line or not re.match(r"\S+\s+\d+", line):
                continue  # a comment, or a folder
            test = Test(folder, line)
            if not test.wanted(long) or test.name in tests:
                continue
            if os.access(os.path.join(tree, folder, test.program), os.X_OK):
                tests[test.name] = test
            else:
                missing += 1
    return list(tests.values()), missing


def chosen(pml, osc, options):
    """Arguments of mpirun that choose the components of a run."""
    rdmaag = RDMAAG if options.rdmaag and pml != "ob1" else []
    return rdmaag + (["--mca", "osc", osc] if osc else []) + ["--mca", "pml", pml]


def run(test, pml, osc, options, further=False):
    """(passed, output) of one start. Its log is kept, except that of a further attempt that passes."""
    command = options.mpirun + chosen(pml, osc, options) + ["-np", str(test.ranks), "./" + test.program] + test.arguments
    with subprocess.Popen(command, cwd=os.path.join(options.tree, test.folder), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as job:
        try:
            limit = max(options.limit, FURTHER_TIME_LIMIT) if further else options.limit
            if osc in STOCK_OSC[1:]:
                limit = min(limit, OTHER_OSC_TIME_LIMIT)
            output = job.communicate(timeout=limit)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGTERM)  # mpirun ends its processes
            try:
                output = job.communicate(timeout=10)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)
                output = job.communicate()[0].decode(errors="replace")
            output += HANG
        passed = job.returncode == 0 and re.search(r"^ *(No Errors|Test passed)", output, re.M | re.I) is not None
    if not (further and passed):
        with open(log_path(test, pml, options), "w", encoding="utf-8") as log:
            log.write(f"{shlex.join(command)}\n{output}")
    return passed, output


def log_path(test, pml, options):
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", test.name)[:120]
    return os.path.join(options.log, f"{name}.{pml}.log")


def used_rdmaag(path):
    with open(path, encoding="utf-8") as log:
        return re.search(r"coll/rdmaag: rank \d+: (doubling|bruck|ring|neighbour) ", log.read()) is not None



def stock_osc(test, options):
    """(True, the components for windows with which the test passes under ob1), or (False, None)."""
    for osc in STOCK_OSC if options.osc else STOCK_OSC[:1]:
        if run(test, "ob1", osc, options)[0]:
            return True, osc
    return False, None


def judge(test, options):
    """"pass"; "beyond": passes, and ob1 fails; "retried": passes twice of three times; "fail": ob1 fails, too; "unstable": ob1 passes
    sometimes; or "worse": ob1 passes each time."""
    passed = run(test, options.pml, options.osc, options)[0]
    if passed:
        compare = options.osc and options.long and test.folder in RMA_FOLDERS
        return "beyond" if compare and not stock_osc(test, options)[0] else "pass"
    if options.pml == "ob1":
        return "fail"
    passed, osc = stock_osc(test, options)
    if not passed:
        return "fail"
    # The machine may have been too busy, or ob1 passed by chance.
    if not all(run(test, "ob1", osc, options, further=True)[0] for _ in range(2)):
        return "unstable"
    if all(run(test, options.pml, options.osc, options, further=True)[0] for _ in range(2)):
        return "retried"
    return "worse"


def check_folder(folder, least, options):
    """Runs the tests of a folder and reports. Returns the number of failures."""
    tests, missing = read_tests(options.tree, folder, options.long)
    start, names = time.monotonic(), {"pass": [], "beyond": [], "retried": [], "fail": [], "unstable": [], "worse": []}
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        verdicts = list(pool.map(lambda test: judge(test, options), tests))
    for test, verdict in zip(tests, verdicts):
        names[verdict].append(test.name)
        if verdict == "worse":
            path = log_path(test, options.pml, options)
            print(f"FAIL mpich.{test.name}\n    log: {path}")
            with open(path, encoding="utf-8") as log:
                print("".join(f"    {line[:300]}\n" for line in log.read().splitlines()[-12:]), end="", flush=True)
    for name in names["fail"]:
        print(f"SKIP mpich.{name}: stock ob1 fails it, too")
    for name in names["unstable"]:
        print(f"SKIP mpich.{name}: stock ob1 does not always pass it")
    for name in names["retried"]:
        print(f"RETRIED mpich.{name}: failed once of three times")
    for name in names["beyond"]:
        print(f"BEYOND mpich.{name}: passes here, stock ob1 fails it")
    passed = sum(len(names[verdict]) for verdict in ("pass", "beyond", "retried"))
    by_rdmaag = sum(used_rdmaag(log_path(test, options.pml, options)) for test in tests) if options.rdmaag else 0
    if folder == "coll" and by_rdmaag < options.rdmaag:
        print(f"FAIL mpich.{folder}: {by_rdmaag} tests use coll/rdmaag, of at least {options.rdmaag}", flush=True)
        return len(names["worse"]) + 1
    if passed < least:
        print(f"FAIL mpich.{folder}: {passed} tests pass, of at least {least}; {len(tests)} were built, {missing} not", flush=True)
        return len(names["worse"]) + 1
    if not names["worse"]:
        print(f"PASS mpich.{folder}: {passed} tests, {by_rdmaag} of them use coll/rdmaag; {missing} not built "
              f"({time.monotonic() - start:.0f})", flush=True)
    return len(names["worse"])


def main():
    options = parse_arguments()
    os.makedirs(options.log, exist_ok=True)
    failed = 0
    for folder in options.folders.split(","):
        name, _, least = folder.partition(":")
        failed += check_folder(name, int(least or 1), options)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
