# SPDX-License-Identifier: BSD-3-Clause
"""bench/overlap: how it reads output, when it stops adding rounds, and how it draws; with --prefix, also a short run of each part."""

import json
import os
import shutil
import statistics
import unittest

import programs
from programs import overlap

PARTS = ("ratio", "timeline", "wait", "mixed")
EVENTS = ("call", "compute", "wait", "return", "other_call", "other_return")


def row(words):
    return " ".join(str(word) for word in words)


class Rounds(unittest.TestCase):
    def limits(self, tolerance, relative):
        from overlap_parts import rounds

        return rounds.Limits(rounds=9, minutes=1, tolerance=tolerance, relative=relative)

    def left(self, values, tolerance, relative=False):
        from overlap_parts import rounds

        runs = [{"job": "j", "setting": "s", "figures": {"f": value}} for value in values]
        return rounds.unstable(runs, self.limits(tolerance, relative))

    def test_few_rounds_are_not_stable_however_equal(self):
        self.assertEqual(self.left([0.5] * 5, 0.01), [("j", "s", "f")])
        self.assertEqual(self.left([0.5] * 6, 0.01), [])

    def test_the_interval_of_the_median_counts_and_not_a_single_outlier(self):
        self.assertEqual(self.left([0.50, 0.51, 0.50, 0.53, 0.50, 0.50], 0.01), [("j", "s", "f")])
        self.assertEqual(self.left([0.50, 0.51, 0.50, 0.90, 0.50, 0.51, 0.50, 0.51, 0.50], 0.01), [])

    def test_a_tolerance_may_be_a_share(self):
        self.assertEqual(self.left([100, 101, 100, 108, 100, 100], 0.05, True), [])
        self.assertEqual(self.left([100, 101, 100, 112, 100, 100], 0.05, True), [("j", "s", "f")])

    def test_shares_of_the_machine_add_up(self):
        from overlap_parts import rounds

        found = rounds.shares((100, 40, 5), (110, 44, 8))
        self.assertEqual(found, {"idle": 0.4, "own": 0.3, "others": 0.3})


TRACE = """    0.000000 s  created at 100.000000 s of CLOCK_MONOTONIC
    0.999990 s  message begun QP 0x10 -> QP 0x20 SEND 60 bytes
    0.999995 s  message arrived QP 0x10 -> QP 0x20 SEND 60 bytes
    1.000010 s  message begun QP 0x20 -> QP 0x10 SEND 49 bytes
    1.000012 s  message arrived QP 0x20 -> QP 0x10 SEND 49 bytes
    1.000020 s  message begun QP 0x10 -> QP 0x20 SEND 148 bytes
    1.000024 s  message arrived QP 0x10 -> QP 0x20 SEND 148 bytes
    1.000024 s  message ended QP 0x10 -> QP 0x20 SEND 148 bytes SUCCESS
    1.000040 s  message begun QP 0x20 -> QP 0x10 RDMA_READ 1048576 bytes
    1.004300 s  message arrived QP 0x20 -> QP 0x10 RDMA_READ 1048576 bytes
    1.004301 s  message begun QP 0x20 -> QP 0x10 SEND 56 bytes
    1.004305 s  message arrived QP 0x20 -> QP 0x10 SEND 56 bytes
    1.009000 s  message begun QP 0x10 -> QP 0x20 SEND 148 bytes
    1.009004 s  message arrived QP 0x10 -> QP 0x20 SEND 148 bytes
"""


class Timeline(unittest.TestCase):
    def roles(self, trace):
        from overlap_parts import timeline

        found = timeline.roles(timeline.read_messages(trace), 101.0, 101.008, 1 << 20)
        return {name: (m["from_sender"], round((m["begun"] - 101) * 1e6), round((m["arrived"] - 101) * 1e6)) for name, m in found.items()}

    def test_tells_the_messages_of_a_read(self):
        self.assertEqual(self.roles(TRACE), {"RTS": (True, 20, 24), "FIN": (False, 4301, 4305), "read": (False, 40, 4300)})

    def test_tells_the_messages_of_a_read_on_its_own_queue_pairs(self):
        trace = TRACE.replace("QP 0x20 -> QP 0x10 RDMA_READ", "QP 0x21 -> QP 0x11 RDMA_READ")
        self.assertEqual(self.roles(trace), self.roles(TRACE))

    def test_tells_the_messages_of_a_write(self):
        trace = TRACE.replace("QP 0x20 -> QP 0x10 RDMA_READ", "QP 0x10 -> QP 0x20 RDMA_WRITE").replace(
            "1.004301 s  message begun QP 0x20 -> QP 0x10", "1.004301 s  message begun QP 0x10 -> QP 0x20").replace(
            "1.004305 s  message arrived QP 0x20 -> QP 0x10", "1.004305 s  message arrived QP 0x10 -> QP 0x20")
        trace = trace.replace("    1.000040 s", "    1.000030 s  message begun QP 0x20 -> QP 0x10 SEND 100 bytes\n"
                              "    1.000034 s  message arrived QP 0x20 -> QP 0x10 SEND 100 bytes\n    1.000040 s")
        self.assertEqual(self.roles(trace), {"RTS": (True, 20, 24), "CTS": (False, 30, 34), "FIN": (True, 4301, 4305),
                                             "write": (True, 40, 4300)})

    def test_says_what_is_missing(self):
        for lines, words in (("SEND 148", "no RTS"), ("SEND 56", "no FIN"), ("RDMA_READ", "no data"), ("created", "when the subnet")):
            with self.subTest(lines), self.assertRaisesRegex(ValueError, words):
                self.roles("".join(line for line in TRACE.splitlines(True) if lines not in line))

    def test_takes_the_median_transfer(self):
        from overlap_parts import timeline

        text = "".join(f"# stamp 1048576 {i} 1.0 1.1 1.2 {1.2 + last} 1.0 1.3\n" for i, last in enumerate((0.5, 0.1, 0.3)))
        self.assertEqual(timeline.median_stamp(timeline.read_stamps(text))[3], 1.5)


