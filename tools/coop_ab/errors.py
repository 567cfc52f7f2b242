# SPDX-License-Identifier: BSD-3-Clause
"""Exit codes, and the errors that end a program early."""

OK = 0
GATE_VIOLATED = 1
BAD_INPUT = 2
RUN_FAILED = 3
INTERRUPTED = 130


class BadInput(Exception):
    """The command line or a file is wrong. The text is one line."""

    exit_code = BAD_INPUT


class RunFailed(Exception):
    """A run of the command failed, timed out, or printed nothing that can be read. The text may have several lines."""

    exit_code = RUN_FAILED
