# SPDX-License-Identifier: BSD-3-Clause
"""Allgather over RDMA with a growing number of processes (the paper's figure 7a), and with several processes on each host."""

from . import allgather, figures
from .tables import aligned, percent, settled_us

# --- 32 KiB, over the number of processes ---------------------------------------------------------------------------

BYTES = allgather.SIZES["32 KiB"]
# Hosts, switches and costs of the paper's cluster A, on a tree of 4096 hosts.
CLUSTER_A = allgather.TREE | {"host-rate": "850MB/s", "switch-rate": "1GB/s", "wire": "3.58us", "bytes": BYTES}
GROWTH = tuple(2 ** power for power in range(2, 13))
KINDS = {"p2p": {"announce": "step"}, "doubling": {"algorithm": "doubling"}, "ring": {"algorithm": "ring"}}


def every(algorithm, ranks):
    """The ring of many processes runs only every N-th step: its steps are equal."""
    return max(1, ranks // 32) if algorithm == "ring" and ranks >= 512 else 1


def whole_us(result, algorithm, ranks):
    """The time of the whole call, also if only every N-th step was run."""
    return settled_us(result) * (ranks - 1) / -(-(ranks - 1) // every(algorithm, ranks))


def algorithm_of(kind, ranks):
    return KINDS[kind].get("algorithm") or allgather.mpich_algorithm(ranks, BYTES)


def growth_runs():
    runs = {}
    for ranks in GROWTH:
        for kind, change in KINDS.items():
            algorithm = algorithm_of(kind, ranks)
            run = CLUSTER_A | change | {"ranks": ranks, "algorithm": algorithm, "slice": allgather.slice_of(algorithm, ranks, BYTES)}
            runs[f"{ranks} | {kind}"] = run | ({"every": every(algorithm, ranks)} if every(algorithm, ranks) > 1 else {})
    return runs


def growth_times(results):
    """{processes: {"p2p": us, "doubling": us, "ring": us}}"""
    return {ranks: {kind: whole_us(results[f"{ranks} | {kind}"], algorithm_of(kind, ranks), ranks) for kind in KINDS} for ranks in GROWTH}


def growth_table(results):
    rows = [["32 KiB", "p2p us", *(f"{kind} us" for kind in list(KINDS)[1:]), "gap us", "gap %"]]
    for ranks, times in growth_times(results).items():
        best = min(times["doubling"], times["ring"])
        rows.append([str(ranks), *(f"{us:.0f}" for us in times.values()), f"{times['p2p'] - best:.0f}", percent(best, times["p2p"])])
    return aligned(rows)


# --- several processes on each host ---------------------------------------------------------------------------------

PROCESSES = (256, 1024)
PER_HOST = (1, 4, 16)


def hosts_runs():
    runs = {"alpha": allgather.scale_runs()["alpha"]}
    for ranks in PROCESSES:
        for per_host in PER_HOST:
            for mapping in figures.MAPPINGS:
                for name, size in allgather.SIZES.items():
                    base = allgather.TREE | {"ranks": ranks, "per-host": per_host, "mapping": mapping, "bytes": size}
                    for algorithm in ("doubling", "bruck", "ring", "neighbour"):
                        if algorithm == "neighbour" and ranks > allgather.MOST_FOR_NEIGHBOUR:
                            continue
                        run = base | {"algorithm": algorithm, "slice": allgather.slice_of(algorithm, ranks, size)}
                        if every(algorithm, ranks) > 1:
                            # A neighbour on the same host is the same in each step, so a sample has all kinds of messages.
                            run["every"] = every(algorithm, ranks)
                        runs[f"{ranks} in {per_host} {mapping} {name} | {algorithm}"] = run
    return runs


def hosts_bound_us(alpha_us, ranks, per_host, size):
    """Each host must receive the blocks of all others once."""
    return (ranks // per_host - 1).bit_length() * alpha_us + (ranks - per_host) * size / allgather.HOST_BYTES_PER_US


def hosts_shares(results):
    """{"256 in 4 sequential 4 B": (bound in us, {"doubling": time / bound, …})}."""
    alpha_us, rows = settled_us(results["alpha"]), {}
    for ranks in PROCESSES:
        for per_host in PER_HOST:
            for mapping in figures.MAPPINGS:
                for name, size in allgather.SIZES.items():
                    row, bound = f"{ranks} in {per_host} {mapping} {name}", hosts_bound_us(alpha_us, ranks, per_host, size)
                    shares = {algorithm: whole_us(results[f"{row} | {algorithm}"], algorithm, ranks) / bound
                              for algorithm in ("doubling", "bruck", "ring", "neighbour") if f"{row} | {algorithm}" in results}
                    rows[row] = bound, shares
    return rows


def hosts_table(results):
    rows = [["time / bound", "bound us", "doubling", "bruck", "ring", "neighbour"]]
    for row, (bound, shares) in hosts_shares(results).items():
        rows.append([row, f"{bound:.0f}"] + [f"{shares[algorithm]:.2f}" if algorithm in shares else "" for algorithm in rows[0][2:]])
    return aligned(rows)
