# SPDX-License-Identifier: BSD-3-Clause
"""bench/node: a short measurement of an installation, the comparison with the goals, and refused options."""

import itertools
import json
import os
import re
import subprocess
import unittest
from unittest import mock

import programs
from programs import node

# Of one round with one setting each: size, half round trips.
COOP = {1: 0.2, 2: 0.2, 4: 0.2, 8: 0.2, 4096: 0.9, 8192: 1.8}
OB1 = {1: 0.4, 2: 0.25, 4: 0.4, 8: 0.4, 4096: 1.0, 8192: 2.0}
UCX = {1: 0.5, 2: 0.5, 4: 0.5, 8: 0.5, 4096: 0.8, 8192: 4.0}
LIMIT = {8: 0.06}


def record_of(values, title="made up"):
    """A record of coop-ab. values: {setting: {size: us}}."""
    from coop_ab import host

    runs = [{"round": 1, "position": place, "setting": name, "wall_s": 1, "load": 0, "exit_code": 0, "error": None, "values": list(found.items())}
            for place, (name, found) in enumerate(values.items())]
    return {"program": "coop-ab", "schema": 1, "title": title, "command": ["{}"], "base": "coop", "unit": "us", "better": "lower", "key": "size",
            "settings": [{"name": name, "words": "", "env": {}} for name in values], "seed": 1, "rounds": 1, "timeout_s": 1, "started": "",
            "complete": True, "host": host.facts(), "runs": runs}


class Judging(unittest.TestCase):
    def judged(self, values):
        from node_parts import judge

        return judge.report({"latency": record_of(values)})

    def test_names_missed_goals_with_size_ratio_and_library(self):
        first, *_ = self.judged({"coop": COOP, "ob1": OB1, "ucx": UCX})
        self.assertEqual(first, "latency: 4 of 6 goals reached; no other is faster at 5 of 6 sizes; 1 round against ob1, ucx; "
                                "missed: 2 B 0.80 (ob1) > 0.75, 4 KiB 1.12 (ucx) > 0.95")

    def test_a_size_without_a_figure_of_ours_is_told(self):
        first, *_ = self.judged({"coop": {1: 0.2}, "ob1": {1: 0.4, 2: 0.4}})
        self.assertIn("no other is faster at 1 of 2 sizes; 1 round against ob1; no figure of coop: 2 B", first)

    def test_warns_if_cpus_move(self):
        lines = self.judged({"coop": COOP, "ob1": OB1, "limit": {4: 0.04, 8: 0.25}})
        self.assertIn("goes to the other core in 40 to 250 ns; 8 bytes need 0.80 times that", lines[3])
        self.assertIn("warning: these CPUs are near each other at times, and far at others", lines[4])
        self.assertEqual(len(self.judged({"coop": COOP, "ob1": OB1, "limit": LIMIT})), 4)

    def test_compares_a_cache_line_with_the_run_of_the_same_round(self):
        from node_parts import judge

        record = record_of({"coop": {8: 0.5}, "ob1": {8: 1.0}, "limit": {8: 0.25}})
        for number in (2, 3):
            far = 0.05 if number == 3 else 0.25
            more = record_of({"coop": {8: 2 * far}, "ob1": {8: 1.0}, "limit": {8: far}})["runs"]
            record["runs"] += [{**run, "round": number} for run in more]
        self.assertIn("8 bytes need 2.00 times that", judge.cache_line(record))

    def test_a_limit_is_no_competitor_but_the_measure_of_a_cache_line(self):
        lines = self.judged({"coop": COOP, "ob1": OB1, "ucx": UCX, "limit": LIMIT})
        self.assertIn("latency: 4 of 6 goals reached", lines[0])
        self.assertIn("goes to the other core in 60 ns; 8 bytes need 3.33 times that; goal 2.5: MISSED", lines[3])

    def test_the_better_limit_is_the_measure_of_speed(self):
        lines = self.judged({"coop": {8: 2.0, 16: 3.0}, "ob1": {8: 4.0, 16: 4.0}, "limit": {8: 1.0, 16: 4.0}, "limit-read": {8: 4.0, 16: 2.4}})
        self.assertEqual(lines[1], "latency: speed / limit without MPI: 8 B 0.50, 16 B 0.80")

    def test_without_limits_the_cache_line_is_unknown(self):
        self.assertIn("unknown", self.judged({"coop": COOP, "ob1": OB1})[2])

    def test_a_step_is_one_of_the_time_per_byte(self):
        self.assertIn("at most 1.00 (at 8 KiB); goal 1.6: reached", self.judged({"coop": COOP, "ob1": OB1})[1])
        self.assertIn("at most 2.00 (at 8 KiB); goal 1.6: MISSED", self.judged({"coop": {**COOP, 8192: 3.6}, "ob1": OB1})[1])

    def test_rates_are_compared_by_cost(self):
        from node_parts import judge

        record = {**record_of({"coop": {8: 100.0}, "ob1": {8: 80.0}, "ucx": {8: 95.0}}), "unit": "messages/s", "better": "higher"}
        self.assertEqual(judge.report({"rate-2": record}), ["rate-2: 0 of 1 goals reached; no other is faster at 1 of 1 sizes; 1 round against ob1, ucx; missed: 8 B 0.95 (ucx) > 0.91"])

    def test_files_can_be_judged_again(self):
        folder = programs.new_folder()
        self.assertIn("no node-*.json", node("--redo", "--out", folder).stderr)
        with open(f"{folder}/node-any.json", "w", encoding="utf-8") as file:
            json.dump(record_of({"coop": {8: 1.0}, "ob1": {8: 0.5}}), file)
        result = node("--redo", "--out", folder)
        self.assertEqual(result.stdout, "any: 0 of 1 goals reached; no other is faster at 0 of 1 sizes; 1 round against ob1; missed: 8 B 2.00 (ob1) > 1.00\n", result.stderr)


