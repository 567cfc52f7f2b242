# SPDX-License-Identifier: BSD-3-Clause
"""A Sphinx directive that draws measured data (figures/NAME.json, made by figures/condense.py) as SVG in the page's colours:

    .. chart:: bandwidth

The file is {"title", "source", "panels": [{"title", "x": {"label", "scale", "bytes"}, "y": {"label", "scale", "min", "max"},
"lines": [{"name", "x": [...], "y": [...], "low": [...], "high": [...]}]}]}. A scale is "log" or "linear"; "low" and "high" bound
the band around a line and may be missing.
"""

import html
import json
import math

from coop_figures import line, text
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

# Colour, and dashes for stock components and limits: the same setting looks the same in every chart.
LOOKS = {
    "ob1": ("#7a7a7a", "6 3"), "ucx": ("#a8a8a8", "6 3"), "rget": ("#d55e00", ""), "rput": ("#e69f00", ""), "send": ("#a89060", ""),
    "coop": ("#0072b2", ""), "coop_fixed": ("#56b4e9", ""), "coop_coll": ("#009e73", ""), "coop_load": ("#cc79a7", ""),
    "hybrid": ("currentColor", ""), "limit, both copy": ("currentColor", "2 3"), "limit, one copies": ("#7a7a7a", "2 3"),
    "pml/coop": ("#d55e00", ""), "pml/coop, interrupt": ("#0072b2", ""),
    "pml/coop, interrupt, without the HCA's CPU time": ("#0072b2", "2 3"), "ob1, openib": ("#7a7a7a", "6 3"), "pml/ucx": ("#a8a8a8", "6 3"),
    "full overlap": ("#7a7a7a", "1 4"), "mpich": ("#d55e00", "6 3"), "limit": ("currentColor", "2 3"),
    "pml/coop, coopib": ("#0072b2", ""), "ob1, coopib": ("#d55e00", ""), "rails that work": ("currentColor", "1 4"),
    "without alternate path": ("#0072b2", ""), "with": ("#d55e00", ""), "Migrated to Armed": ("#0072b2", ""), "Armed to Migrated": ("#d55e00", ""),
    "alone": ("#7a7a7a", "6 3"), "while arming": ("#0072b2", ""), "while moving": ("#d55e00", ""),
}
OTHERS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
COLUMNS, WIDTH, HEIGHT = 3, 1080, 250
LEFT, RIGHT, TOP, BOTTOM = 52, 26, 30, 44
LEGEND_ROW = 18


def of_bytes(value):
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 1 << shift:
            return f"{value / (1 << shift):g} {unit}"
    return f"{value:g} B"


def steps(low, high, most=6):
    """Round values from low to high."""
    width = (high - low) / most
    size = 10 ** math.floor(math.log10(width))
    size *= next(factor for factor in (1, 2, 5, 10) if factor * size >= width)
    first = math.ceil(low / size - 1e-9)
    return [size * i for i in range(first, int(math.floor(high / size + 1e-9)) + 1)]


def log_steps(low, high):
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [factor * 10.0 ** decade for decade in decades for factor in (1, 2, 5)]
    found = [value for value in found if low <= value <= high]
    return found if len(found) <= 9 else [value for value in found if math.log10(value) % 1 < 1e-9]


