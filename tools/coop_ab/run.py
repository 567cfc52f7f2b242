# SPDX-License-Identifier: BSD-3-Clause
"""One run of the command."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import tempfile
import threading
import time

from .errors import BadInput
from .settings import expand

TAIL_LINES = 20
GRACE_S = 3


@dataclasses.dataclass
class Run:
    out: str
    err: str
    wall_s: float
    exit_code: int  # negative: killed by that signal
    timeout_s: float
    timed_out: bool

    def complaint(self):
        """The reason why this run does not count, or None."""
        if self.timed_out:
            return f"did not end within {self.timeout_s:g} s (--timeout)"
        if self.exit_code < 0:
            return f"killed by signal {-self.exit_code}"
        return f"exit code {self.exit_code}" if self.exit_code else None

    def tail(self):
        parts = []
        for name, text in (("stdout", self.out), ("stderr", self.err)):
            lines = text.rstrip().splitlines()[-TAIL_LINES:]
            parts += [f"  last lines of {name}:"] + [f"    {line}" for line in lines] if lines else []
        return "\n".join(parts) or "  (no output)"


class Deadline:
    """Ends a process group with SIGTERM (which mpirun passes on to its ranks) and a little later SIGKILL. It uses a timer
    thread, because Popen.wait(timeout) polls every 50 ms, which would limit the resolution of the wall time."""

    def __init__(self, process):
        self.process, self.passed, self.timer = process, False, None

    def within(self, seconds, number=signal.SIGTERM):
        self.timer = threading.Timer(seconds, self.end, [number])
        self.timer.daemon = True
        self.timer.start()

    def end(self, number):
        self.passed = True
        if number == signal.SIGTERM:
            self.within(GRACE_S, signal.SIGKILL)
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def cancel(self):
        self.timer.cancel()


@contextlib.contextmanager
def signals_held():
    """Collects SIGINT and SIGTERM in the list that it yields. While a process is being started, a signal that ended us
    would leave that process running."""
    came = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def start_process(argv, setting, out, err):
    try:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, **setting.env},
                                start_new_session=True)
    except (OSError, IndexError) as error:
        reason = getattr(error, "strerror", None) or "the command is empty"
        raise BadInput(f"cannot run '{argv[0] if argv else ''}': {reason}") from None


def run(command, setting, timeout_s):
    argv = expand(command, setting)
    deadline = None
    # Files, not pipes: a stray grandchild that keeps a pipe open could block us forever.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        # Signals are held from before the process exists until they would end it.
        try:
            with signals_held() as came:
                process = start_process(argv, setting, out, err)
                deadline = Deadline(process)
                deadline.within(timeout_s)
            for number in came:
                signal.raise_signal(number)
            process.wait()
        except KeyboardInterrupt:
            if deadline:
                deadline.cancel()
                deadline.end(signal.SIGTERM)
                process.wait()
            raise
        finally:
            if deadline:
                deadline.cancel()
        wall_s = time.monotonic() - start
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        return Run(texts[0], texts[1], wall_s, process.returncode, timeout_s, deadline.passed)
