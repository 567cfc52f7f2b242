#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares two verbose runs of mpi4py's test suite, test by test.

usage: mpi4py_compare.py [--windows LEAST] FOLDER-OF-STOCK FOLDER-OF-OURS

Each folder has one log per rank (as written by mpirun --output-filename: …/rank.N/stdout and stderr). A test passed in a
run if all ranks print "ok". Prints the tests that passed in the stock run but not in ours, and fails if there are any.

--windows 126: at least 126 tests of windows must pass in our run, also those that stock skips; a skipped one does not count.
"""
import argparse
import collections
import pathlib
import re
import sys

# The files with tests of windows: test_win.py, test_rma.py, test_rma_nb.py
WINDOWS = re.compile(r"test_(win|rma|rma_nb)\.")
RESULT = re.compile(r"^(\w+) \(([\w.]+)\)(?:.*?)\.\.\. *(.*)$")


def read_rank(folder):
    """Test id -> verdict, of one rank."""
    verdicts, pending = {}, None
    for name in ("stderr", "stdout"):
        path = folder / name
        if not path.exists():
            continue
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            found = RESULT.match(line)
            if found:
                # Python 3.11 prints "testName (module.Class.testName)"
                pending = found.group(2) if found.group(2).endswith(found.group(1)) else f"{found.group(2)}.{found.group(1)}"
                line = found.group(3)
            # A test's own output may precede its verdict.
            verdict = re.search(r"(ok|FAIL|ERROR|skipped .*)$", line)
            if pending and verdict:
                verdicts[pending] = verdict.group(1)
                pending = None
    return verdicts


def read_run(folder):
    """Test id -> list of verdicts of all ranks."""
    run = collections.defaultdict(list)
    ranks = sorted(p for p in pathlib.Path(folder).rglob("rank.*") if p.is_dir())
    for rank in ranks:
        for test, verdict in read_rank(rank).items():
            run[test].append(verdict)
    return {test: verdicts if len(verdicts) == len(ranks) else verdicts + ["missing"] for test, verdicts in run.items()}


def passed(verdicts):
    return bool(verdicts) and all(v == "ok" for v in verdicts)


def windows_fail(stock, ours, least):
    """Whether fewer than `least` tests of windows pass, or any fails, in our run."""
    ran = {test: verdicts for test, verdicts in ours.items() if WINDOWS.match(test)}
    good = [test for test in ran if passed(ran[test])]
    by_stock = sum(passed(stock.get(test, [])) for test in good)
    print(f"windows: {len(good)} of {len(ran)} tests pass here, {len(good) - by_stock} of those do not pass under stock")
    for test in sorted(ran.keys() - set(good)):
        print(f"windows, not passed here: {test}: {ran[test]}")
    if len(good) < least:
        print(f"windows: {len(good)} tests pass, of at least {least}")
    failed = any(not v.startswith(("ok", "skipped")) for verdicts in ran.values() for v in verdicts)
    return failed or len(good) < least


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int)
    parser.add_argument("stock")
    parser.add_argument("ours")
    options = parser.parse_args()
    stock, ours = read_run(options.stock), read_run(options.ours)
    good = [test for test, verdicts in stock.items() if passed(verdicts)]
    lost = [test for test in good if not passed(ours.get(test, []))]
    skipped = sum(all(v.startswith("skipped") for v in verdicts) for verdicts in stock.values())
    print(f"{len(stock)} tests; {len(good)} pass under stock, {skipped} are skipped; of those {len(good) - len(lost)} pass here")
    for test in sorted(stock):
        if not passed(stock[test]) and not all(v.startswith("skipped") for v in stock[test]):
            print(f"not passed under stock: {test}: {stock[test]}")
    for test in lost:
        print(f"LOST {test}: {ours.get(test, 'not run')}")
    if len(good) < 500:
        print("too few passed under stock for a comparison")
        return 1
    return 1 if (options.windows is not None and windows_fail(stock, ours, options.windows)) or lost else 0


if __name__ == "__main__":
    sys.exit(main())
