# SPDX-License-Identifier: BSD-3-Clause
"""Runs the jobs in rounds. A round runs every setting of every job once, in coop-ab's order, so that a drift of the machine
affects all of them alike. Records are as in coop-ab, except that a value is the list of all columns of a row ('-' is None)."""

import sys
import time

from coop_ab import record as records, session
from coop_ab.errors import RunFailed
from coop_ab.reading import Unreadable, number
from coop_ab.run import run

from .jobs import settings_of
from .protocols import SETTINGS

RUN_TIMEOUT_S = 60


class AllColumns:
    """Reads rows `SIZE VALUE ...`, and the lines of coop_stencil about each rank (`# rank SIZE RANK ...`)."""

    def __init__(self):
        self.ranks = []

    def describe(self):
        return "all columns"

    def read(self, text, _wall_s):
        rows, self.ranks = {}, []
        for line in text.splitlines():
            words = line.split()
            if words[:2] == ["#", "rank"] and words[2:] and number(words[2]) is not None:
                self.ranks.append([number(word) for word in words[2:]])
            elif words and number(words[0]) is not None and len(words) > 1:
                rows[int(number(words[0]))] = [number(word) for word in words[1:]]
        if not rows:
            raise Unreadable("no line 'SIZE VALUE'")
        return rows


class Progress:
    """One line per run, with the remaining time as extrapolated from the runs until now."""

    def __init__(self, runs, quiet):
        self.runs, self.quiet, self.done, self.start = runs, quiet, 0, time.monotonic()

    def step(self, label, error):
        self.done += 1
        spent = time.monotonic() - self.start
        left = session.duration(spent / self.done * (self.runs - self.done))
        if not self.quiet:
            print(f"[{spent:4.0f} s] {self.done}/{self.runs} {label}{': FAILED' if error else ''}, at most {left} left",
                  file=sys.stderr, flush=True)


def available(mpirun, bench):
    """Names of the settings that can send a message on this machine. Prints why the others are left out."""
    present = []
    for setting in SETTINGS.values():
        command = [mpirun, "-n", "2", "--oversubscribe", "{}", f"{bench}/coop_bw", "-m", "64K", "-i", "1", "-b", "1", "-x", "0"]
        result = run(command, setting, RUN_TIMEOUT_S)
        if result.complaint():
            reason = next((line for line in result.err.splitlines() if line.strip(" -*")), "").strip()
            print(f"coop-figures: {setting.name} is left out: {result.complaint()}{': ' if reason else ''}{reason}",
                  file=sys.stderr)
        else:
            present.append(setting.name)
    if not present:
        raise RunFailed("no setting works here (is Open MPI's mpirun in the PATH, and was coop-env evaluated?)")
    return present


def new_record(job, settings, command, seed, rounds):
    record = records.new(command, settings, settings[-1].name, AllColumns(), seed, rounds, RUN_TIMEOUT_S)
    record["title"] = job.name
    return record


def one_run(record, setting, position, round_number):
    reader = AllColumns()
    sample, header, details = session.one_sample(record, setting, reader)
    for name in ("unit", "better"):
        record[name] = record[name] or header.get(name, "")
    sample["ranks"] = reader.ranks
    record["runs"].append({"round": round_number, "position": position, **sample})
    if sample["error"]:
        print(f"coop-figures: left out: {details}", file=sys.stderr)
    return sample["error"]


def measure(figures, present, options, cores):
    """Returns {figure: [records]} and the number of failed runs. Ends after options.rounds, or before a round that would
    exceed the time limit."""
    plan = []  # (figure, record, settings, orders)
    for figure, jobs in figures.items():
        for job in jobs:
            settings = settings_of(job, present)
            if settings:
                command = job.command(options.mpirun, options.bench, cores)
                plan.append((figure, new_record(job, settings, command, options.seed, options.rounds), settings,
                             session.orders(len(settings), options.rounds, options.seed)))
    progress = Progress(options.rounds * sum(len(settings) for _, _, settings, _ in plan), options.quiet)
    start, longest, failures = time.monotonic(), 0.0, 0
    for number_ in range(options.rounds):
        begin = time.monotonic()
        if number_ and begin - start + longest > options.minutes * 60:
            print(f"coop-figures: {number_} of {options.rounds} rounds fit into {options.minutes:g} minutes", file=sys.stderr)
            break
        for _, record, settings, orders in plan:
            for position, index in enumerate(orders[number_]):
                error = one_run(record, settings[index], position, number_ + 1)
                failures += error is not None
                progress.step(f"round {number_ + 1}  {record['title']}  "
                              f"{settings[index].name}", error)
        longest = max(longest, time.monotonic() - begin)
    result = {}
    for figure, record, _, _ in plan:
        record["complete"] = True
        result.setdefault(figure, []).append(record)
    return result, failures