def mixed_output(size, hosts=("h0", "h0", "h1")):
    return f"# hosts: {row(hosts)}\n{row([size, 75, 125, 100, 100, 110, 125])}\n"


class Mixed(unittest.TestCase):
    def test_takes_the_columns_of_a_size(self):
        from overlap_parts import mixed

        figures, kept = mixed.read(mixed_output(262144))
        self.assertEqual((figures, kept), ({"262144": 75}, {"262144": [75, 125, 100, 100, 110, 125]}))
        self.assertEqual(mixed.values([{"setting": "ucx", "error": None, "kept": kept}], "ucx", 262144)["inter_end"], (125,))

    def test_wants_two_ranks_on_one_host_and_the_third_on_another(self):
        from overlap_parts import mixed

        for hosts in (("h0", "h0", "h0"), ("h0", "h1", "h2"), ("h0", "h1", "h0"), ()):
            with self.subTest(hosts), self.assertRaisesRegex(ValueError, "the ranks are on"):
                mixed.read(mixed_output(262144, hosts))
        with self.assertRaisesRegex(ValueError, "no line of a size"):
            mixed.read("# hosts: h0 h0 h1\n")


def made_up(name):
    """A record of that part, as if all jobs had run."""
    from overlap_parts import mixed, ratio, subnet, timeline, wait

    machine = {"idle": 0.5, "own": 0.4, "others": 0.1}
    runs, settings = [], subnet.COMPARED
    if name == "ratio":
        engine = {"off": 90.0, "interrupt": 90.0, "openib": None, "ucx": 90.0}
        for side in ratio.SIDES:
            for setting in settings:
                text = "\n".join("# point " + row([size, point, 50, 20, 10, 10 * point, point / 10, 20, engine[setting] or "-", 1, 3, 0.9])
                                 for size in (*ratio.SIZES, 1 << 17) for point in range(1, 9))
                figures, kept = ratio.read(text)
                runs.append((side, setting, figures, kept))
    elif name == "mixed":
        for size in mixed.SIZES:
            runs += [(str(size), setting, *mixed.read(mixed_output(size))) for setting in mixed.SETTINGS]
    elif name == "timeline":
        messages = {"RTS": {"from_sender": True, "begun": 1, "arrived": 3}, "FIN": {"from_sender": False, "begun": 90, "arrived": 92},
                    "read": {"from_sender": False, "begun": 5, "arrived": 90}}
        moments = dict(zip(EVENTS, (0, 2, 100, 101, 0, 93)))
        runs = [(side, setting, {"total_us": 1}, {"moments_us": moments, "messages_us": messages}) for side in timeline.SIDES
                for setting in timeline.SHOWN]
    else:
        text = "\n".join(f"# mpi {part} {rank} " + row([10, 1, 1, 1, 1, 1, 5]) for part in ("all", "split") for rank in range(wait.RANKS))
        for job in ("HPL", "halo"):
            for setting in settings:
                runs.append((job, setting, *wait.read("all")(text)))
    samples = [{"round": 1, "position": 0, "job": job, "setting": setting, "wall_s": 1.0, "machine": machine, "error": None,
                "figures": figures, "kept": kept} for job, setting, figures, kept in runs]
    host = {"cpu": "c", "cores": 2, "system": "s", "kernel": "k", "open_mpi": "4", "load_before": 0, "load_after": 0}
    end = {"rounds": 1, "figures": 1, "not_stable": [], "tolerance": 0.01, "relative": False}
    return {"program": "overlap", "schema": 1, "part": name, "seed": 1, "host": host, "end": end, "runs": samples}


