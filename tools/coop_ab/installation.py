# SPDX-License-Identifier: BSD-3-Clause
"""An installation of ompi-coop that a benchmark measures."""

import os
import shlex
import subprocess

from .errors import BadInput


def use(prefix):
    """Sets the environment as `eval "$(coop-env)"` does in a shell, and lets root run jobs: test machines often run as root, which mpirun
    refuses by default. Raises BadInput if `prefix` is no installation."""
    if not os.access(f"{prefix}/bin/coop-env", os.X_OK):
        raise BadInput(f"{prefix} has no bin/coop-env: not an installation of ompi-coop (--prefix P)")
    shown = subprocess.run(["bash", "-c", f'eval "$({shlex.quote(prefix)}/bin/coop-env)" && env -0'], capture_output=True, text=True,
                           check=False)
    if shown.returncode:
        raise BadInput(f"{prefix}/bin/coop-env: {shown.stderr.strip()}")
    os.environ.update(line.split("=", 1) for line in shown.stdout.split("\0") if "=" in line)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    os.environ["PATH"] = f"{prefix}/bin:{os.environ['PATH']}"
