# SPDX-License-Identifier: BSD-3-Clause
"""bench/failover, and the figures of coop-figures that are measured on software subnets: what they make of times and traces, and with --prefix a
short run of each."""

import array
import json
import os
import re
import subprocess
import unittest

import programs
from programs import coop_figures


def outcome(times, trace, text="", status=0):
    from coop_fig import outage

    return outage.Outcome(status, False, 10.0, {0: [], 1: times}, trace, text)


def fault(**given):
    from failover_parts import catalogue

    return catalogue.Fault("made_up", "made up", (), **{"size": 1000000, "left": 100, "until": 0.9, **given})


def every_10_ms(begin, end):
    return [begin + 0.01 * i for i in range(round((end - begin) * 100))]


class Times(unittest.TestCase):
    def test_a_file_of_times_ends_at_the_first_zero(self):
        from coop_fig import outage

        path = f"{programs.new_folder()}/times"
        with open(path, "wb") as file:
            file.write(array.array("d", [1.5, 2.5, 0.0, 3.5]).tobytes())
        self.assertEqual(outage.read_times(path), [1.5, 2.5])
        self.assertEqual(outage.read_times(path + ".missing"), [])

    def test_a_trace_has_times_of_the_clock(self):
        from coop_fig import outage

        path = f"{programs.new_folder()}/trace"
        with open(path, "w", encoding="utf-8") as file:
            file.write("    0.000020 s  created at 100.000020 s of CLOCK_MONOTONIC\n    2.500000 s  port down h0/coop1/1\n")
        self.assertEqual([words for _, words in outage.read_trace(path)], ["created at 100.000020 s of CLOCK_MONOTONIC", "port down h0/coop1/1"])
        self.assertAlmostEqual(outage.read_trace(path)[1][0], 102.5)

    def test_gap_rate_and_bins(self):
        from coop_fig import outage

        times = every_10_ms(1.0, 1.1) + every_10_ms(1.5, 1.6)
        self.assertEqual([round(at, 2) for at in outage.longest_gap(times, 1.1, 1.4)], [1.09, 1.5])
        self.assertIsNone(outage.longest_gap(times, 1.7, 1.8))
        self.assertAlmostEqual(outage.rate(times, 1.0, 1.095, 1000000), 100)
        self.assertIsNone(outage.rate(times, 1.2, 1.3, 1000000))
        self.assertEqual([round(value) for value in outage.bins(times, 0.995, 1.195, 0.1, 1000000)], [100, 0])


