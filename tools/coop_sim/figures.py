# SPDX-License-Identifier: BSD-3-Clause
"""The runs of each table and figure, and for comparison the results of the dissertation that docs/simulation.rst names (in brackets:
its chapters and sections)."""

SWITCH = {"fat-tree": "12,12:12", "lmc": 4}  # the 144-port switch [3, 8.3.1]
CLUSTER = SWITCH | {"cluster": 64}  # its 64 nodes [8.4.1]
POLICIES = ("original", "even:4", "hsam:2", "hsam:4", "hsam:8", "bss:4,2", "bss:8,2", "bss:12,3")
MAIN_POLICIES = ("original", "even:4", "hsam:4", "bss:12,3")
COLLECTIVES = {"alltoall": "128KiB", "allgather": "128KiB", "allreduce": "8MiB"}
RANKS = (32, 48, 64)
MAPPINGS = ("sequential", "random")
ITERATIONS, WARM = 10, 6  # adaptive policies learn during the first WARM iterations

# Change of the time in percent against the policy `original`; "bss/hsam" is the change of bss:12,3 against hsam:4.
PAPER = {
    ("alltoall", 48, "sequential"): {"even:4": 0, "hsam:4": -25, "hsam:8": "worse", "bss:12,3": -50, "bss/hsam": -27},
    ("alltoall", 64, "sequential"): {"hsam:4": -27, "bss/hsam": -32},
    ("allgather", 32, "random"): {"bss:12,3": -32},
    ("allgather", 64, "random"): {"bss:12,3": -43, "bss/hsam": -32},
    ("allgather", 48, "sequential"): {"hsam:4": 0, "bss:12,3": 0},
    ("allgather", 64, "sequential"): {"hsam:4": 0, "bss:12,3": 0},
    ("allreduce", 48, "sequential"): {"hsam:4": 0, "bss:12,3": 0},
    ("allreduce", 64, "random"): {"bss/hsam": -32},
}

# Assumptions that may affect the results of Alltoall with 64 processes. Most rows change one of them, some rows several: "these" and
# "both" refer to the rows immediately above.
SLOW_CPU = {"post": "4us", "completion": "3us"}
TO_THE_LETTER = {"as-in-paper": True, "min-stripe": 1024}
ASSUMPTIONS = {
    "as it is": {},
    "random mapping": {"mapping": "random"},
    "d-mod-k routes": {"routing": "by-destination"},
    "flows of a host block each other": {"blocking": "hosts"},
    "flows on a cable block each other": {"blocking": "cables"},
    "packets, a queue per way on": {"packets": True, "queues": "output", "buffer": "64KiB"},
    "packets, one queue per cable": {"packets": True},
    "these, 40 iterations": {"packets": True, "iterations": 40},
    "40 iterations": {"iterations": 40},
    "post 4 us, completion 3 us": SLOW_CPU,
    "to the letter of the paper": TO_THE_LETTER,
    "both of these": SLOW_CPU | TO_THE_LETTER,
    "both, one queue per cable, 40 it.": SLOW_CPU | TO_THE_LETTER | {"packets": True, "iterations": 40},
    "cables as slow as hosts": {"switch-rate": "1.4GB/s"},
    "progress every 50 us": {"late": "50us"},
}
WITH_A_MANAGER = {"opensm's routes": {}, "opensm's, random mapping": {"mapping": "random"}}
FEW_POLICIES = ("original", "even:4", "hsam:4", "hsam:8", "bss:4,2", "bss:12,3")


def ring(forwarding):
    """Figures 3.5, 7.6, 7.7: [3, 7.2.2]."""
    base = SWITCH | {"pattern": "ring", "ranks": 24, "bytes": "1MiB", "iterations": 8, "seed": 1} | routes(forwarding)
    runs = {f"{policy} ring": base | {"policy": policy} for policy in ("original", "hsam:4", "bss:12,3")}
    for policy in ("original", "hsam:4"):
        runs[f"{policy} step 12"] = base | {"policy": policy, "only-step": 12, "usage": True}
    return runs


def routes(forwarding):
    return {"forwarding": forwarding} if forwarding else {}


def collectives(forwarding):
    """On the routes of a subnet manager only MAIN_POLICIES are run."""
    policies = MAIN_POLICIES if forwarding else POLICIES
    return {f"{pattern} {ranks} {mapping} {policy}":
            CLUSTER | {"pattern": pattern, "bytes": size, "ranks": ranks, "mapping": mapping, "policy": policy, "iterations": ITERATIONS}
            | routes(forwarding)
            for pattern, size in COLLECTIVES.items() for ranks in RANKS for mapping in MAPPINGS for policy in policies}


def why(forwarding):
    base = CLUSTER | {"pattern": "alltoall", "bytes": "64KiB", "ranks": 64, "iterations": ITERATIONS}
    changes = ASSUMPTIONS | ({name: change | routes(forwarding) for name, change in WITH_A_MANAGER.items()} if forwarding else {})
    return {f"{name} | {policy}": base | change | {"policy": policy} for name, change in changes.items() for policy in FEW_POLICIES}


def scale():
    """512 endpoints; with neighbour jobs; with a lost spine. 4096 endpoints are a figure of their own (huge), because they take
    longer."""
    large = {"fat-tree": "16,32:16", "lmc": 4, "bytes": "256KiB", "iterations": 3, "ranks": 512, "slice": "24us"}
    beside = {"fat-tree": "12,12:12", "lmc": 4, "bytes": "128KiB", "iterations": 16, "ranks": 32, "mapping": "random", "neighbours": 3,
              "neighbour-ranks": 32}
    lost = CLUSTER | {"bytes": "256KiB", "iterations": 24, "lose": "spine5", "lose-at": "120ms", "retry": "20ms", "manager": "60ms"}
    runs = {}
    for policy in ("original", "hsam:4", "bss:12,3"):
        runs[f"512 | {policy}"] = large | {"policy": policy}
        runs[f"beside 3 neighbours | {policy}"] = beside | {"policy": policy}
        runs[f"spine lost | {policy}"] = lost | {"policy": policy}
    return runs


def huge():
    """4096 endpoints: one whole Alltoall, then eight iterations of every 61st step. HSAM is left out of the whole one: in a first
    iteration it has learnt nothing, is the same as even striping, and takes longest to simulate."""
    base = {"fat-tree": "16,16,16:16,16", "lmc": 3, "bytes": "256KiB", "ranks": 4096, "slice": "46us"}
    whole, sample = {"iterations": 1}, {"every": 61, "iterations": 8}
    runs = {f"4096, whole, first | {policy}": base | whole | {"policy": policy} for policy in ("original", "bss:8,2")}
    return runs | {f"4096, each 61st step, eighth | {policy}": base | sample | {"policy": policy} for policy in ("original", "hsam:4", "bss:8,2")}
