# SPDX-License-Identifier: BSD-3-Clause
"""coop-figures: one quick figure from start to end, drawing from a file, and refused options."""

import json
import os
import unittest

import programs
from programs import coop_figures


class Figures(unittest.TestCase):
    def test_a_figure_is_measured_drawn_and_drawn_again(self):
        folder = programs.new_folder()
        result = coop_figures("--quick", "--quiet", "--bench", programs.bench, "--out", folder, "stencil", timeout=180)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(f"{folder}/stencil.json", encoding="utf-8") as file:
            record, = json.load(file)["comparisons"]
        done = [run for run in record["runs"] if run["setting"] == "ob1"]
        self.assertTrue(done and all(run["values"] and run["ranks"] for run in done), result.stderr)
        os.remove(f"{folder}/stencil.svg")
        self.assertEqual(coop_figures("--redraw", "--out", folder, "stencil").returncode, 0)
        with open(f"{folder}/stencil.svg", encoding="utf-8") as file:
            self.assertIn("<svg", file.read())

    def test_every_figure_draws_what_every_setting_could_print(self):
        from coop_fig import draw, jobs, measure, protocols

        for known in (True, False):
            for figure, job_list in jobs.figure_jobs(True, 4).items():
                pages = [made_up(measure, jobs, protocols, job, known) for job in job_list]
                path = f"{programs.new_folder()}/{figure}.svg"
                draw.save(figure, pages, path)
                self.assertGreater(os.path.getsize(path), 1000)

    def test_refuses_what_it_does_not_know(self):
        result = coop_figures("--bench", programs.bench, "histogram")
        self.assertEqual(result.returncode, 2)
        self.assertIn("there is no figure 'histogram'", result.stderr)
        self.assertIn("the benchmarks are not in", coop_figures("--bench", programs.new_folder()).stderr)
        self.assertIn("--rounds -1: must be from", coop_figures("--bench", programs.bench, "--rounds", -1).stderr)
        self.assertIn("cannot read", coop_figures("--redraw", "--out", programs.new_folder(), "bcast").stderr)


def made_up(measure, jobs, protocols, job, known):
    """A record as if every setting had run once. `known`: the components count copies; if not, the columns of copies are empty."""
    settings = jobs.settings_of(job, list(protocols.SETTINGS))
    record = measure.new_record(job, settings, job.command("mpirun", "bench", 2), 1, 1)
    rest = [50.0, 20.0, 30.0, 50.0] * 2 if known else [50.0, None, None, 50.0] * 2
    copies = 8.0 if known else None
    for position, setting in enumerate(settings):
        values = [[1 << power, [10.0 + position, *rest]] for power in range(14, 23)]
        ranks = [[1 << 20, rank, copies, 8.0, copies, 8.0, copies, copies] for rank in range(4)]
        record["runs"].append({"round": 1, "position": position, "setting": setting.name, "error": None, "values": values,
                               "ranks": ranks})
    return record
