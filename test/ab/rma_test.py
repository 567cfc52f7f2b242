# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks of one-sided communication on stock osc components, with few iterations: every byte where it belongs, damage found, clear
error messages."""

import itertools
import re
import unittest

from pattern_test import CHECKED, sizes
import programs
from programs import mpirun, rma

COMPONENTS = ("rdma", "pt2pt")
SYNCS = ("flush", "unlock", "fence", "pscw")
EXCHANGES = [("--op", op, "--sync", sync) for op, sync in itertools.product(("put", "get"), SYNCS)]
# Bytes of the long put to another rank.
BACKGROUND = "100001"
# ranks, program and options
PROGRAMS = [
    *((2, "coop_rma_latency", *words) for words in EXCHANGES),
    (2, "coop_rma_latency", "--window", "allocate"),
    *((2, "coop_rma_bw", "-w", "5", *words) for words in EXCHANGES[:5]),
    (4, "coop_rma_mr", "-w", "5"), (2, "coop_rma_mr", "-w", "5", "--threads", "3"),
    (4, "coop_rma_mr", "-w", "5", "--threads", "2", "--op", "get"),
    *((ranks, "coop_rma_sync", "--epoch", epoch) for ranks, epoch in ((2, "pscw"), (3, "pscw"), (2, "lock"), (3, "lock_all"))),
    (3, "coop_rma_sync", "--epoch", "flush", "--background", BACKGROUND),
    *((2, "coop_rma_acc", "--op", op, "--sync", sync) for op, sync in (
        ("accumulate", "flush"), ("accumulate", "fence"), ("get_accumulate", "unlock"), ("get_accumulate", "pscw"))),
    *((2, "coop_rma_acc", "--op", op, "--calls", "9") for op in ("accumulate", "get_accumulate")),
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
# Kernels of applications: the size is one of the problem, and ranks verify the result. Programs with puts, and with gets.
PUTS = [("--way", "put", "--sync", "pscw"), ("--way", "put", "--sync", "fence"), ("--way", "put", "--sync", "flush"), ("--way", "blocking-put"),
        ("--way", "isend")]
GETS = [tuple(word.replace("put", "get") for word in words) for words in PUTS]
KERNELS = [
    *((3, "coop_rma_spmv", "-m", "24:6144", *words) for words in GETS),
    (2, "coop_rma_spmv", "-m", "6144", "--shuffle", "50", "--runs", "entries"),
    (4, "coop_rma_spmv", "-m", "6144", "--shuffle", "0", "--window", "allocate"),
    *((3, "coop_rma_cg", "-m", "24:6144", *words) for words in PUTS), (4, "coop_rma_cg", "-m", "6144", "--shuffle", "50", "--steps", "40"),
    *((4, "coop_rma_mg", "-m", "4:32", *words) for words in PUTS), (2, "coop_rma_mg", "-m", "4:32", "--sweeps", "1"),
    *((8, "coop_rma_mg", "-m", "4:32", "--faces", "strided", *words) for words in PUTS),
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

    def test_kernels_compute_the_right_result_under_every_component(self):
        for (ranks, *command), osc in itertools.product(KERNELS, COMPONENTS):
            with self.subTest(f"{osc}: {' '.join(command)}"):
                result = mpirun(ranks, *command, *CHECKED, osc=osc)
                self.assertEqual(result.returncode, 0, result.stderr)
                low, high = (int(size) for size in (2 * command[2].split(":"))[:2])
                self.assertEqual(sizes(result.stdout), [low << n for n in range((high // low).bit_length())])

    def test_kernels_find_a_damaged_byte(self):
        for ranks, *command in KERNELS:
            with self.subTest(" ".join(command)):
                result = mpirun(ranks, *command, *CHECKED, "-F", 50)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("first wrong offset 50:", result.stderr)

    def test_the_matrix_has_the_size_of_the_paper(self):
        for ranks, program in ((2, "coop_rma_spmv"), (3, "coop_rma_cg")):
            text = mpirun(ranks, program, *CHECKED).stdout
            found = re.search(r"^# matrix: 41092 rows, (\d+) nonzeros", text, re.MULTILINE)
            self.assertIsNotNone(found, text)
            self.assertLess(abs(int(found[1]) - 1683902), 1000)

    def test_a_damaged_byte_is_found_and_named(self):
        for ranks, *command in PROGRAMS + SPREAD:
            with self.subTest(" ".join(command)):
                result = mpirun(ranks, *command, *CHECKED, "-m", 1024, "-F", 50)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("first wrong offset 50:", result.stderr)

    def test_a_damaged_byte_past_the_end_is_found(self):
        for ranks, *command in PROGRAMS:
            # Past the end of every put: otherwise another rank may report it as damage inside, and end the job first.
            command = ["1001" if word == BACKGROUND else word for word in command]
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
                ("coop_rma_bw", ("--op", "all"), "use put or get or both"),
                ("coop_rma_spmv", ("--way", "put"), "use get or blocking-get or isend"),
                ("coop_rma_cg", ("-m", "32M"), "a matrix has at most 16777216 rows, not 33554432"),
                ("coop_rma_mg", ("-m", "24"), "coop_rma_mg: needs sizes that are powers of two"),
                ("coop_rma_mg", ("--faces", "all"), "use packed or strided")):
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
