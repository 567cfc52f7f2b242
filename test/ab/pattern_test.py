# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks of patterns on stock Open MPI, with few iterations: correct data, readable output, clear error messages."""

import unittest

from bench_test import TINY
from programs import coop_ab, mpirun
import programs

CHECKED = ("-d", "-i", 2, "-b", 2, "-x", 1)
PAIRS = (("coop_latency", "--any-source", "--posted", "7", "--unexpected", "9"), ("coop_latency", "--near", "1000000", "--touch"), ("coop_mr", "--threads", "3", "-w", "5"),
         ("coop_mr", "--unexpected", "-L", "multiple", "-w", "20"), ("coop_line_limit",), ("coop_line_limit", "--ring"), ("coop_window_limit",), ("coop_window_limit", "--both"),
         ("coop_window_limit", "--read"), ("coop_window_limit", "--both", "--read", "-w", "5"), ("coop_bw", "--blocking"), ("coop_bibw", "--blocking"), ("coop_copy_limit",), ("coop_copy_limit", "--one"),
         ("coop_profile",), ("coop_profile", "--compute", "5"), ("coop_overlap", "--side", "sender"),
         ("coop_overlap", "--side", "receiver", "--tests", "3"), ("coop_overlap", "--points", "2", "--stamps"))
TRIPLES = (("coop_mixed",), ("coop_mixed", "--ratio", "5"))
GROUPS = (("coop_scatter",), ("coop_scatter", "--collective"), ("coop_gather",), ("coop_gather", "--collective"),
          ("coop_reduce",), ("coop_reduce", "--collective"), ("coop_bcast",), ("coop_bcast", "--chunks", "7"),
          ("coop_stencil",), ("coop_stencil", "--periodic", "--compute", "5", "--skew", "5", "--seed", "3"),
          ("coop_stencil", "--interior", "20"), ("coop_alltoall",), ("coop_allgather",), ("coop_allgather", "--in-place"),
          ("coop_allgather", "--no-reuse"), ("coop_allgather", "--no-reuse", "--in-place"))
VECTORS = (("coop_allgather", "--vector"), ("coop_allgather", "--vector", "--in-place"), ("coop_allgather", "--vector", "--no-reuse"))


def size_of(command):
    """The smallest size to test: not a power of two, and for coop_reduce a multiple of the size of a float."""
    return 12 if command[0] == "coop_reduce" else 3


def sizes(text):
    """The first column of the table. Unlike rows() of bench_test.py, accepts '-' in other columns."""
    return [int(line.split()[0]) for line in text.splitlines() if line[:1].isdigit()]


