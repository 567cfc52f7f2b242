# SPDX-License-Identifier: BSD-3-Clause
"""bench/applications: a short measurement, which reads every figure, and refused options."""

import json
import shutil
import unittest

import programs
from programs import applications

# Of the programs that take little time.
FIGURES = {"stencil": ("wall time", "time in MPI", "halo exchange"), "lammps": ("wall time", "time in MPI", "LAMMPS' loop")}


class Applications(unittest.TestCase):
    def test_measure_every_figure_under_every_component(self):
        if not programs.prefix:
            self.skipTest("needs an installation (--prefix)")
        known = [name for name in FIGURES if name != "lammps" or shutil.which("lmp")]
        folder = programs.new_folder()
        result = applications("--prefix", programs.prefix, "--quick", "--out", folder, *known)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        for name in known:
            with open(f"{folder}/applications-{name}.json", encoding="utf-8") as file:
                found = json.load(file)["figures"]
            self.assertEqual([record["title"] for record in found], [f"{name}: {words}" for words in FIGURES[name]])
            for record in found:
                self.assertEqual({run["setting"] for run in record["runs"] if run["values"]}, {"coop", "ob1", "ucx"}, record["title"])
                self.assertIn(record["title"], result.stdout)

    def test_refuse_what_they_do_not_know(self):
        for arguments, words in ((("solitaire",), "there is no program 'solitaire'"), (("--ranks", "1"), "--ranks 1: must be from 2 to 1000"),
                                 (("--prefix", programs.new_folder()), "not an installation")):
            result = applications(*arguments)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, result.stderr)