class Axis:
    """Maps values to a range of pixels."""

    def __init__(self, given, values, start, end):
        self.log = given["scale"] == "log"
        low, high = given.get("min", min(values)), given.get("max", max(values))
        if not self.log and "min" not in given:
            low = min(low, 0)
        if not self.log and "max" not in given:
            high *= 1.05
        self.low, self.high, self.start, self.end = low, max(high, low + 1e-9), start, end

    def __call__(self, value):
        low, high, value = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def x_ticks(given, axis, values):
    if given.get("bytes") or axis.log:
        chosen = sorted(set(values))
        chosen = chosen[::max(1, -(-len(chosen) // 6))]
    else:
        chosen = steps(axis.low, axis.high)
    return [(value, of_bytes(value) if given.get("bytes") else f"{value:,g}") for value in chosen]


def look_of(name, names):
    return LOOKS.get(name) or (OTHERS[names.index(name) % len(OTHERS)], "")


def draw_series(series, x, y, look):
    color, dash = look
    parts = []
    if series.get("low"):
        there = [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(series["x"], series["high"])]
        back = [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(series["x"], series["low"])][::-1]
        parts.append(f'<polygon points="{" ".join(there + back)}" fill="{color}" fill-opacity="0.13"/>')
    points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(series["x"], series["y"]))
    parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.6" stroke-dasharray="{dash}"/>')
    return parts


def draw_panel(panel, left, top, width, names):
    lines = panel["lines"]
    across = [value for series in lines for value in series["x"]]
    up = [value for series in lines for column in ("y", "low", "high") for value in series.get(column, ())]
    x = Axis({"min": min(across), **panel["x"]}, across, left + LEFT, left + width - RIGHT)
    y = Axis(panel["y"], up, top + HEIGHT - BOTTOM, top + TOP)
    parts = [text(left + LEFT, top + 16, panel["title"], 13, "start", "600")]
    for value in log_steps(y.low, y.high) if y.log else steps(y.low, y.high):
        parts += [line(x.start, y(value), x.end, y(value), width=0.6, extra='opacity="0.25"'),
                  text(x.start - 6, y(value) + 4, f"{value:,g}", 11, "end")]
    for value, words in x_ticks(panel["x"], x, across):
        parts += [line(x(value), y.start, x(value), y.start + 4), text(x(value), y.start + 17, words, 11)]
    parts += [line(x.start, y.start, x.end, y.start), line(x.start, y.start, x.start, y.end),
              text((x.start + x.end) / 2, y.start + 34, f'{panel["x"]["label"]}; vertical: {panel["y"]["label"]}', 11)]
    for series in lines:
        parts += draw_series(series, x, y, look_of(series["name"], names))
    return parts


def draw_legend(names, top):
    """The entries, and the height they take."""
    parts, across, row = [], LEFT, 0
    for name in names:
        width = 44 + 7 * len(name)
        if across + width > WIDTH:
            across, row = LEFT, row + 1
        color, dash = look_of(name, names)
        y = top + row * LEGEND_ROW
        parts += [line(across, y, across + 24, y, color, 2.2, f'stroke-dasharray="{dash}"'), text(across + 30, y + 4, name, 12, "start")]
        across += width
    return parts, (row + 1) * LEGEND_ROW


def draw_chart(chart):
    panels = chart["panels"]
    columns = min(COLUMNS, len(panels))
    width = WIDTH / columns
    names = list(dict.fromkeys(series["name"] for panel in panels for series in panel["lines"]))
    parts = []
    for i, panel in enumerate(panels):
        parts += draw_panel(panel, i % columns * width, i // columns * HEIGHT, width, names)
    bottom = -(-len(panels) // columns) * HEIGHT
    legend, height = draw_legend(names, bottom + 8)
    return (f'<svg class="coop-figure" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + height + 8:g}" role="img" '
            f'style="width:100%;height:auto"><title>{html.escape(chart["title"])}</title>{"".join(parts + legend)}</svg>')


class Chart(SphinxDirective):
    required_arguments = 1

    def run(self):
        relative, path = self.env.relfn2path(f"/figures/{self.arguments[0]}.json")
        self.env.note_dependency(relative)
        with open(path, encoding="utf-8") as file:
            chart = json.load(file)
        figure = nodes.figure("", nodes.raw("", draw_chart(chart), format="html"))
        figure += nodes.caption("", f'{chart["title"]}. {chart["source"]}')
        return [figure]


def setup(app):
    app.add_directive("chart", Chart)
    return {"parallel_read_safe": True}
