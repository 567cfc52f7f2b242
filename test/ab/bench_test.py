# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks on stock Open MPI, with few iterations."""

import unittest

import programs
from programs import coop_ab, mpirun

MOVING = ("coop_latency", "coop_bw", "coop_bibw", "coop_mr")
TINY = ("-i", 2, "-b", 3, "-x", 1)


def rows(text):
    return [[float(word) for word in line.split()] for line in text.splitlines() if line and line[0].isdigit()]


class Benchmarks(unittest.TestCase):
    def test_print_header_and_a_positive_figure_per_size(self):
        for name in MOVING:
            with self.subTest(name):
                result = mpirun(2, name, *TINY, "-m", "1:4K")
                self.assertEqual(result.returncode, 0, result.stderr)
                for words in (f"# benchmark: {name}", "# library: Open MPI", "# unit: ", "# better: ", "# settings: ranks 2"):
                    self.assertIn(words, result.stdout)
                self.assertEqual([row[0] for row in rows(result.stdout)], [2**n for n in range(13)])
                self.assertTrue(all(row[1] > 0 for row in rows(result.stdout)), result.stdout)

    def test_data_is_right_at_every_size(self):
        for name in MOVING:
            with self.subTest(name):
                result = mpirun(2, name, "-d", "-i", 1, "-b", 1, "-x", 0, "-m", "3:12M")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(len(rows(result.stdout)), 23)

    def test_a_damaged_byte_is_found_and_named(self):
        for name in MOVING:
            with self.subTest(name):
                result = mpirun(2, name, "-d", *TINY, "-m", "1:16K", "-F", 1027)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("first wrong offset 1027 (past the end)", result.stderr)  # the size 1024 fails first

    def test_a_damaged_byte_inside_the_message_is_found_and_named(self):
        result = mpirun(2, "coop_latency", "-d", *TINY, "-m", "8K", "-F", 5000)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"of 8192 bytes from rank \d, first wrong offset 5000: expected 0x\w\w, seen 0x\w\w")

    def test_spread_columns_enclose_the_median(self):
        lower = rows(mpirun(2, "coop_latency", "-i", 20, "-b", 9, "-m", "8", "-s").stdout)[0]
        self.assertTrue(lower[2] <= lower[1] <= lower[3], lower)
        higher = rows(mpirun(2, "coop_bw", "-i", 20, "-b", 9, "-m", "8", "-s").stdout)[0]
        self.assertTrue(higher[2] >= higher[1] >= higher[3], higher)

    def test_target_time_chooses_the_iterations(self):
        result = mpirun(2, "coop_latency", "-T", 0.01, "-m", "1:1K")
        self.assertEqual(len(rows(result.stdout)), 11, result.stderr)

    def test_message_rate_takes_several_pairs(self):
        result = mpirun(4, "coop_mr", "-d", "-i", 1, "-b", 1, "-x", 0, "-w", 4, "-m", "1:256")
        self.assertEqual(len(rows(result.stdout)), 9, result.stderr)

    def test_memory_of_an_idle_job(self):
        result = mpirun(4, "coop_mem")
        (ranks, pss, rss), = rows(result.stdout)
        self.assertEqual(ranks, 4)
        self.assertTrue(1 < pss < rss < 4000, result.stdout)

    def test_a_stream_has_a_line_for_each_group_and_runs_its_commands_on_time(self):
        result = mpirun(2, "coop_stream", "-n", 30, "-m", 4096, "-w", 3, "-g", 10, "-e", "15=echo happened", "-e", "29=false")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([row[0] for row in rows(result.stdout)], [0, 10, 20], result.stdout)
        self.assertIn("happened\n", result.stdout)
        self.assertIn("# message 29: false (failed)", result.stdout)

    def test_wrong_options_are_named_once_with_value_and_range(self):
        for name, arguments, words in (
                ("coop_latency", ("-m", "4:x"), "option -m: value '4:x' not allowed: use SIZE or MIN:MAX, from 1 to 1G"),
                ("coop_latency", ("-m", "0:8"), "from 1 to 1G"), ("coop_latency", ("-m", "2G"), "from 1 to 1G"),
                ("coop_latency", ("-i", "-5"), "option -i: value '-5' not allowed: use 1 to"),
                ("coop_latency", ("-w", "4"), "no window of messages"), ("coop_bw", ("-w", "0"), "1 to 4096"),
                ("coop_bw", ("-T", "soon"), "option -T"), ("coop_bw", ("-q",), "option -q is unknown"),
                ("coop_bw", ("-i",), "option -i needs a value"), ("coop_bw", ("-F", "1"), "give -d too"),
                ("coop_bw", ("-L", "many"), "option -L: value 'many' not allowed: use single, funneled, serialized or multiple"),
                ("coop_bw", ("8",), "argument '8'"), ("coop_mem", ("-d",), "takes none"),
                ("coop_stream", ("-w", "0"), "option -w: value '0' not allowed: use 1 to 1024"), ("coop_stream", ("-e", "soon"), "option -e")):
            with self.subTest(f"{name} {arguments}"):
                result = mpirun(2, name, *arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.count(words), 1, result.stderr)

    def test_wrong_number_of_ranks_is_refused(self):
        self.assertIn("needs exactly 2 ranks, was started with 3", mpirun(3, "coop_bw").stderr)
        self.assertIn("needs an even number of ranks", mpirun(3, "coop_mr").stderr)

    def test_are_understood_by_coop_ab(self):
        for name, unit in (("coop_latency", "unit us, lower is better"), ("coop_bw", "unit MB/s, higher is better")):
            result = coop_ab("--setting", "one=--mca btl vader,self", "--setting", "other=--mca btl vader,self", "--quiet",
                             "--repeats", 1, "--", "mpirun", "-n", 2, "--oversubscribe", "--mca", "pml", "ob1", "{}",
                             f"{programs.bench}/{name}", *TINY, "-m", "8:16")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(unit, result.stdout)
