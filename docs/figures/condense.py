#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Condenses measured samples to the data of a chart (see docs/ext/coop_charts.py): condense.py FILE.json ... [--out FOLDER]

FILE is what coop-figures, 'bench/overlap ratio' or bench/node has written; all files of bench/node together make one chart. A line is the median of the rounds, its band the middle half.
"""

import argparse
import json
import os
import sys

top = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
sys.path[:0] = [os.path.join(top, "tools"), os.path.join(top, "bench")]

from coop_ab import host, plot, stats  # noqa: E402
from coop_ab.summary import summarise  # noqa: E402
from coop_fig import apm as apm_figure, draw, failover as failover_figure, node  # noqa: E402
from overlap_parts import ratio, rounds  # noqa: E402


def rounded(value):
    return float(f"{value:.4g}")


def series(name, values, scale=1.0):
    """values: {x: samples}."""
    keys = sorted(values)
    quartiles = [stats.quartiles(values[key]) for key in keys]
    return {"name": name, "x": keys, "y": [rounded(stats.median(values[key]) * scale) for key in keys],
            "low": [rounded(low * scale) for low, _ in quartiles], "high": [rounded(high * scale) for _, high in quartiles]}


def panel(title, lines, label, scale="log", **limits):
    return {"title": title, "x": {"label": "message size", "scale": "log", "bytes": True}, "y": {"label": label, "scale": scale, **limits},
            "lines": lines}


def of_sizes(record, scale=1.0):
    return [series(name, found, scale) for name in draw.setting_names(record) if (found := draw.samples(record, name, 0))]


def small(pages):
    labels = {"half round trip": "us", "64 under way": "MB/s"}
    return [panel(record["title"], of_sizes(record), labels[record["title"]]) for record in pages]


def bandwidth(pages):
    limit = draw.by_title(pages, "limit")
    limits = [series(words, draw.samples(limit, name, 0), 1e-3) for name, words in
              (("both", "limit, both copy"), ("one", "limit, one copies"))] if limit else []
    return [panel(title, of_sizes(draw.by_title(pages, title), 1e-3) + (limits if title == "one way" else []), "GB/s", "linear")
            for title in ("one way", "both ways")]


def bcast(pages):
    """One panel for each size; chunks across."""
    sizes = sorted({key for record in pages for run in record["runs"] for key, _ in run["values"]})
    chosen = sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})
    panels = []
    for size in chosen:
        found = {name: {int(record["title"]): draw.samples(record, name, 0).get(size) for record in pages}
                 for name in draw.setting_names(pages[0])}
        lines = [series(name, {count: values for count, values in by_count.items() if values}) for name, by_count in found.items()]
        panels.append({"title": plot.byte_text(size), "x": {"label": "chunks", "scale": "log"}, "y": {"label": "us", "scale": "linear"},
                       "lines": lines})
    return panels


def times(pages):
    return [panel(record["title"], of_sizes(record), "us") for record in pages]


def overlap(pages):
    return [panel(f"{record['title']} computes", of_sizes(record), "% hidden", "linear", min=-20, max=110) for record in pages]


def failover(pages):
    panels = []
    for record in pages:
        lines = [series(failover_figure.LABELS[name], {key / 1e3: values for key, values in found.items()})
                 for name, found in failover_figure.lines(record)]
        for line in lines:
            if line["low"] == line["y"] == line["high"]:
                del line["low"], line["high"]
        panels.append({"title": record["title"], "x": {"label": "seconds after the fault", "scale": "linear"},
                       "y": {"label": "MB/s", "scale": "linear", "min": 0}, "lines": lines})
    return panels


def apm(pages):
    record, = pages
    return [{"title": one.title, "x": {"label": "queue pairs", "scale": "log"}, "y": {"label": one.unit, "scale": "log" if one.log else "linear"},
             "lines": [series(name, values) for name, values, _ in apm_figure.lines(record, one)]} for one in apm_figure.PANELS]


# name: (title, panels of its comparisons)
CHARTS = {
    "small": ("Short and medium messages between two ranks of a node", small),
    "bandwidth": ("Bandwidth of blocking messages between two ranks of a node", bandwidth),
    "bcast": ("Broadcast along a chain of ranks, by number of chunks", bcast),
    "patterns": ("Scatter, gather, and reduction by reduce-scatter and gather", times),
    "stencil": ("Halo exchange of a 3-D stencil, time of an iteration", times),
    "overlap": ("Share of a transfer that overlaps with computing", overlap),
    "failover": ("Bandwidth while rails of 200 and 100 MB/s fail and come back, on software subnets", failover),
    "apm": ("Automatic path migration by number of queue pairs, with plain verbs on a software subnet", apm),
}
SUBNETS = ("failover", "apm")  # the command does not begin with the ranks


def of_coop_figures(data):
    name, pages = data["figure"], data["comparisons"]
    if name not in CHARTS:
        sys.exit(f"condense.py: there is no chart '{name}' (there are {', '.join(CHARTS)}, overlap-ratio)")
    title, panels = CHARTS[name]
    count = max(run["round"] for record in pages for run in record["runs"])
    ranks = 2 if name in SUBNETS else pages[0]["command"][2]
    source = f"{host.one_line(pages[0]['host'])}; {ranks} ranks, {count} rounds"
    return name, {"title": title, "source": source, "panels": panels(pages)}


def ratio_line(name, points, column):
    points = [point for point in points if point[column]]
    quartiles = [stats.quartiles(point[column]) for point in points]
    return {"name": name, "x": [0, *[rounded(stats.median(point["compute_us"])) for point in points]],
            "y": [0, *[rounded(stats.median(point[column])) for point in points]],
            "low": [0, *[rounded(low) for low, _ in quartiles]], "high": [0, *[rounded(high) for _, high in quartiles]]}


def ratio_panel(runs, side, size):
    lines = []
    for setting in ratio.COMPARED:
        points = ratio.points(runs, side, setting, size)
        if points:
            lines.append(ratio_line(ratio.LABELS[setting], points, "ratio"))
        if points and setting == "interrupt":
            lines.append(ratio_line(f"{ratio.LABELS[setting]}, without the HCA's CPU time", points, "corrected"))
    on_rail_us = size / ratio.RATE_MB_PER_S
    lines.append({"name": "full overlap", "x": [0, on_rail_us, 2 * on_rail_us], "y": [0, 1, 1]})
    return {"title": f"{side} computes, {plot.byte_text(size)}", "x": {"label": "computing W, us", "scale": "linear"},
            "y": {"label": "W/T", "scale": "linear", "min": 0, "max": 1.05}, "lines": lines}


def of_overlap(data):
    if data["part"] != "ratio":
        sys.exit("condense.py: bench/overlap has a chart for the part 'ratio' only")
    runs = data["runs"]
    panels = [ratio_panel(runs, side, size) for side in ratio.SIDES for size in ratio.sizes_in(runs)]
    source = f"{rounds.describe(data['end'])}; {host.one_line(data['host'])}; {rounds.of_machine(runs)}"
    return "overlap-ratio", {"title": "Computing time divided by total time (W/T)", "source": source, "panels": panels}


def of_node(records):
    """records: {part: record}. Bandwidths in GB/s."""
    panels = []
    for part in (part for part in node.PARTS if part in records):
        record = records[part]
        scale = 1e-3 if record["unit"] == "MB/s" else 1.0
        lines = []
        for name in [setting["name"] for setting in record["settings"]]:
            keys, *columns = plot.columns(summarise(record, 0.03)["rows"], name, "median", "q1", "q3")
            lines.append({"name": name, "x": keys, **{word: [rounded(value * scale) for value in values] for word, values in zip(("y", "low", "high"), columns)}})
        panels.append(panel(record["title"], lines, "GB/s" if record["unit"] == "MB/s" else record["unit"]))
    first = next(iter(records.values()))
    return "node", {"title": node.TITLE, "source": f"{host.one_line(first['host'])}; {first['rounds']} rounds", "panels": panels}


def part_of(path):
    return os.path.basename(path)[len("node-"):-len(".json")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--out", default=os.path.dirname(os.path.realpath(__file__)), metavar="FOLDER")
    options = parser.parse_args()
    records, charts = {}, []
    for path in options.files:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        if data.get("program") == "coop-ab":
            records[part_of(path)] = data
        else:
            charts.append((of_overlap if data.get("program") == "overlap" else of_coop_figures)(data))
    charts += [of_node(records)] if records else []
    for name, chart in charts:
        with open(os.path.join(options.out, f"{name}.json"), "w", encoding="utf-8") as file:
            # One line for each series: a new measurement is a diff that can be read.
            words = json.dumps(chart).replace(' {"name"', '\n  {"name"').replace('[{"name"', '[\n  {"name"')
            file.write(words.replace('{"title": ', '\n {"title": ').replace(", \n", ",\n").strip() + "\n")


if __name__ == "__main__":
    main()
