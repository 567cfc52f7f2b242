# SPDX-License-Identifier: BSD-3-Clause
"""The figure of messages inside a node: half round trips, bandwidths and rates over the size, which bench/node has measured."""

from . import compared
from .protocols import LOOKS, Look

NAME = "node"
TITLE = "Messages inside a node under pml/coop and other MPI libraries"
# The parts of bench/node that have many sizes.
PARTS = ("latency", "window", "both", "one", "rate-1", "rate-2", "rate-4", "alltoall-16", "alltoall-48")
NODE_LOOKS = {**{name: LOOKS[name] for name in ("coop", "ob1", "ucx")}, "mpich": Look("#D55E00", "v", "--", True), "limit": Look("#000000", "", ":")}


def load(folder):
    return compared.load(folder, NAME, PARTS)


def save(pages, path):
    compared.save(pages, path, TITLE, NODE_LOOKS, "message size")
