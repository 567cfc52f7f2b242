# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks of one-sided communication on stock osc components, with few iterations: every byte where it belongs, damage found, clear
error messages."""

import itertools
import unittest

from pattern_test import CHECKED, sizes
import programs
from programs import mpirun, rma

COMPONENTS = ("rdma", "pt2pt")
SYNCS = ("flush", "unlock", "fence", "pscw")
EXCHANGES = [("--op", op, "--sync", sync) for op, sync in itertools.product(("put", "get"), SYNCS)]
# ranks, program and options
PROGRAMS = [
    *((2, "coop_rma_latency", *words) for words in EXCHANGES),
    (2, "coop_rma_latency", "--window", "allocate"),
    *((2, "coop_rma_bw", "-w", "5", *words) for words in EXCHANGES[:5]),
    (4, "coop_rma_mr", "-w", "5"), (2, "coop_rma_mr", "-w", "5", "--threads", "3"),
    (4, "coop_rma_mr", "-w", "5", "--threads", "2", "--op", "get"),
    *((ranks, "coop_rma_sync", "--epoch", epoch) for ranks, epoch in ((2, "pscw"), (3, "pscw"), (2, "lock"), (3, "lock_all"))),
    (3, "coop_rma_sync", "--epoch", "flush", "--background", "100001"),
    *((2, "coop_rma_acc", "--op", op, "--sync", sync) for op, sync in (
        ("accumulate", "flush"), ("accumulate", "fence"), ("get_accumulate", "unlock"), ("get_accumulate", "pscw"))),
    *((2, "coop_rma_overlap", "-w", "5", *words) for words in EXCHANGES[3:6]),
    (2, "coop_rma_interleave", "-w", "5"), (2, "coop_rma_interleave", "--alternate", "--sync", "pscw"),
    *((2, "coop_rma_pattern", "--pieces", "50", "--sync", sync) for sync in SYNCS),
    (3, "coop_rma_pattern", "--pieces", "50", "--threads", "3"), (3, "coop_rma_pattern", "--pieces", "50", "--sync", "pscw"),
    (3, "coop_rma_pattern", "--pieces", "50", "--way", "messages", "--threads", "2"),
    (2, "coop_rma_bw", "-w", "5", "--op", "both"), (2, "coop_rma_bw", "-w", "5", "--op", "both", "--sync", "pscw"),
]
# The memory of the target has gaps, so that a message ends later.
SPREAD = [
    *((2, "coop_rma_aggregate", "--stride", "3", *words) for words in EXCHANGES),
    (2, "coop_rma_strided", "--total", "6000", "--side", "both", "--op", "put"),
    (2, "coop_rma_strided", "--total", "6000", "--side", "target", "--op", "put", "--sync", "fence"),
    (2, "coop_rma_strided", "--total", "6000", "--side", "origin", "--op", "get", "--sync", "pscw"),
]
EMPTY = [(3, "coop_rma_sync", "--epoch", "fence")]


class OneSided(unittest.TestCase):
    def test_every_double_can_be_fetched_and_increased_on_its_own(self):
        for sync, osc in itertools.product(SYNCS, COMPONENTS):
            with self.subTest(f"{osc} {sync}"):
                result = mpirun(2, "coop_rma_acc", "--op", "fetch_op", "--sync", sync, *CHECKED, "-m", "8:1K", osc=osc)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(sizes(result.stdout), [8 << n for n in range(8)])

    def test_data_is_right_under_every_component(self):
        for (ranks, *command), osc in itertools.product(PROGRAMS + SPREAD + EMPTY, COMPONENTS):
            if osc == "pt2pt" and "--threads" in command:
                continue  # it refuses MPI_THREAD_MULTIPLE
            with self.subTest(f"{osc}: {' '.join(command)}"):
                result = mpirun(ranks, *command, *CHECKED, "-m", "24:98304", osc=osc)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(sizes(result.stdout), [24 << n for n in range(13)])

    def test_a_damaged_byte_is_found_and_named(self):
        for ranks, *command in PROGRAMS + SPREAD:
            with self.subTest(" ".join(command)):
                result = mpirun(ranks, *command, *CHECKED, "-m", 1024, "-F", 50)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("first wrong offset 50:", result.stderr)

    def test_a_damaged_byte_past_the_end_is_found(self):
        for ranks, *command in PROGRAMS:
            with self.subTest(" ".join(command)):
                result = mpirun(ranks, *command, *CHECKED, "-m", 1024, "-F", 1030)
                self.assertIn("first wrong offset 1030 (past the end)", result.stderr)

    def test_wrong_options_are_named_once_with_value_and_range(self):
        for name, arguments, words in (
                ("coop_rma_latency", ("--op", "send"), "option --op: value 'send' not allowed: use put or get"),
                ("coop_rma_latency", ("--sync", "none"), "use flush or unlock or fence or pscw"),
                ("coop_rma_latency", ("--window", "shared"), "use create or allocate"),
                ("coop_rma_mr", ("--threads", "0"), "option --threads: value '0' not allowed: use a whole number from 1 to 64"),
                ("coop_rma_sync", ("--epoch", "flush"), "--epoch flush needs at least 3 ranks, was started with 2"),
                ("coop_rma_aggregate", ("-m", "12"), "sizes must be multiples of an element of 8 bytes"),
                ("coop_rma_bw", ("--op", "all"), "use put or get or both")):
            with self.subTest(f"{name} {arguments}"):
                result = mpirun(2, name, *arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.count(words), 1, result.stderr)


class Comparison(unittest.TestCase):
    def test_measures_stock_components_with_every_byte_checked(self):
        if not programs.prefix:
            self.skipTest("needs an installation (--prefix)")
        folder = programs.new_folder()
        result = rma("--prefix", programs.prefix, "--quick", "--out", folder, "--ground", "node", "--ground", "rails", "latency-put-flush")
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        for ground, names in (("node", ("rdma", "sm", "pt2pt", "ucx")), ("rails", ("rdma_coopib", "rdma_openib", "ucx", "pt2pt"))):
            with open(f"{folder}/rma-{ground}-latency-put-flush.txt", encoding="utf-8") as file:
                text = file.read()
            for name in names:
                self.assertRegex(text, rf"\b{name}\b")

    def test_refuses_what_it_does_not_know(self):
        for arguments, words in ((("latency-put-never",), "there is no part 'latency-put-never'"), (("--ground", "moon"), "'moon'"),
                                 (("--prefix", programs.new_folder()), "not an installation")):
            result = rma(*arguments)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, result.stderr)

    def test_lists_parts_of_every_program(self):
        listed = rma("--list").stdout
        for name in (name for name in programs.BENCHMARKS if name.startswith("coop_rma_")):
            self.assertIn(f"\n{name[len('coop_rma_'):]}-", "\n" + listed)
