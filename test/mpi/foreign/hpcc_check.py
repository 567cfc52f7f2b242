#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads hpccoutf.txt and checks the results of HPC Challenge's own checks.

usage: hpcc_check.py hpccoutf.txt
"""
import re
import sys


def require(problems, condition, text):
    print(("ok      " if condition else "WRONG   ") + text)
    if not condition:
        problems.append(text)


def main(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    problems = []
    summary = dict(re.findall(r"^(\w+)=(\S+)$", text.partition("Begin of Summary section")[2], re.M))

    require(problems, "End of HPC Challenge tests" in text, "it ran to its end")
    require(problems, summary.get("Success") == "1", f"Success={summary.get('Success')}")
    # HPL and PTRANS solve and transpose; each result has a scaled residual.
    for name, value, threshold in (("HPL", r"\|\|Ax-b\|\|_oo/\S+=\s*(\S+) \.+ (\w+)", 16.0),):
        found = re.findall(value, text)
        require(problems, found and all(verdict == "PASSED" and float(r) < threshold for r, verdict in found),
                f"{name} residuals {found}")
    for what, count in re.findall(r"^ +(\d+) tests completed and failed (residual checks)", text, re.M):
        require(problems, what == "0", f"{what} failed {count}")
    require(problems, len(re.findall(r"tests completed and passed residual checks", text)) == 2,
            "HPL and PTRANS counted their residuals")
    require(problems, "FAILED" not in text, "nothing is marked FAILED")
    require(problems, float(summary.get("PTRANS_residual", "inf")) < 16, f"PTRANS_residual={summary.get('PTRANS_residual')}")
    # RandomAccess tolerates 1 % of wrong locations. With a number of ranks that is not a power of two it sometimes has some,
    # also under stock Open MPI, so only its own verdict counts.
    for kind in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
        fraction = float(summary.get(kind + "_ErrorsFraction", "inf"))
        require(problems, 0 <= fraction < 0.01, f"{kind}_ErrorsFraction={fraction}")
    errors = re.findall(r"Found (\d+) errors in (\d+) locations \((\w+)\)", text)
    require(problems, len(errors) >= 4 and all(verdict == "passed" for _, _, verdict in errors),
            f"RandomAccess verifications {errors}")
    require(problems, float(summary.get("MPIFFT_maxErr", "inf")) < 1e-12, f"MPIFFT_maxErr={summary.get('MPIFFT_maxErr')}")
    nodes = re.findall(r"Node\(s\) with error (\d+)", text)
    require(problems, nodes and set(nodes) == {"0"}, f"{len(nodes)} sections without a failing node")
    require(problems, "Solution Validates" in text, "STREAM validates")
    latency = [float(v) for k, v in summary.items() if re.search(r"(Latency|Bandwidth)", k)]
    require(problems, len(latency) > 5 and min(latency) > 0, f"{len(latency)} latencies and bandwidths")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
