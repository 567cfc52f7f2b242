# SPDX-License-Identifier: BSD-3-Clause
"""The loop: rounds of runs, one run per setting, in an order that spreads a drift of the machine over all settings."""

import random
import sys
import time

from . import host
from .errors import RunFailed
from .reading import Unreadable, read_header
from .run import run
from .settings import shown


def balanced(count):
    """The smallest number of rounds in which each of `count` settings is the first of a round equally often."""
    return count if count % 2 == 0 else 2 * count


def balanced_rounds(count, least=10):
    """A number of rounds that favours no setting. With the default of 10, the 95 % interval reaches from the second smallest
    to the second largest ratio."""
    return -(-least // balanced(count)) * balanced(count)


def orders(count, rounds, seed):
    """The order of the settings in each round. Rounds come in pairs: an order, then its mirror image (A B, B A), so that over
    a pair each setting has the same mean position and a slow drift of the machine cancels. The orders of balanced(count)
    rounds are rotations of one random order, chosen so that each setting is the first of a round equally often, because the
    first run of a round may find the machine in another state than the second."""
    generator = random.Random(seed)
    result = []
    while len(result) < rounds:
        order = list(range(count))
        generator.shuffle(order)
        for start in range(0, count, 2 if count % 2 == 0 else 1):
            rotated = order[start:] + order[:start]
            result += [rotated, rotated[::-1]]
    return result[:rounds]


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


class Progress:
    """One line per run on stderr. On a terminal each replaces the one before."""

    def __init__(self, runs, quiet):
        self.left, self.quiet, self.spent, self.done = runs, quiet, 0.0, 0
        self.terminal = sys.stderr.isatty()

    def before(self, text):
        eta = f", about {duration(self.spent / self.done * self.left)} left" if self.done else ""
        if not self.quiet and self.terminal:
            print(f"\r\033[K{text} ...{eta}", end="", file=sys.stderr, flush=True)

    def after(self, text, wall_s):
        self.left, self.done, self.spent = self.left - 1, self.done + 1, self.spent + wall_s
        if not self.quiet and not self.terminal:
            eta = f", about {duration(self.spent / self.done * self.left)} left" if self.left else ""
            print(f"{text}: {wall_s:.1f} s{eta}", file=sys.stderr, flush=True)

    def close(self):
        if not self.quiet and self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def one_sample(record, setting, reader):
    """Runs once. Returns the sample for the record, the header that the program printed, and details for an error message."""
    load = host.load()
    result = run(record["command"], setting, record["timeout_s"])
    sample = {"setting": setting.name, "wall_s": round(result.wall_s, 6), "load": load, "exit_code": result.exit_code,
              "error": result.complaint(), "values": []}
    if not sample["error"]:
        try:
            sample["values"] = [list(pair) for pair in reader.read(result.out, result.wall_s).items()]
        except Unreadable as error:
            sample["error"] = str(error)
    details = f"setting {setting.name}: {sample['error']}\n  {shown(record['command'], setting)}\n{result.tail()}"
    return sample, read_header(result.out), details


def measure(record, settings, reader, on_header, warmup, keep_going, quiet):
    """Fills record["runs"]. Calls on_header(header) after the first successful run, so that a missing direction is an error
    after seconds and not after the last round."""
    rounds, count = record["rounds"], len(settings)
    # The rounds after the warm-up start with a balanced order of their own.
    plan = list(enumerate(orders(count, warmup, record["seed"]), 1 - warmup)) + list(enumerate(orders(count, rounds, record["seed"]), 1))
    progress = Progress(len(plan) * len(settings), quiet)
    header_seen = False
    try:
        for number, order in plan:
            for position, index in enumerate(order):
                setting = settings[index]
                label = f"round {number}/{rounds}  {setting.name}" if number > 0 else f"warm-up  {setting.name}"
                progress.before(label)
                start = time.monotonic()
                sample, header, details = one_sample(record, setting, reader)
                progress.after(label, time.monotonic() - start)
                if sample["error"]:
                    if not keep_going:
                        raise RunFailed(details)
                    progress.close()
                    print(f"coop-ab: {label}: left out: {details}", file=sys.stderr)
                elif not header_seen:
                    header_seen = True
                    on_header(header)
                if number > 0:
                    record["runs"].append({"round": number, "position": position, **sample})
    finally:
        progress.close()
        record["host"]["load_after"] = host.load()
