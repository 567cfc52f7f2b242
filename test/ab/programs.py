# SPDX-License-Identifier: BSD-3-Clause
"""The paths of the programs under test, and commands with known numbers to compare."""

import glob
import os
import shutil
import stat
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BENCHMARKS = ("coop_latency", "coop_bw", "coop_bibw", "coop_mr", "coop_mem", "coop_copy_limit", "coop_scatter", "coop_gather",
              "coop_allgather", "coop_alltoall", "coop_line_limit", "coop_window_limit", "coop_reduce", "coop_bcast", "coop_stencil", "coop_profile", "coop_overlap", "coop_mixed",
              "coop_stream", "coop_failover", "coop_rma_latency", "coop_rma_bw", "coop_rma_mr", "coop_rma_sync", "coop_rma_aggregate", "coop_rma_strided",
              "coop_rma_acc", "coop_rma_overlap", "coop_rma_interleave", "coop_rma_pattern", "coop_rma_spmv", "coop_rma_mg", "coop_rma_cg")

tool = figures_tool = bench = scratch = prefix = ""


def setup(given, folder):
    """Finds the programs, or without a prefix builds the benchmarks. Adds the packages of coop-ab, coop-figures and bench/overlap to
    Python's path, for tests of their parts."""
    global tool, figures_tool, bench, scratch, prefix
    scratch = folder
    prefix = os.path.abspath(given) if given else ""
    sys.path.append(f"{TOP}/bench")
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    os.environ.pop("PYTHONPATH", None)
    if prefix:
        tool, bench = f"{prefix}/bin/coop-ab", f"{prefix}/libexec/ompi-coop"
        sys.path.insert(0, f"{prefix}/share/openmpi-coop")
    else:
        tool, bench = f"{TOP}/tools/coop-ab", f"{folder}/bench"
        sys.path.insert(0, f"{TOP}/tools")
        build_benchmarks(bench)
    figures_tool = os.path.join(os.path.dirname(tool), "coop-figures")


def build_benchmarks(into):
    os.mkdir(into)
    common = glob.glob(f"{TOP}/bench/bench_*.c")
    mpicc = os.environ.get("MPICC", "mpicc")
    for name in BENCHMARKS:
        sources = [f"{TOP}/bench/{name}.c"] + (common if name not in ("coop_mem", "coop_stream", "coop_failover") else [])
        subprocess.run([mpicc, "-O2", "-Wall", "-Wextra", "-Werror", "-o", f"{into}/{name}", *sources, "-lm", "-pthread"], check=True)
    subprocess.run([mpicc, "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", f"{into}/coop_wait.so",
                    f"{TOP}/bench/coop_wait.c"], check=True)


def new_folder():
    return tempfile.mkdtemp(dir=scratch)


def coop_ab(*arguments, env=None, timeout=60):
    """Runs coop-ab. The result has returncode, and stdout and stderr as text."""
    return subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False,
                          env={**os.environ, **(env or {})})


def of_this_installation():
    """The environment in which mpirun finds the components under test: what coop-env prints, evaluated."""
    words = subprocess.run(["bash", "-c", f'eval "$({prefix}/bin/coop-env)"; env -0'], capture_output=True, text=True, check=True).stdout
    return dict(word.split("=", 1) for word in words.split("\0") if "=" in word)


def coop_figures(*arguments, timeout=60, env=None):
    return subprocess.run([figures_tool, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False, env=env)


def overlap(*arguments, timeout=60):
    return subprocess.run([f"{TOP}/bench/overlap", *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False)


def allgather(*arguments, timeout=60):
    return subprocess.run([f"{TOP}/bench/allgather", *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False)


def applications(*arguments, timeout=120):
    return subprocess.run([f"{TOP}/bench/applications", *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False)


def node(*arguments, timeout=120):
    return subprocess.run([f"{TOP}/bench/node", *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False)


def instructions(*arguments, timeout=120):
    return subprocess.run([f"{TOP}/bench/instructions", *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False)


def rma(*arguments, timeout=120):
    return subprocess.run([f"{TOP}/bench/rma", *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False)


def mpirun(ranks, program, *arguments, osc="rdma", timeout=60):
    """Runs on stock components, so that a failure is one of the benchmark."""
    launcher = shutil.which(os.environ.get("MPIRUN", "mpirun"))
    # A job that ends with an error would sleep for a second between SIGTERM and SIGKILL.
    return subprocess.run([launcher, "-n", str(ranks), "--oversubscribe", "--mca", "odls_base_sigkill_timeout", "0", "--mca", "pml", "ob1", "--mca", "btl",
                           "vader,self", "--mca", "osc", osc, f"{bench}/{program}", *map(str, arguments)],
                          capture_output=True, text=True, timeout=timeout, check=False)


def script(text):
    """The path of a shell script in a folder of its own, $dir. The script adds its first argument to $dir/log, sets $run to the number of
    this run (from 1; it counts only runs with an argument), and executes `text`."""
    folder = new_folder()
    path = os.path.join(folder, "fake")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\ndir={folder}\necho \"$1\" >>$dir/log\nrun=$(grep -c . $dir/log)\n{text}\n")
    os.chmod(path, stat.S_IRWXU)
    return path


def log_of(path):
    with open(os.path.join(os.path.dirname(path), "log"), encoding="utf-8") as file:
        return file.read().split()


def two(*arguments):
    """The options for comparing fast and slow, quiet and in a fixed order."""
    return ["--setting", "fast=fast", "--setting", "slow=slow", "--quiet", "--seed", "1", *arguments]


# Two sizes. Times grow from round to round, as on a machine that slows down; in a round, slow takes 1.25 times as long as fast.
DRIFTING = """
round=$(( (run + 1) / 2 ))
case $1 in fast) one=$((400 * round)); two=$((800 * round));; slow) one=$((500 * round)); two=$((1000 * round));; esac
printf '# unit: us\\n# better: lower\\nstarting 2 ranks\\n# size us\\n8 %s\\n16 %s\\n' $one $two
"""
