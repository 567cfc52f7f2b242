# SPDX-License-Identifier: BSD-3-Clause
"""What can end coop-ab early, with the exit code of each."""

OK = 0
GATE_VIOLATED = 1
BAD_INPUT = 2
RUN_FAILED = 3
INTERRUPTED = 130


class BadInput(Exception):
    """The command line or a file is wrong; the text is one line."""


class RunFailed(Exception):
    """A run of the command failed, timed out, or printed nothing that can be read. The text may have several lines."""
