# SPDX-License-Identifier: BSD-3-Clause
"""The frame of a command-line program: how it reports wrong options, and how it ends early."""

import argparse
import signal
import sys

from .errors import INTERRUPTED, BadInput, RunFailed


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadInput(f"{message} (--help lists the options)")


def terminated(_signal, _frame):
    raise KeyboardInterrupt


def run(name, main):
    """Calls main() and returns its exit code, or reports the error that ended it and returns that error's exit code."""
    signal.signal(signal.SIGTERM, terminated)  # stops a running command as an interrupt does
    try:
        return main()
    except (BadInput, RunFailed) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return INTERRUPTED
