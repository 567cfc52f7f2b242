# SPDX-License-Identifier: BSD-3-Clause
"""What is measured, and the goals. A goal limits coop's cost divided by that of the best other library: times, or for rates and
bandwidths their inverse. 0.75 means that coop needs at most 0.75 of the time of the fastest of the others."""

import dataclasses

K, M = 1 << 10, 1 << 20
NONE = float("inf")


@dataclasses.dataclass(frozen=True)
class Part:
    title: str
    program: str
    arguments: str
    goals: tuple  # (largest size, limit), ascending
    ranks: int = 2
    limits: tuple = ()  # (name, program) that show what is possible without MPI; they take the same sizes

    def takes_near(self):
        """Whether the program has the option --near."""
        return self.program in ("coop_latency", "coop_bw", "coop_bibw")

    def goal(self, size):
        return next((limit for largest, limit in self.goals if size <= largest), NONE)


EQUAL = ((M, 1.0),)
FASTER = ((128 * K, 1 / 1.1),)
FIRST = "-x 0 -b 1 -i 10"
SHORT = "-m 8:4K -T 0.05"
HALF_ROUND_TRIPS = ((2 * K, 0.75), (128 * K, 0.95))
TOUCHED = "the data written before and read afterwards"

PARTS = {
    "latency": Part("half round trip", "coop_latency", "-m 1:4M -T 0.03", HALF_ROUND_TRIPS, limits=(("limit", "coop_line_limit"),)),
    "one": Part("one message at a time, acknowledged by a byte", "coop_bw", "-w 1 -m 1:4M -T 0.03", ((128 * K, NONE), (4 * M, 1 / 1.8))),
    "window": Part("64 under way one way", "coop_bw", "-m 1:4M -T 0.03", FASTER,
                   limits=(("limit", "coop_window_limit"), ("limit-read", "coop_window_limit --read"))),
    "both": Part("64 under way each way at once", "coop_bibw", "-m 1:4M -T 0.03", FASTER,
                 limits=(("limit", "coop_window_limit --both"), ("limit-read", "coop_window_limit --both --read"))),
    "latency-touch": Part(f"half round trip, {TOUCHED}", "coop_latency", "--touch -m 1:4M -T 0.03", HALF_ROUND_TRIPS),
    "window-touch": Part(f"64 under way one way, {TOUCHED}", "coop_bw", "--touch -m 1:4M -T 0.03", FASTER),
    "both-touch": Part(f"64 under way each way at once, {TOUCHED}", "coop_bibw", "--touch -m 1:4M -T 0.03", FASTER),
    # Threads start and end a batch together, so batches must be long.
    **{f"rate-{pairs}": Part(f"message rate of {pairs} pair{'s' * (pairs > 1)} of threads", "coop_mr",
                             f"-L multiple --threads {pairs} -m 8:4K -b 21 -T 0.1", FASTER) for pairs in (1, 2, 4)},
    "any": Part("half round trip, MPI_ANY_SOURCE", "coop_latency", f"--any-source {SHORT}", EQUAL),
    "posted": Part("half round trip behind 1000 posted receives", "coop_latency", f"--posted 1000 {SHORT}", EQUAL),
    "unexpected": Part("half round trip behind 1000 unexpected messages", "coop_latency", f"--unexpected 1000 {SHORT}", EQUAL),
    "burst-posted": Part("1000 messages at a time, received while they are sent", "coop_mr", f"-w 1000 {SHORT}", EQUAL),
    "burst-unexpected": Part("1000 messages, received afterwards", "coop_mr", f"-w 1000 --unexpected {SHORT}", EQUAL),
    **{f"alltoall-{ranks}": Part(f"MPI_Alltoall of {ranks} ranks after ten calls", "coop_alltoall", "-x 10 -m 64:64K -T 0.05", ((64 * K, 0.9),), ranks)
       for ranks in (16, 48)},
    **{f"first-{ranks}-{size}": Part(f"MPI_Alltoall of {ranks} ranks, the first ten calls", "coop_alltoall", f"-m {size} {FIRST}", ((64 * K, 1.1),), ranks)
       for ranks in (16, 48) for size in ("64", "1K", "8K", "64K")},
}

COOP = "--mca pml coop"
OB1 = "--mca pml ob1 --mca btl vader,self"
# By default pml/ucx refuses machines that have none of the network cards on its list.
UCX = "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=self,posix,cma"
# More ranks than cores: waiting ranks yield.
CROWDED = "--oversubscribe --mca mpi_yield_when_idle 1"


def chosen(words):
    """The names of the parts that a word names, as a whole or up to a hyphen."""
    return [name for name in PARTS if not words or any(name == word or name.startswith(f"{word}-") for word in words)]
