# SPDX-License-Identifier: BSD-3-Clause
"""Plots: they are drawn, and have the right contents."""

import os
import unittest

from programs import DRIFTING, coop_ab, new_folder, script, two


class Plots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder()
        cls.sizes, cls.single = f"{cls.folder}/sizes.json", f"{cls.folder}/single.json"
        coop_ab(*two("--repeats", 6, "--title", "Two sizes", "--json", cls.sizes, "--", script(DRIFTING), "{}"))
        coop_ab(*two("--repeats", 6, "--title", "One figure", "--wall", "--json", cls.single, "--", script(":"), "{}"))

    def drawn(self, name, *arguments):
        path = f"{self.folder}/{name}"
        result = coop_ab(*arguments, "--plot", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"plot: {path}", result.stdout)
        return path

    def svg(self, name, *arguments):
        with open(self.drawn(name, *arguments), encoding="utf-8") as file:
            return file.read()

    def test_svg_names_settings_unit_direction_and_sizes(self):
        text = self.svg("a.svg", "--replot", self.sizes)
        # Letters are drawn as outlines; matplotlib keeps the words as comments.
        for words in ("Two sizes", "fast", "slow", "us (lower is better)", "8 B", "16 B", "ratio to slow", "message size"):
            self.assertIn(f"<!-- {words}", text)

    def test_png_has_two_panels_with_colours(self):
        import matplotlib.image

        pixels = matplotlib.image.imread(self.drawn("a.png", "--replot", self.sizes))
        height, width, _ = pixels.shape
        self.assertGreater(width, 1200)
        for half in (pixels[:, :width // 2], pixels[:, width // 2:]):
            blue = (half[..., 2] > 0.6) & (half[..., 0] < 0.2)
            self.assertGreater(blue.sum(), 50)
        self.assertGreater(height, 400)

    def test_one_figure_is_drawn_as_dots(self):
        text = self.svg("b.svg", "--replot", self.single)
        self.assertIn("<!-- bar: median; dots: the runs", text)
        self.assertNotIn("message size", text)

    def test_several_comparisons_share_a_page(self):
        text = self.svg("page.svg", "--merge", self.sizes, self.single)
        self.assertIn("<!-- Two sizes", text)
        self.assertIn("<!-- One figure", text)

    def test_without_matplotlib_the_numbers_still_come(self):
        fake = f"{new_folder()}/matplotlib"
        os.mkdir(fake)
        with open(f"{fake}/__init__.py", "w", encoding="utf-8") as file:
            file.write("raise ImportError\n")
        without = {"PYTHONPATH": os.path.dirname(fake)}
        result = coop_ab("--replot", self.sizes, "--plot", f"{self.folder}/none.svg", env=without)
        self.assertEqual(result.returncode, 0)
        self.assertIn("python3-matplotlib", result.stderr)
        self.assertIn("1.250", result.stdout)
        self.assertEqual(coop_ab("--merge", self.sizes, "--plot", f"{self.folder}/none.svg", env=without).returncode, 2)