class Command(unittest.TestCase):
    def test_draws_what_every_part_could_find(self):
        folder = programs.new_folder()
        for name in PARTS:
            with open(f"{folder}/overlap-{name}.json", "w", encoding="utf-8") as file:
                json.dump(made_up(name), file)
        result = overlap("--redraw", "--out", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        for words in ("sender     64 KiB interrupt      0.400   0.800", "RTS sent 1; computing begins 2; RTS arrived 3",
                      "halo     ucx              10.000", "1 MiB whole         75.0    0.0 |          125          100"):
            self.assertIn(words, result.stdout)
        for name in PARTS:
            with open(f"{folder}/overlap-{name}.svg", encoding="utf-8") as file:
                self.assertIn("<svg", file.read())

    def test_refuses_what_it_does_not_know(self):
        for arguments, words in ((("histogram",), "there is no part 'histogram'"), (("--rounds", "0"), "--rounds 0: must be from"),
                                 (("--prefix", programs.new_folder()), "not an installation of ompi-coop"),
                                 (("--redraw", "--out", programs.new_folder()), "cannot read")):
            result = overlap(*arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(words, result.stderr)

    def measured(self, name):
        """The samples of a quick run."""
        if not programs.prefix:
            self.skipTest("takes an installation (--prefix P)")
        folder = programs.new_folder()
        result = overlap("--prefix", programs.prefix, "--quick", "--quiet", "--out", folder, name, timeout=280)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(os.path.getsize(f"{folder}/overlap-{name}.svg"), 1000)
        with open(f"{folder}/overlap-{name}.json", encoding="utf-8") as file:
            return json.load(file)["runs"]

    def test_measures_the_ratio(self):
        runs = self.measured("ratio")
        self.assertEqual(len({(sample["job"], sample["setting"]) for sample in runs}), 8)
        for sample in runs:
            for points in sample["kept"].values():
                for _, total, _, compute, ratio, cpu, engine, others, lost, corrected in points:
                    self.assertTrue(0 < ratio < 1.2 and total > 0.8 * compute and 0 < cpu and engine >= 0 and others >= 0 <= lost, points)
                    # While a receiver computes, its software HCA reads the message, which takes CPU time.
                    self.assertTrue(engine > 0 or (sample["job"], sample["setting"]) != ("receiver", "interrupt"), points)
                    self.assertTrue(corrected >= ratio * 0.98, points)

    def test_measures_the_timeline(self):
        for sample in self.measured("timeline"):
            moments, messages = sample["kept"]["moments_us"], sample["kept"]["messages_us"]
            data = messages.get("read") or messages["write"]
            self.assertEqual("write" in messages, sample["setting"] == "rput", messages)
            self.assertTrue(moments["call"] <= moments["compute"] < moments["wait"] <= moments["return"], moments)
            self.assertTrue(messages["RTS"]["begun"] <= messages["RTS"]["arrived"] <= data["begun"] < data["arrived"], messages)
            self.assertTrue(messages["FIN"]["arrived"] >= data["arrived"], messages)
            # 1 MiB takes this long at 250 MB/s; nothing can arrive earlier.
            self.assertGreater(data["arrived"] - data["begun"], 4100, messages)
            if sample["setting"] == "off" and sample["job"] == "receiver":
                self.assertGreater(data["begun"], moments["wait"], "nobody could read before MPI_Wait")

    def test_measures_both_at_once(self):
        runs = self.measured("mixed")
        self.assertEqual({sample["setting"] for sample in runs}, {"coop", "chunks", "whole", "openib", "ucx"})
        for sample in runs:
            for size, (_, both, intra, inter, intra_end, inter_end) in sample["kept"].items():
                # The rate is 250 MB/s, also for pml/ucx, which cannot copy between processes of different virtual hosts.
                self.assertTrue(min(inter, inter_end) > 0.98 * int(size) / 250 and intra > 0 < intra_end, sample)
                self.assertTrue(both > 0.98 * int(size) / 250, sample)

    def test_measures_the_time_in_mpi(self):
        if not shutil.which("hpcc"):
            self.skipTest("hpcc is not installed")
        runs = self.measured("wait")
        self.assertEqual(len({(sample["job"], sample["setting"]) for sample in runs}), 8)
        for sample in runs:
            kept = sample["kept"]
            inside = sum(kept[name] for name in ("wait", "blocking", "testing", "starting", "collective"))
            self.assertTrue(0 < inside < kept["elapsed"] < sample["wall_s"] and kept["calls"] > 0, sample)
        self.assertGreater(statistics.median([sample["kept"]["wait"] for sample in runs if sample["job"] == "halo"]), 0)