class Figures(unittest.TestCase):
    # Quiet for 60 ms, then 100 MB/s.
    times = every_10_ms(10.0, 10.3) + every_10_ms(10.36, 11.0)

    def of(self, trace, **given):
        from failover_parts import measure

        return measure.figures(fault(**given), outcome(self.times, trace))

    def test_t_counts_from_an_event(self):
        found = self.of([(10.3, "event h0/coop1 PORT_ERR port 1")])
        self.assertAlmostEqual(found["t"], 60, 3)
        self.assertAlmostEqual(found["b"], 1, 3)
        self.assertNotIn("detected", found)

    def test_t_counts_from_the_failure_of_the_queue_pair_if_there_is_no_event(self):
        found = self.of([(10.3, "link down leaf0 -> spine1"), (10.301, "retry QP 0x1 -> QP 0x2 LID 0x4 (0)"), (10.35, "QP to error state QP 0x1")],
                        began="^link down", event=False)
        self.assertAlmostEqual(found["detected"], 50, 3)
        self.assertAlmostEqual(found["t"], 10, 3)

    def test_t_counts_from_the_timer_if_the_hca_repeats(self):
        from failover_parts import measure

        retry = 10.355 - measure.TIMER_S
        found = self.of([(retry, "fault lose-ack: h1/coop1/1"), (retry, "retry QP 0x1 -> QP 0x2 LID 0x4 (6)")], began="^fault lose-ack", event=False)
        self.assertAlmostEqual(found["t"], 5, 3)

    def test_of_several_events_the_longest_t_counts(self):
        found = self.of([(10.1, "event h0/coop1 PORT_ERR port 1"), (10.3, "event h0/coop1 PORT_ERR port 1"), (10.6, "event h0/coop1 PORT_ERR port 1")])
        self.assertAlmostEqual(found["t"], 60, 3)

    def test_without_the_fault_or_a_message_after_it_there_is_no_figure(self):
        self.assertEqual(self.of([]), {})
        self.assertEqual(self.of([(11.5, "event h0/coop1 PORT_ERR port 1")]), {})

    def test_the_end_of_a_job_is_judged(self):
        from failover_parts import measure

        self.assertIsNone(measure.judge_end(fault(), outcome([], [])))
        self.assertIn("dies", measure.judge_end(fault(), outcome([], [], status=1)))
        named = fault(ends="a message")
        self.assertIsNone(measure.judge_end(named, outcome([], [], "this is a message", status=1)))
        self.assertEqual(measure.judge_end(named, outcome([], [], "another", status=1)), "another message")
        self.assertEqual(measure.judge_end(named, outcome([], [])), "did not end")

    def test_the_table_names_what_is_missed(self):
        from failover_parts import table

        samples = [{"fault": "local_port", "pml": "coop", "wrong": wrong, "figures": figures} for wrong, figures in
                   ((None, {"t": 1.0, "b": 0.99}), (None, {"t": 7.0, "b": 0.9}), (None, {"t": 8.0, "b": 0.9}), ("hangs", {}))]
        _, _, count, cells = next(table.rows(samples))
        self.assertEqual((count, cells["missed"]), (4, "1 of 4: hangs; t > 5 ms; b < 0.95"))
        self.assertFalse(table.complete(samples))
        self.assertTrue(table.complete(samples[:1]))
        self.assertIn("8.0", table.text(samples))
        self.assertIn("port of the sender down", table.rst(samples))


class Drawings(unittest.TestCase):
    def test_the_figures_of_subnets_draw_what_could_be_measured(self):
        from coop_ab import record as records
        from coop_ab.settings import Setting
        from coop_fig import apm, failover

        pages = []
        for scene in failover.SCENES:
            record = records.new(["mpirun", "-n", "2", "{}"], failover.SETTINGS, "coop", failover._Reading, 1, 1, 0)
            record["title"] = scene.title
            record["runs"] = [{"round": 1, "setting": setting.name, "error": None, "end": "well", "values": [[-50, [300.0]], [50, [0.0]]]}
                              for setting in failover.SETTINGS]
            pages.append(record)
        self.assertEqual(failover.limits(pages[0]), {-50: [300], 50: [100]})
        record = records.new(["mpirun"], [Setting("coop_apm")], "coop_apm", failover._Reading, 1, 1, 0)
        record["runs"] = [{"round": 1, "setting": "coop_apm", "error": None, "values": [[1, [float(i + 1) for i in range(10)]], [2, [2.0] * 10]]}]
        for module, drawn in ((failover, pages), (apm, [record])):
            path = f"{programs.new_folder()}/{module.NAME}.svg"
            module.save(drawn, path)
            self.assertGreater(os.path.getsize(path), 1000)


