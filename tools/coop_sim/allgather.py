# SPDX-License-Identifier: BSD-3-Clause
"""Allgather over RDMA: the runs, the tables, and the results of the paper for comparison (sections in brackets): Sur, Bondhugula,
Mamidala, Jin, Panda: High Performance RDMA Based All-to-all Broadcast for InfiniBand Clusters, HiPC 2005."""

from . import figures
from .tables import aligned, percent, settled_us

SIZES = {"4 B": 4, "32 KiB": 32768, "256 KiB": 262144}

# --- the paper's clusters -------------------------------------------------------------------------------------------

# An address exchange takes 10 us [4.1]: two control packets of 0.6 us (--post), 0.7 us (--poll and --completion), 0.12 us (--hop) and this.
# M_T is 4 KiB [4.2]; point-to-point messages get the same limit. The switch has 144 ports [5]; 4x SDR carries 1 GB/s.
MACHINE = figures.SWITCH | {"pattern": "allgather", "policy": "original", "iterations": figures.ITERATIONS, "slice": 0, "switch-rate": "1GB/s",
                            "wire": "3.58us", "copy-below": "4KiB"}
# The paper gives no rates: these are assumptions. PCI-X is one bus for both directions, so the last two rows halve its rate.
CLUSTERS = {
    "16 A": {"ranks": 16, "host-rate": "850MB/s"},
    "32 A": {"ranks": 32, "host-rate": "850MB/s"},
    "16 B": {"ranks": 16, "host-rate": "960MB/s"},
    "16 A, half rate": {"ranks": 16, "host-rate": "425MB/s"},
    "32 A, half rate": {"ranks": 32, "host-rate": "425MB/s"},
}
NEW_BUFFERS = {"register-cost": "90us,250ns"}  # the base is the paper's [3.4], the pages the simulator's
CASES = {name: {"bytes": size} for name, size in SIZES.items()} | {"32 KiB new": {"bytes": SIZES["32 KiB"]} | NEW_BUFFERS}

# Up to 1 MB the paper's RDMA uses recursive doubling [4.3]; the ring is here for comparison.
RDMA = {
    "doubling": {"algorithm": "doubling"},
    "d-mod-k": {"algorithm": "doubling", "routing": "by-destination"},
    "crossbar": {"algorithm": "doubling", "fat-tree": "32"},
    "await": {"algorithm": "doubling", "fat-tree": "32", "await-sends": "step"},
    "ring": {"algorithm": "ring"},
}
NO_START = {f"{name}, start 0": change | {"start": 0} for name, change in RDMA.items()}  # nothing like matching of messages

# Change of the time in percent; for new buffers how many times faster.
PAPER = {
    "16 A 4 B": -17, "32 A 4 B": -13, "16 B 4 B": -15,
    "16 A 32 KiB": -23, "32 A 32 KiB": -30, "16 B 32 KiB": -37,
    "16 A 256 KiB": -7, "32 A 256 KiB": -6, "16 B 256 KiB": -21,
    "32 A 32 KiB new": 4.75, "16 B 32 KiB new": 3,
}


def mpich_algorithm(ranks, size):
    """MPICH's choice for powers of two [2.3]: the ring from 512 KiB in total, hence the jump at 16 KB with 32 processes [5.2]."""
    return "ring" if ranks * size >= 512 * 1024 else "doubling"


def paper_runs():
    runs = {}
    for cluster, host in CLUSTERS.items():
        for case, load in CASES.items():
            base = MACHINE | host | load
            runs[f"{cluster} {case} | p2p"] = base | {"algorithm": mpich_algorithm(host["ranks"], load["bytes"])}
            for name, change in (RDMA | NO_START).items():
                runs[f"{cluster} {case} | {name}"] = base | {"announce": "call"} | change
    return runs


def paper_times(results):
    """{"16 A 4 B": {"p2p": us, "doubling": us, …}}. "best, start 0" is the fastest run without the cost of starting a message."""
    rows = {}
    for name, result in results.items():
        row, column = name.split(" | ")
        rows.setdefault(row, {})[column] = settled_us(result)
    return {row: {name: times[name] for name in ("p2p", *RDMA)} | {"best, start 0": min(times[name] for name in NO_START)}
            for row, times in rows.items()}


