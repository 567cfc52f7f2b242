# SPDX-License-Identifier: BSD-3-Clause
"""Runs the engine, several at a time. A run takes a dictionary of options and returns a dictionary of results."""

import concurrent.futures
import json
import subprocess
import sys
import time

from coop_ab.errors import BadInput, RunFailed


def words(options):
    """{"fat-tree": "12,12:12", "usage": True} as a command line."""
    line = []
    for name, value in options.items():
        if value is True:
            line.append(f"--{name}")
        elif value is not None and value is not False:
            line += [f"--{name}", str(value)]
    return line


def run(engine, options, progress=False):
    command = [engine] + words(options) + (["--progress"] if progress else [])
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=None if progress else subprocess.PIPE,
                              text=True, check=False)
    except OSError as error:
        raise BadInput(f"cannot run the engine '{engine}': {error.strerror}") from None
    if done.returncode == 0:
        return json.loads(done.stdout)
    reason = (done.stderr or "").strip().removeprefix("coop-sim: ") or f"the engine ended with {done.returncode}"
    raise (BadInput if done.returncode == 2 else RunFailed)(reason)


class Progress:
    def __init__(self, total, quiet):
        self.total, self.quiet, self.done, self.begin = total, quiet, 0, time.monotonic()

    def step(self, what):
        self.done += 1
        if not self.quiet:
            print(f"coop-sim: {self.done}/{self.total}  {time.monotonic() - self.begin:.0f} s  {what}", file=sys.stderr, flush=True)


def run_all(engine, runs, jobs, quiet):
    """runs: {name: options}. Returns the results by name, in the same order."""
    progress, results = Progress(len(runs), quiet), {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(run, engine, options): name for name, options in runs.items()}
        try:
            for future in concurrent.futures.as_completed(waiting):
                results[waiting[future]] = future.result()
                progress.step(waiting[future])
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
    return {name: results[name] for name in runs}
