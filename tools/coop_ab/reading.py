# SPDX-License-Identifier: BSD-3-Clause
"""Reads numbers from a program's output: {key: value}. The key is the first column ("size"), or None for a single figure."""

import dataclasses
import math
import re

from .errors import BadInput

HEADER = re.compile(r"#\s*(benchmark|unit|better|key):\s*(.+?)\s*\Z")


class Unreadable(Exception):
    pass


@dataclasses.dataclass
class Reader:
    """Exactly one way to read: wall time, a regular expression, or columns."""

    wall: bool = False
    match: str = ""
    column: int = 2

    def __post_init__(self):
        if self.match:
            try:
                groups = re.compile(self.match, re.M).groups
            except re.error as error:
                raise BadInput(f"--match '{self.match}': {error}") from None
            if groups != 1:
                raise BadInput(f"--match '{self.match}': needs exactly one (group) around the figure, has {groups}")

    def describe(self):
        return "wall time" if self.wall else f"match {self.match}" if self.match else f"column {self.column}"

    def read(self, text, wall_s):
        if self.wall:
            return {None: wall_s}
        return {None: read_match(self.match, text)} if self.match else read_columns(text, self.column)


def number(text):
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def tidy(value):
    return int(value) if value == int(value) else value


def read_columns(text, column):
    values = {}
    for line in text.splitlines():
        words = line.split()
        if line.lstrip().startswith("#") or len(words) < column:
            continue
        key, value = number(words[0]), number(words[column - 1])
        # Prose may start with a number. A row is a line whose second word is a number, too.
        if key is None or value is None or number(words[1]) is None:
            continue
        if tidy(key) in values:
            raise Unreadable(f"two rows begin with {words[0]}: choose one figure with --match")
        values[tidy(key)] = value
    if not values:
        raise Unreadable(f"no line 'SIZE VALUE' with a number in column {column} (see --match, --column, --wall)")
    return values


def read_match(pattern, text):
    found = re.findall(pattern, text, re.M)
    if len(found) != 1:
        raise Unreadable(f"--match '{pattern}' matches {len(found)} times, must match once")
    value = number(found[0])
    if value is None:
        raise Unreadable(f"--match '{pattern}' found '{found[0]}', which is not a number")
    return value


def read_header(text):
    """The lines '# name: value' in which our benchmarks describe themselves."""
    return {found[1]: found[2] for found in map(HEADER.match, text.splitlines()) if found}