def paper_table(results):
    """Change of the time against point-to-point messages, in percent; with new buffers, how many times faster."""
    rows = [["allgather", "p2p us", "doubling", "d-mod-k", "crossbar", "await", "ring", "best, start 0", "paper"]]
    for row, times in paper_times(results).items():
        base, found = times["p2p"], PAPER.get(row)
        if row.endswith(" new"):
            cells, paper = [f"{base / us:.2f}x" for us in list(times.values())[1:]], f"{found}x"
        else:
            cells, paper = [f"{percent(us, base)} %" for us in list(times.values())[1:]], f"{found} %"
        rows.append([row, f"{base:.0f}"] + cells + [paper if found else ""])
    return aligned(rows)


# --- 64 to 4096 processes -------------------------------------------------------------------------------------------

# The tree has 4096 hosts; --routing by-destination is what opensm computes for it. Times are those of one call with registered buffers.
TREE = {"fat-tree": "16,16,16:16,16", "lmc": 0, "routing": "by-destination", "pattern": "allgather", "policy": "original", "iterations": 1,
        "announce": "call", "copy-below": "4KiB", "register": 0, "register-page": 0}
HOST_BYTES_PER_US = 1400  # the default of --host-rate
SCALES = (64, 256, 1024, 4096)
GATE = 1.25  # the time that the best algorithm should not exceed, in bounds
ALGORITHMS = {name: {"algorithm": name} for name in ("doubling", "bruck", "ring", "neighbour")} | {
    "even:4": {"algorithm": "doubling", "lmc": 3, "policy": "even:4"}}  # four paths
EVERY = {1024: 32, 4096: 256}  # the ring runs only every N-th step: its steps are equal
MOST_FOR_NEIGHBOUR = 256  # its steps are not sampled


def scale_runs():
    runs = {"alpha": TREE | {"ranks": 2, "bytes": 1, "algorithm": "doubling", "copy-rate": "1000GB/s", "slice": 0}}
    for ranks in SCALES:
        for mapping in figures.MAPPINGS:
            for name, size in SIZES.items():
                base = TREE | {"ranks": ranks, "mapping": mapping, "bytes": size}
                for algorithm, change in ALGORITHMS.items():
                    if algorithm == "neighbour" and ranks > MOST_FOR_NEIGHBOUR:
                        continue
                    run = base | change | {"slice": slice_of(algorithm, ranks, size)}
                    if algorithm == "ring" and ranks in EVERY:
                        run["every"] = EVERY[ranks]
                    runs[f"{ranks} {mapping} {name} | {algorithm}"] = run
    return runs


def slice_of(algorithm, ranks, size):
    """1/16 of a step with one block, or 1/2000 of an allgather with few steps."""
    share = 1 / 16 if algorithm in ("ring", "neighbour") else (ranks - 1) / 2000
    return f"{max(0.1, share * size / HOST_BYTES_PER_US):.3g}us"


def bound_us(alpha_us, ranks, size):
    return (ranks - 1).bit_length() * alpha_us + (ranks - 1) * size / HOST_BYTES_PER_US


def scale_shares(results):
    """{"64 sequential 4 B": (bound in us, {"doubling": time / bound, …})}."""
    alpha_us, rows = settled_us(results["alpha"]), {}
    for ranks in SCALES:
        for mapping in figures.MAPPINGS:
            for name, size in SIZES.items():
                bound, row = bound_us(alpha_us, ranks, size), f"{ranks} {mapping} {name}"
                times = {algorithm: settled_us(results[f"{row} | {algorithm}"]) for algorithm in ALGORITHMS if f"{row} | {algorithm}" in results}
                if ranks in EVERY:
                    times["ring"] *= (ranks - 1) / -(-(ranks - 1) // EVERY[ranks])
                rows[row] = bound, {algorithm: time / bound for algorithm, time in times.items()}
    return rows


def scale_table(results):
    rows, exceeded = [["time / bound", "bound us", *ALGORITHMS, "least"]], []
    for row, (bound, shares) in scale_shares(results).items():
        least = min(shares.values())
        rows.append([row, f"{bound:.0f}"] + [f"{shares[algorithm]:.2f}" if algorithm in shares else "" for algorithm in ALGORITHMS] + [f"{least:.2f}"])
        if least > GATE:
            exceeded.append(f"{row} ({least:.3f})")
    words = f"least is above {GATE} times the bound: {', '.join(exceeded) or 'nowhere'}\n"
    return f"alpha {settled_us(results['alpha']):.2f} us, beta 1/{HOST_BYTES_PER_US} us\n\n" + aligned(rows) + "\n" + words
