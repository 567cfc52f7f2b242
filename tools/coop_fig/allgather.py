# SPDX-License-Identifier: BSD-3-Clause
"""The figure of MPI_Allgather: time over the size of a block, for each comparison that bench/allgather has measured."""

import glob
import os

from . import compared
from .protocols import Look

NAME = "allgather"
TITLE = "MPI_Allgather by coll/rdmaag and by other components"

LOOKS = {
    "rdmaag": Look("#000000", "*"),
    "coop": Look("#0072B2", "o"),
    "ob1": Look("#555555", "o", "--", True),
    "ring": Look("#D55E00", "v", "--", True),
    "ucx": Look("#999999", "s", "--", True),
    "han": Look("#009E73", "D", "--", True),
    "rdmaag_1": Look("#999999", "*"), "rdmaag_2": Look("#555555", "*"), "rdmaag_4": Look("#000000", "*"),
    "coop_1": Look("#56B4E9", "o", "--"), "coop_2": Look("#0072B2", "o", "--"), "coop_4": Look("#003355", "o", "--"),
}


def load(folder):
    names = [os.path.basename(path)[len(f"{NAME}-"):-len(".json")] for path in sorted(glob.glob(f"{folder}/{NAME}-*.json"))]
    return compared.load(folder, NAME, names)


def save(pages, path):
    compared.save(pages, path, TITLE, LOOKS, "size of a block")
