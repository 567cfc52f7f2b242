# SPDX-License-Identifier: BSD-3-Clause
"""The arithmetic: intervals, order of the runs, verdicts."""

import collections
import random
import unittest

from coop_ab import session, stats, summary


class Intervals(unittest.TestCase):
    def test_of_nine_rounds_leaves_out_the_extremes(self):
        low, high, coverage = stats.median_interval([5, 9, 1, 2, 8, 3, 7, 4, 6])
        self.assertEqual((low, high), (2, 8))
        self.assertAlmostEqual(coverage, 1 - 2 * 10 / 512)

    def test_says_what_it_covers_where_95_percent_is_out_of_reach(self):
        self.assertEqual(stats.median_interval([3, 1, 2]), (1, 3, 0.75))

    def test_of_one_round_covers_nothing(self):
        self.assertEqual(stats.median_interval([3]), (3, 3, 0))

    def test_covers_the_true_median_as_often_as_promised_with_skewed_noise(self):
        generator = random.Random(7)
        for rounds in (6, 9, 20):
            hits = 0
            for _ in range(2000):
                low, high, _ = stats.median_interval([generator.expovariate(1) ** 2 for _ in range(rounds)])
                hits += low <= 0.6931**2 <= high
            self.assertGreaterEqual(hits / 2000, 0.94, f"{rounds} rounds")

    def test_geometric_mean_of_a_factor_and_its_inverse_is_one(self):
        self.assertAlmostEqual(stats.geometric_mean([4, 0.25]), 1)

    def test_half_interquartile_range_is_in_percent_of_the_median(self):
        self.assertAlmostEqual(stats.half_iqr_percent([90, 95, 100, 105, 110]), 5)


class Orders(unittest.TestCase):
    def test_every_round_runs_every_setting_once(self):
        for order in session.orders(3, 7, seed=1):
            self.assertEqual(sorted(order), [0, 1, 2])

    def test_each_second_round_mirrors_the_first(self):
        orders = session.orders(3, 8, seed=2)
        for first, second in zip(orders[::2], orders[1::2]):
            self.assertEqual(first, second[::-1])

    def test_every_setting_has_the_same_mean_position(self):
        positions = collections.Counter()
        for order in session.orders(4, 10, seed=3):
            for position, setting in enumerate(order):
                positions[setting] += position
        self.assertEqual(set(positions.values()), {15})

    def test_the_seed_decides(self):
        self.assertEqual(session.orders(3, 20, seed=4), session.orders(3, 20, seed=4))
        self.assertNotEqual(session.orders(3, 20, seed=4), session.orders(3, 20, seed=5))


class Verdicts(unittest.TestCase):
    def test_follow_the_interval(self):
        for low, high, rounds, expected in (
                (1.05, 1.20, 9, "better"), (0.80, 0.95, 9, "worse"), (0.99, 1.02, 9, "same"),
                (1.01, 1.02, 9, "same"),      # a difference, but within the tolerance
                (0.90, 1.10, 9, "unclear"), (1.01, 1.20, 9, "better"), (1.05, 1.20, 4, "unclear")):
            with self.subTest(low=low, high=high, rounds=rounds):
                self.assertEqual(summary.verdict(low, high, rounds, 0.03), expected)

    def test_a_ratio_above_one_is_better_in_both_directions(self):
        self.assertEqual(summary.ratio(2, 3, "lower"), 1.5)
        self.assertEqual(summary.ratio(3, 2, "higher"), 1.5)

    def test_a_value_of_zero_has_no_ratio(self):
        self.assertIsNone(summary.ratio(0, 3, "lower"))
        self.assertIsNone(summary.ratio(1, 0, "higher"))