class Measuring(unittest.TestCase):
    def test_measures_with_every_byte_checked(self):
        if not programs.prefix:
            self.skipTest("needs an installation (--prefix)")
        folder = programs.new_folder()
        result = node("--prefix", programs.prefix, "--quick", "--out", folder, "latency", "window", "rate-2", "first-16-1K")
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        for name in ("latency", "window", "rate-2", "first-16-1K"):
            with open(f"{folder}/node-{name}.json", encoding="utf-8") as file:
                done = {run["setting"] for run in json.load(file)["runs"] if run["values"]}
            self.assertTrue({"coop", "ob1", "ucx"} <= done, f"{name}: {done}")
            self.assertEqual("limit" in done, name in ("latency", "window"))
            self.assertEqual("limit-read" in done, name == "window")

    def test_refuses_what_it_does_not_know(self):
        for arguments, words in ((("latencies",), "there is no part 'latencies'"), (("--rounds", "0"), "--rounds 0: must be from 1 to 1000"),
                                 (("--prefix", programs.new_folder()), "not an installation")):
            result = node(*arguments)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, result.stderr)

    def test_counts_only_while_the_cores_are_near(self):
        if not programs.prefix or len(os.sched_getaffinity(0)) < 2:
            self.skipTest("needs an installation (--prefix), and two cores")
        folder = programs.new_folder()
        result = node("--prefix", programs.prefix, "--quick", "--near", "100000", "--out", folder, "both-touch", "rate-1")
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        for name, words in (("both-touch", ["--near", "100000"]), ("rate-1", [])):
            with open(f"{folder}/node-{name}.json", encoding="utf-8") as file:
                command = json.load(file)["command"]
            self.assertEqual([word for word in command if word in ("--near", "100000")], words)
        self.assertIn("--near -1: must be from 0 to 1000000", node("--near", "-1").stderr)

    def test_near_is_seen_in_short_runs(self):
        from coop_ab.errors import BadInput
        from node_parts import cli

        options = cli.parse(["--prefix", "P"])
        for shown, limit in ((("8 0.2", "# size\n8 0.06", ""), 150), (("",), None)):
            shown = itertools.cycle(shown)
            run = lambda *_, **__: subprocess.CompletedProcess([], 1, next(shown), "no prefix")
            with mock.patch.object(cli.subprocess, "run", run):
                if limit:
                    self.assertAlmostEqual(cli.nearest(options), limit)
                else:
                    self.assertRaisesRegex(BadInput, "cannot measure how near the cores are .*no prefix", cli.nearest, options)

    def test_words_name_parts(self):
        listed = [line.split(":")[0] for line in node("--list", "rate", "first-48").stdout.splitlines()]
        self.assertEqual(listed, ["rate-1", "rate-2", "rate-4", *(f"first-48-{size}" for size in ("64", "1K", "8K", "64K"))])
        used = re.findall(r": \d+ ranks, (\w+) ", node("--list").stdout)
        self.assertEqual(set(used) - set(os.listdir(programs.bench)), set())
        self.assertIn("coop_alltoall", used)
