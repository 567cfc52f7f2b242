# SPDX-License-Identifier: BSD-3-Clause
"""Facts about the machine for later readers of the numbers. The host name is left out on purpose."""

import os
import platform
import re
import subprocess


def first_match(pattern, text):
    found = re.search(pattern, text, re.M)
    return found[1].strip() if found else None


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return first_match(r"^(?:model name|Model|cpu model)\s*:\s*(.*)$", file.read()) or platform.machine()
    except OSError:
        return platform.machine()


def open_mpi_version():
    try:
        text = subprocess.run(["ompi_info", "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return first_match(r"Open MPI v?(\S+)", text)


def revision():
    """The revision of the source that these programs were built from; None when run from a source tree."""
    try:
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "revision"), encoding="utf-8") as file:
            return file.read().strip() or None
    except OSError:
        return None


def load():
    """Mean number of processes that wanted a core in the last minute."""
    return round(os.getloadavg()[0], 2)


def facts():
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "system": platform.system(),
        "open_mpi": open_mpi_version(),
        "ompi_coop": revision(),
        "load_before": load(),
        "load_after": None,
    }


def one_line(host):
    parts = [f"{host['cpu']}, {host['cores']} cores", f"{host['system']} {host['kernel']}"]
    parts += [f"Open MPI {host['open_mpi']}"] if host.get("open_mpi") else []
    parts += [f"ompi-coop {host['ompi_coop']}"] if host.get("ompi_coop") else []
    after = host.get("load_after")
    return "; ".join(parts + [f"load {host['load_before']} before" + ("" if after is None else f", {after} after")])
