# SPDX-License-Identifier: BSD-3-Clause
"""With --long: comparisons of real programs with a known result."""

import unittest

import programs
from programs import coop_ab


def compare(one, other, *options):
    return coop_ab("--setting", f"one={one}", "--setting", f"other={other}", "--quiet", "--repeats", 12, *options, "--",
                   "mpirun", "-n", 2, "--oversubscribe", "--mca", "pml", "ob1", "{}", f"{programs.bench}/coop_latency",
                   "-m", "1:64K", "-T", 0.03, timeout=600)


class Known(unittest.TestCase):
    def test_stock_against_itself_shows_no_difference(self):
        # Judged by the favourable end of each interval: a busy machine widens the interval, but must not shift it by 10 %.
        result = compare("--mca btl vader,self", "--mca btl vader,self", "--assert-by", "favourable",
                         "--assert", "geomean(one)>=0.9", "--assert", "geomean(one)<=1.1")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_shared_memory_is_better_than_tcp(self):
        result = compare("--mca btl vader,self", "--mca btl tcp,self", "--assert-by", "strict", "--assert", "geomean(one)>1")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
