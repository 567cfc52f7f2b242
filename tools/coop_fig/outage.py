# SPDX-License-Identifier: BSD-3-Clause
"""Runs coop_failover on a software subnet while rails fail and come back, and reads when messages arrived. All times are those of
CLOCK_MONOTONIC, which the trace of the subnet has, too."""

import array
import contextlib
import dataclasses
import itertools
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

_numbers = itertools.count(1)


@dataclasses.dataclass
class Outcome:
    status: int        # of the job
    timed_out: bool
    started: float     # when the ranks were connected; None if they never were
    arrivals: dict     # rank: when its messages arrived
    trace: list        # (time, words)
    text: str          # what the job printed

    def first(self, pattern, since=0.0):
        """The time of the first entry of the trace that matches, not before `since`; None if there is none."""
        return next((at for at, words in self.trace if at >= since and re.search(pattern, words)), None)

    def ended_well(self):
        return self.status == 0 and not self.timed_out


def read_trace(path):
    """A line is 'SECONDS s  words'. The first one has the time of CLOCK_MONOTONIC at which the subnet was made."""
    entries, zero = [], None
    with open(path, encoding="utf-8") as file:
        for line in file:
            found = re.match(r" *([0-9.]+) s  (.*)", line)
            if not found:
                continue
            clock = re.search(r"([0-9.]+) s of CLOCK_MONOTONIC", found[2])
            if clock and zero is None:
                zero = float(clock[1]) - float(found[1])
            entries.append((float(found[1]), found[2].rstrip()))
    return [(at + (zero or 0.0), words) for at, words in entries]


def read_times(path):
    """The times up to the first zero."""
    times = array.array("d")
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 16):
                times.frombytes(block[:len(block) // 8 * 8])
                if times[-1] == 0.0:
                    break
    except FileNotFoundError:
        return []
    return list(itertools.takewhile(bool, times))


class _Reader(threading.Thread):
    """Collects what the job prints, and notices when the ranks are connected."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.lines, self.started, self.at = stream, [], threading.Event(), None
        self.start()

    def run(self):
        for line in self.stream:
            if line.startswith("started"):
                self.at = time.monotonic()
                self.started.set()
            self.lines.append(line)
        self.started.set()


@contextlib.contextmanager
def _on_time():
    """Ranks that yield all the time can keep a process that sleeps from its core for seconds (Linux 6.18), so that faults come late."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        yield  # takes root
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def _act(tool, subnet, steps, begin, process):
    """Performs each (seconds, words) at its time, unless the job has ended."""
    for at, words in steps:
        time.sleep(max(0.0, begin + at - time.monotonic()))
        if process.poll() is not None:
            return
        subprocess.run([tool, *words.split(), "--subnet", subnet], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def run(tool, subnet_options, job, program_options, steps, limit_s, at_first=()):
    """Runs `job` (mpirun with its arguments and the program) on a subnet of its own. `steps`: (seconds after the ranks are connected,
    words of coop-fabric), `at_first`: words that are performed as soon as the subnet is there."""
    name = f"outage-{os.getpid()}-{next(_numbers)}"
    with tempfile.TemporaryDirectory(prefix="coop-outage-") as folder:
        command = [tool, "run", "--name", name, "--trace-to", f"{folder}/trace", *subnet_options, "--", *job, *program_options,
                   "-o", f"{folder}/times"]
        # A process group and not a session, which the kernel would schedule as a group of its own: faults would come late.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace", process_group=0)
        late = threading.Event()

        def end(number):
            late.set()
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                pass

        timers = [threading.Timer(limit_s, end, [signal.SIGTERM]), threading.Timer(limit_s + 5, end, [signal.SIGKILL])]
        for timer in timers:
            timer.daemon = True
            timer.start()
        try:
            reader = _Reader(process.stdout)
            if at_first:
                while process.poll() is None and not os.path.exists(f"{folder}/trace"):
                    time.sleep(0.005)
                _act(tool, name, [(0.0, words) for words in at_first], time.monotonic(), process)
            reader.started.wait()
            if reader.at is not None:
                with _on_time():
                    _act(tool, name, steps, reader.at, process)
            status = process.wait()
            reader.join(5)
        except BaseException:
            end(signal.SIGTERM)
            process.wait()
            raise
        finally:
            for timer in timers:
                timer.cancel()
        try:
            trace = read_trace(f"{folder}/trace")
        except FileNotFoundError:
            trace = []
        arrivals = {rank: read_times(f"{folder}/times.{rank}") for rank in (0, 1)}
        return Outcome(status, late.is_set(), reader.at, arrivals, trace, "".join(reader.lines))


def longest_gap(times, since, until):
    """(begin, end) of the longest time without a message that ends after `since` and begins before `until`; None without messages."""
    best = None
    for before, after in zip(times, times[1:]):
        if after > since and before < until and (best is None or after - before > best[1] - best[0]):
            best = (before, after)
    return best


def rate(times, begin, end, size):
    """MB/s of the messages of `size` bytes between two times: from the first to the last of them."""
    inside = [at for at in times if begin <= at <= end]
    if len(inside) < 2 or inside[-1] == inside[0]:
        return None
    return (len(inside) - 1) * size / (inside[-1] - inside[0]) * 1e-6


def bins(times, begin, end, width, size):
    """MB/s in each interval of `width` seconds."""
    counts = [0] * int(round((end - begin) / width))
    for at in times:
        place = int((at - begin) / width)
        if at >= begin and place < len(counts):
            counts[place] += 1
    return [count * size / width * 1e-6 for count in counts]
