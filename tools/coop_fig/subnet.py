# SPDX-License-Identifier: BSD-3-Clause
"""Where coop-fabric is, for figures that are measured on software subnets."""

import os
import shutil

from coop_ab.errors import BadInput


def tool(bench):
    """The coop-fabric of the installation that the benchmarks belong to, or the one in the PATH."""
    installed = os.path.join(bench, "..", "..", "bin", "coop-fabric")
    found = installed if os.access(installed, os.X_OK) else shutil.which("coop-fabric")
    if not found:
        raise BadInput("this figure is measured on a software subnet, and coop-fabric is not installed")
    return os.path.abspath(found)
