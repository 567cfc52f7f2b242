#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the built programs of MPICH's test/mpi by their testlists, under stock ob1 and under another pml, and compares.

usage: conformance.py --tree DIR --pml NAME --cache FILE [--long] --folders pt2pt,comm … -- mpirun COMMON…

A test is a line of a testlist. It passes as MPICH's own runner says: exit status 0 and "No Errors" as its output. Prints
a PASS line per folder, and FAIL with the name for each test that passes under ob1 and not here. The results under ob1 are
kept in FILE; they do not depend on what is tested. There each test is "pass", "fail", "unstable", or "long".
"""
import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

# Seconds. Hang guards: under ob1 nearly all take less than one. Those that take longer than LONG are left to --long.
TIME_LIMIT = 40
LONG = 15


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", required=True)
    parser.add_argument("--pml", required=True)
    parser.add_argument("--cache", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--folders", required=True)
    parser.add_argument("mpirun", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    options.mpirun = options.mpirun[1:]  # without the --
    return options


class Test:
    def __init__(self, folder, line):
        words = line.split()
        self.folder = folder
        self.program = os.path.basename(words[0])
        self.ranks = int(words[1]) if len(words) > 1 else 2
        self.arguments = [w[4:] for w in words[2:] if w.startswith("arg=")]
        self.settings = dict(w.split("=", 1) for w in words[2:] if "=" in w and not w.startswith("arg="))
        # With its settings for MPICH alone (env=MPIR_CVAR…) a line is the same test again.
        self.name = "/".join([folder, self.program, str(self.ranks)] + self.arguments)

    def wanted(self, long):
        if "xfail" in self.settings or float(self.settings.get("mem", 0)) > 4:
            return False
        if long:
            return self.ranks <= 16
        # The smaller half: collectives on many ranks are the same messages again.
        return self.ranks <= (5 if self.folder.startswith("coll") else 8)


def read_tests(tree, folder, long):
    """The tests of a folder that were built, without doubles; and how many were not built."""
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


def run(test, pml, options, limit=TIME_LIMIT):
    """(passed, seconds, output) of one start."""
    command = options.mpirun + ["--mca", "pml", pml, "-np", str(test.ranks), "./" + test.program] + test.arguments
    start = time.monotonic()
    with subprocess.Popen(command, cwd=os.path.join(options.tree, test.folder), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as job:
        try:
            output = job.communicate(timeout=limit)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGTERM)  # mpirun ends its processes
            try:
                output = job.communicate(timeout=10)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGKILL)
                output = job.communicate()[0].decode(errors="replace")
            output += "\n(hang: ended after the time limit)\n"
        passed = job.returncode == 0 and re.search(r"^ *(No Errors|Test passed)", output, re.M | re.I) is not None
    return passed, time.monotonic() - start, output


def write_log(options, test, pml, output, command_note=""):
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", test.name)[:120]
    path = os.path.join(options.log, f"{name}.{pml}.log")
    with open(path, "w", encoding="utf-8") as log:
        log.write(f"{shlex.join(options.mpirun)} --mca pml {pml} -np {test.ranks} ./{test.program} "
                  f"{shlex.join(test.arguments)}\n{command_note}{output}")
    return path


def stock_result(test, options, cache):
    """How ob1 does it, as in the cache; a long one counts as failed in the short run, after which --long asks again."""
    known = cache.get(test.name)
    if known is None or (known == "long" and options.long):
        passed, seconds, output = run(test, "ob1", options, 10 * TIME_LIMIT if options.long else TIME_LIMIT)
        write_log(options, test, "ob1", output)
        known = "pass" if passed else "fail"
        if seconds > LONG and not options.long:
            known = "long"
        cache[test.name] = known
        save(options.cache, cache)
    return known


def save(path, cache):
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(cache, f, indent=1, sort_keys=True)
    os.replace(path + ".new", path)


def fails_for_good(test, options, cache):
    """After a first failure: twice more, and under ob1 too. The machine may have been too busy, or ob1 luckier."""
    for _ in range(3):
        if not run(test, "ob1", options)[0]:
            cache[test.name] = "unstable"
            save(options.cache, cache)
            return False
    if all(run(test, options.pml, options)[0] for _ in range(2)):
        print(f"note: {test.name} failed once of three times", file=sys.stderr)
        return False
    return True


def check_folder(folder, options, cache):
    """The number of failures."""
    tests, missing = read_tests(options.tree, folder, options.long)
    start, passed, failed, left_out = time.monotonic(), 0, 0, {"fail": [], "unstable": [], "long": []}
    for test in tests:
        known = stock_result(test, options, cache)
        if known == "pass" and options.pml != "ob1":
            ok, _, output = run(test, options.pml, options, 10 * TIME_LIMIT if options.long else TIME_LIMIT)
            path = write_log(options, test, options.pml, output)
            if not ok and fails_for_good(test, options, cache):
                failed += 1
                print(f"FAIL mpich.{test.name}\n    log: {path}")
                print("".join(f"    {line[:300]}\n" for line in output.splitlines()[-12:]), end="", flush=True)
                continue
        known = cache[test.name]
        passed += known == "pass"
        if known != "pass":
            left_out[known].append(test.name)
    for why, names in left_out.items():
        if names:
            print(f"note: {folder}: {why} under stock ob1, hence left out: {' '.join(names)}", file=sys.stderr)
    if failed == 0:
        counts = ", ".join(f"{len(names)} {why}" for why, names in left_out.items())
        print(f"PASS mpich.{folder}: {passed} tests; under ob1 {counts}; {missing} not built "
              f"({time.monotonic() - start:.0f})", flush=True)
    return failed


def main():
    options = parse_arguments()
    os.makedirs(options.log, exist_ok=True)
    cache = {}
    if os.path.exists(options.cache):
        with open(options.cache, encoding="utf-8") as f:
            cache = json.load(f)
    return 1 if sum(check_folder(folder, options, cache) for folder in options.folders.split(",")) else 0


if __name__ == "__main__":
    sys.exit(main())
