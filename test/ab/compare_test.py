# SPDX-License-Identifier: BSD-3-Clause
"""coop-ab as a program, on commands with known numbers."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import unittest
import unittest.mock

import programs
from programs import DRIFTING, coop_ab, log_of, new_folder, script, two


def row(text, size):
    """The line of a table as words: size, median, spread, base's median, its spread, ratio, low, …, high, verdict."""
    return next(line.split() for line in text.splitlines() if re.match(rf"{size} .*(better|worse|same|unclear)$", line))


class Comparison(unittest.TestCase):
    def test_ratio_is_formed_within_rounds_so_that_drift_cancels(self):
        result = coop_ab(*two("--repeats", 9, "--", script(DRIFTING), "{}"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(row(result.stdout, 8), ["8", "2000", "40.0", "2500", "40.0", "1.250", "1.250", "…", "1.250", "better"])
        self.assertIn("ratio = slow / fast", result.stdout)

    def test_base_can_be_any_setting(self):
        result = coop_ab(*two("--base", "fast", "--repeats", 6, "--", script(DRIFTING), "{}"))
        self.assertEqual(row(result.stdout, 16)[5:], ["0.800", "0.800", "…", "0.800", "worse"])

    def test_higher_is_better_turns_the_ratio(self):
        result = coop_ab(*two("--higher-is-better", "--repeats", 6, "--", script(DRIFTING), "{}"))
        self.assertEqual(row(result.stdout, 8)[5], "0.800")

    def test_runs_interleave_and_the_seed_repeats_their_order(self):
        logs = []
        for _ in range(2):
            path = script("echo 1 1")
            coop_ab(*two("--lower-is-better", "--repeats", 8, "--", path, "{}"))
            logs.append(log_of(path))
        self.assertEqual(logs[0], logs[1])
        rounds = [logs[0][i:i + 2] for i in range(0, 16, 2)]
        self.assertTrue(all(sorted(pair) == ["fast", "slow"] for pair in rounds), rounds)
        self.assertIn(["slow", "fast"], rounds)
        self.assertIn(["fast", "slow"], rounds)

    def test_a_warm_up_round_does_not_count(self):
        path = script('[ "$run" -le 2 ] && echo 1 1000 || echo 1 5')
        result = coop_ab(*two("--lower-is-better", "--repeats", 1, "--warmup", 1, "--", path, "{}"))
        self.assertEqual(row(result.stdout, 1)[1], "5")
        self.assertEqual(len(log_of(path)), 4)

    def test_few_rounds_are_said_to_cover_less(self):
        result = coop_ab(*two("--repeats", 3, "--", script(DRIFTING), "{}"))
        self.assertIn("cover 75.0 %", result.stdout)
        self.assertEqual(row(result.stdout, 8)[-1], "unclear")

    def test_environment_makes_a_setting(self):
        path = script('echo 1 "$WEIGHT"')
        result = coop_ab("--setting", "fast=WEIGHT=2", "--env", "slow:WEIGHT=4", "--quiet", "--repeats", 6,
                         "--lower-is-better", "--", path)
        self.assertEqual(row(result.stdout, 1)[5], "2.000", result.stderr)

    def test_wall_time_resolves_milliseconds(self):
        result = coop_ab("--setting", "fast=0.10", "--setting", "slow=0.14", "--quiet", "--repeats", 3, "--wall",
                         "--json", f"{(folder := new_folder())}/r.json", "--", "sleep", "{}")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(f"{folder}/r.json", encoding="utf-8") as file:
            entry = json.load(file)["summary"]["rows"][0]["settings"]["fast"]
        self.assertGreater(entry["ratio"], 1.1)

    def test_one_figure_by_expression(self):
        path = script('case $1 in fast) echo "took 2 s";; *) echo "took 3 s";; esac')
        result = coop_ab(*two("--match", "took (.*) s", "--unit", "s", "--lower-is-better", "--repeats", 6, "--", path, "{}"))
        self.assertEqual(row(result.stdout, "figure")[5], "1.500", result.stderr)

    def test_progress_names_round_and_time_left(self):
        result = coop_ab("--setting", "a=a", "--setting", "b=b", "--seed", 3, "--repeats", 2, "--", script(DRIFTING), "{}")
        self.assertIn("seed 3", result.stderr)
        self.assertRegex(result.stderr, r"round 1/2  [ab]: \d.* left")


class Failures(unittest.TestCase):
    breaking = '[ "$run" = 3 ] && { echo last words; echo complaint >&2; exit 7; }; echo 1 5'

    def test_stop_and_show_command_exit_code_and_output(self):
        result = coop_ab(*two("--lower-is-better", "--", script(self.breaking), "{}"))
        self.assertEqual(result.returncode, 3)
        for words in ("exit code 7", "fake ", "last words", "complaint"):
            self.assertIn(words, result.stderr)

    def test_keep_going_leaves_them_out_but_does_not_hide_them(self):
        result = coop_ab(*two("--lower-is-better", "--keep-going", "--repeats", 3, "--", script(self.breaking), "{}"))
        self.assertEqual(result.returncode, 3)
        self.assertIn("left out", result.stderr)
        self.assertEqual(row(result.stdout, 1)[5], "1.000")

    def test_keep_the_samples_so_far(self):
        path = f"{new_folder()}/r.json"
        coop_ab(*two("--lower-is-better", "--json", path, "--", script(self.breaking), "{}"))
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        self.assertEqual((record["complete"], len(record["runs"])), (False, 2))

    def test_a_run_that_hangs_is_ended_with_its_children(self):
        start = time.monotonic()
        path = script("sleep 61.25 & sleep 61.25")
        result = coop_ab(*two("--wall", "--timeout", 0.3, "--", path, "{}"))
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(result.returncode, 3)
        self.assertIn("did not end within 0.3 s", result.stderr)
        self.assertEqual(subprocess.run(["pgrep", "-f", "^sleep 61.25"], check=False).returncode, 1)

    def test_a_signal_ends_the_run_under_way_too(self):
        path = script("exec sleep 62.25")
        with subprocess.Popen([programs.tool, *two("--wall", "--", path, "{}")], stderr=subprocess.PIPE) as process:
            while not os.path.exists(os.path.dirname(path) + "/log"):
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(10), 130)
        self.assertEqual(subprocess.run(["pgrep", "-f", "^sleep 62.25"], check=False).returncode, 1)

    def test_a_signal_while_a_run_is_being_started_ends_it(self):
        from coop_ab import run, settings

        started = []

        def start_and_be_ended(*arguments, **options):
            started.append(popen(*arguments, **options))
            signal.raise_signal(signal.SIGTERM)
            return started[0]

        def interrupt(_number, _frame):
            raise KeyboardInterrupt

        popen, before = subprocess.Popen, signal.signal(signal.SIGTERM, interrupt)
        try:
            with unittest.mock.patch.object(run.subprocess, "Popen", start_and_be_ended):
                self.assertRaises(KeyboardInterrupt, run.run, ["sleep", "60"], settings.Setting("s"), 60)
        finally:
            signal.signal(signal.SIGTERM, before)
        self.assertEqual(started[0].poll(), -signal.SIGTERM)

    def test_a_signal_right_after_a_run_was_started_ends_it(self):
        from coop_ab import run, settings

        started = []
        popen, held = subprocess.Popen, run.signals_held

        def start(*arguments, **options):
            started.append(popen(*arguments, **options))
            return started[0]

        @contextlib.contextmanager
        def held_and_then_ended():
            with held() as came:
                yield came
            raise KeyboardInterrupt

        with unittest.mock.patch.object(run.subprocess, "Popen", start), unittest.mock.patch.object(run, "signals_held", held_and_then_ended):
            self.assertRaises(KeyboardInterrupt, run.run, ["sleep", "60"], settings.Setting("s"), 60)
        self.assertEqual(started[0].poll(), -signal.SIGTERM)


class Records(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        cls.path = f"{cls.folder}/r.json"
        cls.result = coop_ab(*two("--repeats", 6, "--title", "T", "--json", cls.path, "--", script(DRIFTING), "{}"))
        with open(cls.path, encoding="utf-8") as file:
            cls.record = json.load(file)

    def test_hold_settings_samples_and_facts(self):
        record = self.record
        self.assertEqual((record["schema"], record["program"], record["complete"]), (1, "coop-ab", True))
        self.assertEqual((record["title"], record["unit"], record["better"], record["base"]), ("T", "us", "lower", "slow"))
        self.assertEqual(record["settings"][0], {"name": "fast", "words": "fast", "env": {}})
        self.assertEqual(len(record["runs"]), 12)
        self.assertEqual(set(record["runs"][0]),
                         {"round", "position", "setting", "wall_s", "load", "exit_code", "error", "values"})
        self.assertEqual([pair[0] for pair in record["runs"][0]["values"]], [8, 16])
        for fact in ("cpu", "cores", "kernel", "open_mpi", "ompi_coop", "load_before", "load_after"):
            self.assertIn(fact, record["host"])
        entry = record["summary"]["rows"][0]["settings"]["fast"]
        self.assertEqual((entry["ratio"], entry["verdict"], entry["rounds"]), (1.25, "better", 6))

    def test_give_the_same_table_again(self):
        again = coop_ab("--replot", self.path)
        table = [line for line in self.result.stdout.splitlines() if not line.startswith("samples")]
        self.assertEqual(again.stdout.splitlines(), table)

    def test_can_be_judged_later(self):
        self.assertEqual(coop_ab("--replot", self.path, "--assert", "ratio(fast)>=1.2").returncode, 0)
        self.assertEqual(coop_ab("--replot", self.path, "--assert", "ratio(fast)>=1.3").returncode, 1)

    def test_gates_decide_the_exit_code_and_name_sizes(self):
        good = coop_ab(*two("--assert", "ratio(fast)>=1.2", "--repeats", 1, "--", script(DRIFTING), "{}"))
        self.assertEqual(good.returncode, 0)
        self.assertIn("HOLDS", good.stdout)
        bad = coop_ab(*two("--assert", "ratio(fast)>=1.3", "--repeats", 1, "--", script(DRIFTING), "{}"))
        self.assertEqual(bad.returncode, 1)
        self.assertRegex(bad.stdout, re.escape("2 of 2: 8: 1.25, 16: 1.25"))


class BadInput(unittest.TestCase):
    def test_is_one_line_and_exit_code_2(self):
        settings = ["--setting", "a=1", "--setting", "b=2"]
        end = ["--", "echo", "1", "{}"]
        folder = new_folder()
        with open(f"{folder}/no.json", "w", encoding="utf-8") as file:
            file.write('{"schema": 1}')
        for arguments, words in (
                ([*settings], "no command"), ([*settings, "--"], "no command"),
                (["--setting", "a=1", *end], "at least twice"),
                (["--setting", "a=1", "--setting", "a=2", *end], "given twice"),
                (["--setting", "a", "--setting", "b=2", *end], "NAME='WORDS'"),
                (["--setting", "a='1", "--setting", "b=2", *end], "No closing quotation"),
                ([*settings, "--", "echo", "1"], "has no {}"), ([*settings, "--env", "a:X", *end], "NAME:VAR=VALUE"),
                ([*settings, "--base", "c", *end], "no such setting"), ([*settings, "--repeats", "0", *end], "--repeats 0"),
                ([*settings, "--repeats", "x", *end], "--repeats"), ([*settings, "--timeout", "0", *end], "--timeout"),
                ([*settings, "--match", "(", *end], "--match"), ([*settings, "--match", "x", *end], "exactly one"),
                ([*settings, "--match", "(x)", "--wall", *end], "exclude"),
                ([*settings, "--plot", "x.gif", *end], ".svg"), ([*settings, "--plot", "/no/x.svg", *end], "no folder"),
                ([*settings, "--json", "/no/x.json", *end], "no folder"), ([*settings, "--assert", "good", *end], "--assert"),
                ([*settings, "--assert", "ratio(c)>1", *end], "no setting 'c'"), ([*settings, "--frob", *end], "--frob"),
                ([*settings, "--quiet", *end], "--lower-is-better"),
                ([*settings, "--quiet", "--", "/nonexistent", "{}"], "cannot run '/nonexistent'"),
                (["--replot", "/nonexistent.json"], "cannot read"), (["--replot", f"{folder}/no.json"], "not written by"),
                (["--replot", programs.tool], "not JSON"), (["--merge", "a.json"], "--plot"),
                (["--replot", "a.json", *end], "run nothing")):
            with self.subTest(" ".join(arguments)):
                result = coop_ab(*arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertIn(words, result.stderr)
