# SPDX-License-Identifier: BSD-3-Clause
"""coop-ab: effects of the order of the runs, of few rounds, and of missing runs."""

import collections
import glob
import json
import os
import re
import unittest

import programs
from coop_ab import session, stats, summary
from programs import DRIFTING, coop_ab, log_of, new_folder, script, two


def ratio_of(result, size):
    words = next(line.split() for line in result.stdout.splitlines() if re.match(rf"{size} .*(better|worse|same|unclear)$", line))
    return float(words[5])


class Order(unittest.TestCase):
    # The second run of a round is 4 % faster, with either setting.
    second_is_faster = '[ $((run % 2)) = 1 ] && echo 1 104 || echo 1 100'

    def test_a_place_in_the_round_favours_no_setting_by_default(self):
        result = coop_ab(*two("--lower-is-better", "--", script(self.second_is_faster), "{}"))
        self.assertAlmostEqual(ratio_of(result, 1), 1, delta=0.002)
        self.assertNotIn("equally often", result.stdout)

    def test_a_warm_up_does_not_shift_the_places(self):
        result = coop_ab(*two("--lower-is-better", "--warmup", 1, "--", script(self.second_is_faster), "{}"))
        self.assertAlmostEqual(ratio_of(result, 1), 1, delta=0.002)

    def test_rounds_that_favour_a_setting_are_named(self):
        result = coop_ab(*two("--lower-is-better", "--repeats", 7, "--", script(self.second_is_faster), "{}"))
        self.assertIn("7 rounds: not every setting runs first equally often", result.stdout)
        self.assertGreater(abs(ratio_of(result, 1) - 1), 0.03)

    def test_each_setting_is_first_equally_often(self):
        for count in range(2, 9):
            rounds = session.balanced_rounds(count)
            orders = session.orders(count, rounds, seed=5)
            self.assertGreaterEqual(rounds, 10)
            self.assertEqual(len(orders), rounds)
            self.assertEqual(set(collections.Counter(order[0] for order in orders).values()), {rounds // count}, count)

    def test_each_setting_has_the_same_mean_place(self):
        for count in range(2, 9):
            places = collections.Counter()
            for order in session.orders(count, session.balanced_rounds(count), seed=6):
                for place, setting in enumerate(order):
                    places[setting] += place
            self.assertEqual(len(set(places.values())), 1, count)

    def test_the_default_has_a_balanced_number_of_rounds(self):
        for count, rounds in ((2, 10), (3, 12)):
            path = script("echo 1 5")
            coop_ab(*[word for i in range(count) for word in ("--setting", f"s{i}=s{i}")], "--quiet", "--lower-is-better", "--", path, "{}")
            self.assertEqual(len(log_of(path)), count * rounds)

    def test_no_caller_asks_for_rounds_that_favour_a_setting(self):
        for pattern in ("quickstart", "bench/*", "docs/*.rst", "docs/man/*.rst", "README.md", "bench/*.md"):
            for name in glob.glob(f"{programs.TOP}/{pattern}"):
                if not os.path.isfile(name):
                    continue
                with self.subTest(name):
                    with open(name, encoding="utf-8", errors="replace") as file:
                        asked = re.findall(r"--repeats (\d+)", file.read())
                    self.assertFalse([number for number in asked if int(number) % 2 or int(number) < stats.MIN_FOR_VERDICT])


class Verdicts(unittest.TestCase):
    def test_need_six_rounds(self):
        self.assertEqual(summary.verdict(1.2, 1.3, 5, 0.03), summary.UNCLEAR)
        self.assertEqual(summary.verdict(1.2, 1.3, 6, 0.03), summary.BETTER)

    def test_follow_from_an_interval_of_95_percent(self):
        self.assertGreaterEqual(stats.coverage(stats.MIN_FOR_VERDICT, 1), stats.LEVEL)


class Incomplete(unittest.TestCase):
    third_fails = '[ "$run" = 3 ] && exit 7; echo 1 5'

    @classmethod
    def setUpClass(cls):
        cls.path = f"{new_folder()}/r.json"
        cls.result = coop_ab(*two("--lower-is-better", "--keep-going", "--repeats", 6, "--json", cls.path, "--",
                                  script(cls.third_fails), "{}"))

    def test_keep_going_says_what_is_missing(self):
        self.assertEqual(self.result.returncode, 3)
        self.assertRegex(self.result.stdout, r"INCOMPLETE: 1 of 12 runs is missing \((fast|slow) 1\)")

    def test_a_ratio_names_its_number_of_rounds(self):
        self.assertRegex(self.result.stdout, r"\n5 of 6 rounds, ")

    def test_replot_repeats_the_warning_and_the_exit_code(self):
        again = coop_ab("--replot", self.path)
        self.assertEqual(again.returncode, 3)
        self.assertIn("INCOMPLETE: 1 of 12 runs is missing", again.stdout)

    def test_an_assertion_that_holds_does_not_make_it_complete(self):
        self.assertEqual(coop_ab("--replot", self.path, "--assert", "ratio(fast)>=0.5").returncode, 3)

    def test_a_comparison_that_was_stopped_is_incomplete(self):
        path = f"{new_folder()}/r.json"
        coop_ab(*two("--lower-is-better", "--repeats", 6, "--json", path, "--", script('[ "$run" = 9 ] && exit 7; echo 1 5'), "{}"))
        again = coop_ab("--replot", path)
        self.assertEqual(again.returncode, 3)
        self.assertIn("INCOMPLETE: 4 of 12 runs are missing (", again.stdout)

    def test_the_title_of_a_plot_says_incomplete(self):
        for option in ("--replot", "--merge"):
            plot = f"{new_folder()}/r.svg"
            self.assertEqual(coop_ab(option, self.path, "--plot", plot).returncode, 3)
            with open(plot, encoding="utf-8") as file:
                self.assertIn("1 of 12 runs is missing", file.read())

    def test_a_size_that_some_runs_lack_is_missing(self):
        result = coop_ab(*two("--lower-is-better", "--repeats", 6, "--", script('echo 1 5; [ "$run" = 4 ] || echo 2 5'), "{}"))
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stdout, r"INCOMPLETE: 1 value is missing \(2: 1\)")

    def test_a_complete_comparison_has_no_warning(self):
        path = f"{new_folder()}/r.json"
        result = coop_ab(*two("--repeats", 6, "--json", path, "--", script(DRIFTING), "{}"))
        self.assertEqual((result.returncode, coop_ab("--replot", path).returncode), (0, 0))
        self.assertNotIn("INCOMPLETE", result.stdout)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["summary"]["incomplete"], "")