class Program(unittest.TestCase):
    def test_every_kind_receives_and_counts_on_stock_components(self):
        path = f"{programs.new_folder()}/times"
        for kind in ("send", "both", "put", "get", "add"):
            done = programs.mpirun(2, "coop_failover", "-k", kind, "-m", "4096", "-t", "0.2", "-o", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            receivers = {"send": {1}, "both": {0, 1}}.get(kind, {0})
            self.assertEqual({int(rank) for rank in re.findall(r"^# rank (\d): MB/s: \d", done.stdout, re.M)}, receivers, kind)
            from coop_fig import outage

            for rank in (0, 1):
                times = outage.read_times(f"{path}.{rank}")
                self.assertEqual((bool(times), times), (rank in receivers, sorted(times)), kind)


class Runs(unittest.TestCase):
    def setUp(self):
        if not programs.prefix:
            self.skipTest("needs --prefix")

    def test_the_words_of_the_catalogue_and_of_the_figure_are_actions(self):
        from coop_fig import failover
        from failover_parts import catalogue

        tool = f"{programs.prefix}/bin/coop-fabric"
        jobs = [(one.subnet, [words for _, words in one.steps]) for one in catalogue.FAULTS]
        jobs += [(("--hosts", "2", "--hcas", "2"), [words for _, _, words in scene.faults]) for scene in failover.SCENES]
        by_subnet = {}
        for subnet, actions in jobs:
            by_subnet.setdefault(tuple(word for word in subnet if word != "--virtual-hosts"), set()).update(actions)
        for subnet, actions in by_subnet.items():
            path = f"{programs.new_folder()}/scenario"
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"at 1s {words}\n" for words in sorted(actions))
            done = subprocess.run([tool, "run", *subnet, "--", tool, "scenario", path, "--check"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, f"{sorted(actions)}: {done.stderr}")

    def test_a_fault_is_measured(self):
        path = f"{programs.new_folder()}/failover.json"
        done = subprocess.run([f"{programs.TOP}/bench/failover", "--prefix", programs.prefix, "--out", path, "--rounds", "1", "--scale", "0.5", "local_port"],
                              capture_output=True, text=True, timeout=120, check=False, env=programs.of_this_installation())
        self.assertIn(done.returncode, (0, 3), done.stderr)
        with open(path, encoding="utf-8") as file:
            samples = json.load(file)["samples"]
        self.assertEqual(sorted(sample["pml"] for sample in samples), ["coop", "ob1"])
        self.assertTrue(all(sample["wrong"] in (None, "a rail did not come back") for sample in samples), done.stderr)
        self.assertTrue(re.search(r"^local_port +coop +1", done.stdout, re.M), done.stdout)

    def test_both_figures_are_measured(self):
        folder = programs.new_folder()
        done = coop_figures("--quick", "--quiet", "--bench", programs.bench, "--out", folder, "failover", "apm", timeout=180, env=programs.of_this_installation())
        # On a busy machine a stock component may not begin in time, or queue pairs may not get ready to move: 3, and said so. The part
        # apm of test/fabric tests coop_apm alone.
        self.assertIn(done.returncode, (0, 3), done.stderr)
        for name, setting in (("failover", "coop"), ("apm", "coop_apm")):
            if name == "apm" and "left out: setting coop_apm" in done.stderr:
                return
            with open(f"{folder}/{name}.json", encoding="utf-8") as file:
                record, = json.load(file)["comparisons"]
            self.assertTrue([run for run in record["runs"] if run["values"] and run["setting"] == setting], done.stderr)
            self.assertTrue(os.path.exists(f"{folder}/{name}.svg"))
        condensed = subprocess.run([f"{programs.TOP}/docs/figures/condense.py", f"{folder}/failover.json", f"{folder}/apm.json", "--out", folder],
                                   capture_output=True, text=True, check=False)
        self.assertEqual(condensed.returncode, 0, condensed.stderr)

    def test_wrong_options_are_refused(self):
        def says(*arguments):
            return subprocess.run([f"{programs.TOP}/bench/failover", *arguments], capture_output=True, text=True, check=False).stderr

        self.assertIn("there is no fault 'flood'", says("flood"))
        self.assertIn("--rounds 0: must be from 1", says("--rounds", "0"))
        self.assertIn("not an installation", says("--prefix", "/nowhere"))
        usage = [f"{programs.bench}/coop_failover"]
        launched = subprocess.run(["mpirun", "-n", "2", "--oversubscribe", *usage, "-k", "swim"], capture_output=True, text=True, check=False)
        self.assertIn("option -k: value 'swim' not allowed: use send, both, put, get or add", launched.stderr)
