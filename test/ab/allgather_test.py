# SPDX-License-Identifier: BSD-3-Clause
"""bench/allgather: two quick grounds from start to end, tables and figure from their files, and refused arguments."""

import os
import unittest

import programs
from programs import allgather, coop_figures


class Allgather(unittest.TestCase):
    def test_measures_compares_and_draws(self):
        if not programs.prefix:
            self.skipTest("needs an installation (--prefix)")
        folder = programs.new_folder()
        result = allgather("--prefix", programs.prefix, "--quick", "--out", folder, "node-2", "rails-2")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("ground 2 of 2: rails-2", result.stderr)
        with open(f"{folder}/allgather.md", encoding="utf-8") as file:
            text = file.read()
        self.assertRegex(text, r"\| 4096 \| [0-9.]+ \|.*\] \|\n")
        self.assertIn("rdmaag_1/rdmaag_4", text)
        os.remove(f"{folder}/allgather.svg")
        self.assertEqual(coop_figures("--out", folder, "allgather").returncode, 0)
        self.assertGreater(os.path.getsize(f"{folder}/allgather.svg"), 1000)

    def test_refuses_what_it_does_not_know(self):
        for arguments, words in ((("node-1",), "there is no ground 'node-1'"), (("rails-4-new",), "no ground 'rails-4-new'"),
                                 (("--prefix", programs.new_folder(), "node-2"), "not an installation")):
            result = allgather(*arguments)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(words, result.stderr)
        self.assertIn("no file allgather-*.json", coop_figures("--bench", programs.bench, "--out", programs.new_folder(), "allgather").stderr)