class Patterns(unittest.TestCase):
    def data_is_right(self, ranks, commands, doublings=16):
        for command in commands:
            with self.subTest(f"{ranks} ranks: {' '.join(command)}"):
                low = size_of(command)
                result = mpirun(ranks, command[0], *command[1:], *CHECKED, "-m", f"{low}:{low << doublings}")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(sizes(result.stdout), [low << n for n in range(doublings + 1)])

    def test_data_is_right_between_two_ranks(self):
        self.data_is_right(2, PAIRS + GROUPS + VECTORS)

    def test_data_is_right_among_four_ranks(self):
        self.data_is_right(4, GROUPS + VECTORS, 10)  # the code for long messages is the same as among three

    def test_data_is_right_among_three_ranks(self):
        self.data_is_right(3, TRIPLES + GROUPS + VECTORS)

    def test_a_damaged_byte_is_found_and_named(self):
        for ranks, commands in ((2, PAIRS), (3, TRIPLES), (4, GROUPS + VECTORS)):
            for command in commands:
                with self.subTest(" ".join(command)):
                    result = mpirun(ranks, command[0], *command[1:], *CHECKED, "-m", 8192, "-F", 5001)
                    self.assertNotEqual(result.returncode, 0)
                    self.assertIn("first wrong offset 5001", result.stderr)

    def test_a_damaged_byte_past_the_end_is_found(self):
        for ranks, commands in ((2, PAIRS), (3, (TRIPLES[0],)), (4, GROUPS)):
            for command in commands:
                with self.subTest(" ".join(command)):
                    result = mpirun(ranks, command[0], *command[1:], *CHECKED, "-m", 1024, "-F", 1030)
                    self.assertIn("first wrong offset 1030 (past the end)", result.stderr)

    def test_allgather_has_right_data_when_its_pool_of_buffers_is_used_up(self):
        result = mpirun(2, "coop_allgather", "--no-reuse", "-d", "-i", 7, "-b", 3, "-m", "4M:8M")  # 5 and 2 buffers
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sizes(result.stdout), [4 << 20, 8 << 20])

    def test_components_that_do_not_count_copies_give_a_dash(self):
        row = next(line for line in mpirun(2, "coop_profile", *TINY, "-m", 65536).stdout.splitlines() if line[:1].isdigit())
        words = row.split()
        self.assertEqual([words[3], words[4], words[7], words[8]], ["-"] * 4, row)
        self.assertAlmostEqual(float(words[2]) + float(words[5]), 100, places=1, msg=row)
        stencil = mpirun(4, "coop_stencil", *TINY, "-m", 65536).stdout
        ranks = [line.split() for line in stencil.splitlines() if line.startswith("# rank   65536")]
        self.assertEqual([words[3:5] for words in ranks], [[str(rank), "-"] for rank in range(4)], stencil)

    def test_ideal_copies_are_half_of_a_ranks_messages(self):
        text = mpirun(3, "coop_stencil", "-i", 5, "-b", 2, "-x", 0, "-m", 65536).stdout  # a row of three: 1, 2, 1 neighbours
        ideal = [float(line.split()[5]) for line in text.splitlines() if line.startswith("# rank   65536")]
        self.assertEqual(ideal, [10, 20, 10], text)

    def test_overlap_prints_points_with_the_columns_of_a_size(self):
        text = mpirun(2, "coop_overlap", "-i", 2, "-b", 5, "-m", "256K", "--points", 4, "--compute", 2, "--rate", 250,
                      "--side", "receiver").stdout
        points = [line.split()[2:] for line in text.splitlines() if line.startswith("# point ")]
        size = next(line.split() for line in text.splitlines() if line[:1].isdigit())
        self.assertEqual([words[:2] for words in points], [["262144", str(number)] for number in (1, 2, 3, 4)], text)
        self.assertEqual({len(words) for words in points}, {len(size) + 1}, text)
        computing = [float(words[5]) for words in points]
        for number, us in enumerate(computing, 1):
            self.assertGreater(us, 0.9 * number / 4 * 2 * 262144 / 250, text)
        for words in points:
            total, compute, ratio, engine = float(words[3]), float(words[5]), float(words[6]), words[8]
            self.assertAlmostEqual(ratio, compute / total, delta=0.2, msg=text)
            self.assertEqual(engine, "-", "there is no software HCA here")

    def test_overlap_prints_stamps_in_order(self):
        text = mpirun(2, "coop_overlap", "-i", 3, "-b", 4, "-x", 2, "-m", "64K", "--stamps").stdout
        stamps = [line.split()[2:] for line in text.splitlines() if line.startswith("# stamp ")]
        self.assertEqual([words[:2] for words in stamps], [["65536", str(number)] for number in range(1, 2 + 12 + 1)], text)
        for words in stamps:
            call, compute, wait, back, other_call, other_back = map(float, words[2:])
            self.assertTrue(call <= compute < wait <= back and other_call < other_back, words)
            self.assertTrue(other_call < back and other_back > call, "both took part in it")

    def test_mixed_counts_what_both_at_once_save(self):
        text = mpirun(3, "coop_mixed", "-i", 1, "-b", 1, "-x", 1, "-m", "256K", "--ratio", 3).stdout
        hidden, both, intra, inter, intra_end, inter_end = (float(word) for word in next(
            line for line in text.splitlines() if line[:1].isdigit()).split()[1:])
        self.assertAlmostEqual(hidden, (intra + inter - both) / min(intra, inter) * 100, delta=0.1, msg=text)
        self.assertAlmostEqual(both, max(intra_end, inter_end), places=2, msg=text)
        self.assertTrue(min(intra, inter, intra_end, inter_end) > 0, text)
        hosts = next(line for line in text.splitlines() if line.startswith("# hosts: ")).split()[2:]
        self.assertEqual(len(hosts), 3, text)

    def test_stencil_tells_waiting_from_computing(self):
        text = mpirun(4, "coop_stencil", "-i", 5, "-b", 3, "-x", 0, "-m", "64K", "--interior", 400).stdout
        words = next(line.split() for line in text.splitlines() if line[:1].isdigit())
        total, wait, compute = float(words[1]), float(words[6]), float(words[7])
        self.assertTrue(wait > 0 and compute >= 0.9 * 400 and wait + compute < 5 * total, text)
        ranks = [line.split() for line in text.splitlines() if line.startswith("# rank   65536")]
        mean_ms = [sum(float(words[column]) for words in ranks) / len(ranks) / 15 for column in (10, 11)]
        self.assertAlmostEqual(mean_ms[0] * 1e3, wait, delta=0.01 * wait, msg=text)
        self.assertAlmostEqual(mean_ms[1] * 1e3, compute, delta=0.01 * compute, msg=text)

    def test_columns_beyond_the_second_are_understood_by_coop_ab(self):
        result = coop_ab("--setting", "one=", "--setting", "other=", "--quiet", "--repeats", 1, "--column", 3, "--", "mpirun",
                         "-n", 2, "--oversubscribe", "--mca", "pml", "ob1", "{}", f"{programs.bench}/coop_overlap", *TINY,
                         "-m", "64K")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_wrong_options_are_named_once_with_value_and_range(self):
        for name, arguments, words in (
                ("coop_bcast", ("--chunks", "0"), "option --chunks: value '0' not allowed: use a whole number from 1 to 4096"),
                ("coop_bcast", ("--chunks", "1.5"), "option --chunks: value '1.5' not allowed: use a whole number"),
                ("coop_bcast", ("--chunks",), "option --chunks needs a value"),
                ("coop_bw", ("--blocking=3",), "option --blocking takes no value"),
                ("coop_bw", ("--chunks", "4"), "option --chunks is unknown"),
                ("coop_overlap", ("--side", "left"), "option --side: value 'left' not allowed: use sender or receiver"),
                ("coop_mixed", ("--ratio", "0"), "option --ratio: value '0' not allowed: use a whole number from 1 to 1024"),
                ("coop_overlap", ("--compute", "x"), "option --compute: value 'x' not allowed: use a number from 0.01 to 1000"),
                ("coop_reduce", ("-m", "6"), "option -m: value '6' not allowed: sizes must be multiples"),
                ("coop_stencil", ("--skew", "-1"), "option --skew: value '-1' not allowed: use a number from 0 to 1000000"),
                ("coop_profile", ("--one",), "option --one is unknown"),
                ("coop_latency", ("--posted", "30001"), "option --posted: value '30001' not allowed: use a whole number from 0 to 30000"),
                ("coop_latency", ("--near", "-1"), "option --near: value '-1' not allowed: use a number from 0 to 1000000"),
                ("coop_alltoall", ("--near", "90"), "option --near is unknown"),
                ("coop_mr", ("--threads", "0"), "use a whole number from 1 to 64"),
                ("coop_allgather", ("--vector=1",), "option --vector takes no value"),
                ("coop_scatter", ("-w", "4"), "no window of messages")):
            with self.subTest(f"{name} {arguments}"):
                result = mpirun(2, name, *arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.count(words), 1, result.stderr)

    def test_messages_are_written_and_read_on_request(self):
        for name in ("coop_latency", "coop_bw", "coop_bibw"):
            result = mpirun(2, name, "--touch", "-i", 2, "-b", 2, "-x", 1, "-m", "3:12")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(sizes(result.stdout), [3, 6, 12])
            self.assertIn(", data written and read", result.stdout)

    def test_there_are_no_figures_while_the_cores_are_too_far_from_each_other(self):
        result = mpirun(2, "coop_latency", "--near", "0.001", "-T", "0.0001", "-m", "8:16")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sizes(result.stdout), [])
        for size in (8, 16):
            self.assertIn(f"# no figure of {size}: the cores were not near each other for long enough (--near 0.001)", result.stdout)

    def test_wrong_number_of_ranks_is_refused(self):
        for name in ("coop_copy_limit", "coop_line_limit", "coop_window_limit", "coop_profile", "coop_overlap"):
            self.assertIn("needs exactly 2 ranks, was started with 3", mpirun(3, name).stderr)
        self.assertIn("needs exactly 3 ranks, was started with 2", mpirun(2, "coop_mixed").stderr)
        for name in ("coop_scatter", "coop_gather", "coop_reduce", "coop_bcast", "coop_allgather", "coop_alltoall", "coop_stencil"):
            self.assertIn("needs at least 2 ranks, was started with 1", mpirun(1, name).stderr)

    def test_help_lists_the_options_of_the_benchmark(self):
        self.assertIn("--chunks N", mpirun(2, "coop_bcast", "-h").stdout)
        text = mpirun(2, "coop_overlap", "-h").stdout
        for words in ("--side SIDE", "--points N", "--stamps"):
            self.assertIn(words, text)
        self.assertIn("--interior US", mpirun(2, "coop_stencil", "-h").stdout)
