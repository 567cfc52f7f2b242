# SPDX-License-Identifier: BSD-3-Clause
"""Reading numbers, settings and gates."""

import unittest

from coop_ab import gates, settings
from coop_ab.errors import BadInput
from coop_ab.reading import Reader, Unreadable, read_header


class Reading(unittest.TestCase):
    def test_takes_rows_of_numbers_and_leaves_out_prose_and_comments(self):
        text = "# size us\n 8 1.5 9\n16\t2e1\n2 ranks started\n\nwarning: 3 4\n64 nan\n"
        self.assertEqual(Reader().read(text, 0), {8: 1.5, 16: 20})

    def test_takes_another_column(self):
        self.assertEqual(Reader(column=3).read("8 1.5 9\n16 2 10\n", 0), {8: 9, 16: 10})

    def test_refuses_a_size_seen_twice(self):
        with self.assertRaisesRegex(Unreadable, "begin with 8"):
            Reader().read("8 1\n8 2\n", 0)

    def test_refuses_output_without_rows(self):
        with self.assertRaisesRegex(Unreadable, "SIZE VALUE"):
            Reader().read("hello\n", 0)

    def test_finds_one_figure_by_expression(self):
        self.assertEqual(Reader(match=r"^Time: (\S+) s").read("a\nTime: 3.5 s\n", 0), {None: 3.5})

    def test_refuses_an_expression_that_fits_never_or_twice_or_catches_no_number(self):
        for text in ("nothing", "t=1 t=2", "t=fast"):
            with self.subTest(text), self.assertRaises(Unreadable):
                Reader(match=r"t=(\w+)").read(text, 0)

    def test_wall_time_needs_no_output(self):
        self.assertEqual(Reader(wall=True).read("", 2.5), {None: 2.5})

    def test_header_lines_name_unit_direction_and_key(self):
        self.assertEqual(read_header("# unit: MB/s\n# better: higher\n# key: size\n# other: x\n8 1\n"),
                         {"unit": "MB/s", "better": "higher", "key": "size"})


class Settings(unittest.TestCase):
    def test_words_replace_the_braces_one_by_one(self):
        one, other = settings.parse_settings(["a=--mca pml 'x y'", "b="], [], ["run", "{}", "prog"])
        self.assertEqual(settings.expand(["run", "{}", "prog"], one), ["run", "--mca", "pml", "x y", "prog"])
        self.assertEqual(settings.expand(["run", "{}", "prog"], other), ["run", "prog"])

    def test_text_replaces_braces_inside_a_word(self):
        one, _ = settings.parse_settings(["a=x y", "b=z"], [], ["sh", "-c", "run {} now"])
        self.assertEqual(settings.expand(["sh", "-c", "run {} now"], one), ["sh", "-c", "run x y now"])

    def test_words_are_environment_where_the_command_has_no_braces(self):
        one, _ = settings.parse_settings(["a=X=1 Y='2 3'", "b="], ["a:Z=4"], ["prog"])
        self.assertEqual(one.env, {"X": "1", "Y": "2 3", "Z": "4"})
        self.assertEqual(settings.shown(["prog"], one), "Z=4 X=1 Y='2 3' prog")


class Gates(unittest.TestCase):
    entry = {"median": 2.0, "ratio": 0.98, "low": 0.95, "high": 1.01}
    summary = {"rows": [{"key": 8, "settings": {"a": entry}},
                        {"key": 4096, "settings": {"a": {"median": 9.0, "ratio": 0.9, "low": 0.85, "high": 0.94}}}],
               "geometric_mean": {"a": {"ratio": 0.94, "low": 0.9, "high": 0.975}}}

    def verdict(self, text, by="median"):
        return gates.check(gates.parse(text, ["a", "b"], "b"), self.summary, by)

    def test_hold_or_not(self):
        for text, by, expected in (
                ("ratio(a)>=0.9", "median", True), ("ratio(a)>0.9", "median", False),
                ("ratio(a,8)>=0.97", "median", True), ("ratio( a , 1:1K ) >= 0.97", "median", True),
                ("ratio(a,4K)>=0.97", "median", False), ("ratio(a,8)>=0.97", "strict", False),
                ("ratio(a,8)>=1", "favourable", True), ("ratio(a,8)<=0.96", "favourable", True),
                ("geomean(a)>=0.97", "median", False), ("geomean(a)>=0.97", "favourable", True),
                ("median(a,8)<=2", "strict", True), ("ratio(a,2)>0", "median", False)):
            with self.subTest(text, by=by):
                self.assertEqual(self.verdict(text, by)[0], expected)

    def test_name_the_sizes_that_violate(self):
        line = self.verdict("ratio(a)>=0.97")[1]
        self.assertIn("1 of 2: 4096: 0.9", line)

    def test_refuse_what_cannot_be_meant(self):
        for text in ("ratio(a)", "ratio(c)>=1", "ratio(b)>=1", "ratio(a)>=x", "geomean(a,8)>=1", "ratio(a,8:4)>=1", "speed(a)>1"):
            with self.subTest(text), self.assertRaises(BadInput):
                gates.parse(text, ["a", "b"], "b")
