# SPDX-License-Identifier: BSD-3-Clause
"""Compares the measured tables with the goals. coop-ab's ratio of a setting is its speed divided by coop's, whatever the unit; so it is also
coop's cost divided by the cost of this setting, which the goals limit."""

import dataclasses
import os

from coop_ab import plot, record as records
from coop_ab.summary import summarise

from .parts import NONE, PARTS

BASE, LIMIT, LIMITS = "coop", "limit", ("limit", "limit-read")
MOST_STEP = 1.6  # of the time per byte, from one size to the next
MOST_LINES = 2.5  # times that 8 bytes may need, compared with a cache line that goes to the other core
SAME = 1.03  # up to this ratio, the others are not called faster
STEADY = 1.5  # up to this ratio of the slowest cache line to the fastest, the CPUs are taken to stay where they are


@dataclasses.dataclass
class Row:
    size: int
    coop: float
    best: str  # name of the fastest other library
    value: float  # of the fastest other library
    ratio: float  # of costs: coop's to its
    goal: float

    def misses(self):
        return self.ratio > self.goal

    def behind(self):
        return self.ratio > SAME


def path_of(name, folder):
    return f"{folder}/node-{name}.json"


def load(folder):
    """{part: record} of the files in the folder."""
    return {name: records.load(path_of(name, folder)) for name in PARTS if os.path.exists(path_of(name, folder))}


def rows(name, record):
    result = []
    for row in summarise(record, 0.03)["rows"]:
        of = row["settings"]
        others = [(entry["ratio"], setting) for setting, entry in of.items() if setting not in (BASE, *LIMITS) and entry["ratio"]]
        if others and of[BASE]["median"]:
            ratio, best = max(others)
            result.append(Row(row["key"], of[BASE]["median"], best, of[best]["median"], ratio, PARTS[name].goal(row["key"])))
    return result


def text(row):
    return f"{plot.byte_text(row.size)} {row.ratio:.2f} ({row.best})"


def lacking(record):
    """The sizes at which another library has a figure and coop has none, because its runs failed."""
    return [row["key"] for row in summarise(record, 0.03)["rows"]
            if not row["settings"][BASE]["median"] and any(row["settings"][name]["median"] for name in others_of(record))]


def others_of(record):
    return [setting["name"] for setting in record["settings"] if setting["name"] not in (BASE, *LIMITS)]


def basis(record):
    rounds = record["rounds"]
    return f"{rounds} round{'s' * (rounds > 1)} against {', '.join(others_of(record))}"


def line(name, record):
    """One line about a part: the sizes that miss their goal, and those at which another library is faster."""
    found, failed = rows(name, record), lacking(record)
    judged = [row for row in found if row.goal != NONE]
    missed = [row for row in judged if row.misses()]
    behind = [row for row in found if row.behind() and row not in missed]
    ahead = sum(not row.behind() for row in found)
    words = [f"{name}: {len(judged) - len(missed)} of {len(judged)} goals reached", f"no other is faster at {ahead} of {len(found) + len(failed)} sizes",
             basis(record)]
    if failed:
        words.append("no figure of coop: " + ", ".join(map(plot.byte_text, failed)))
    if missed:
        words.append("missed: " + ", ".join(f"{text(row)} > {row.goal:.2f}" for row in missed))
    if behind:
        words.append("another is faster: " + ", ".join(map(text, behind)))
    return "; ".join(words)


def steps(found):
    """The largest growth of the time per byte from one size to the next, and the size: of half round trips."""
    per_byte = {row.size: row.coop / row.size for row in found}
    return max(((per_byte[size] / per_byte[size // 2], size) for size in per_byte if size // 2 in per_byte), default=None)


def step_line(found):
    largest = steps(found)
    if not largest:
        return "steps: unknown, 'latency' has too few sizes"
    growth, size = largest
    return (f"steps: from one power of two to the next, the time per byte grows by at most {growth:.2f} (at {plot.byte_text(size)}); "
            f"goal {MOST_STEP}: {'reached' if growth <= MOST_STEP else 'MISSED'}")


def line_times(record):
    """What a cache line took in each run that measured it, in ns."""
    return [1e3 * value for run in record["runs"] if run["setting"] == LIMIT and not run["error"] for size, value in run["values"] if size <= 8]


def is_steady(taken):
    return max(taken) <= STEADY * min(taken)


def cache_line(record):
    """8 bytes against a cache line: the median of the rounds' ratios."""
    of = {row["key"]: row["settings"] for row in summarise(record, 0.03)["rows"]}.get(8, {})
    times, taken = of.get(LIMIT, {}).get("ratio"), line_times(record)
    if not times or not taken:
        return "cache line: unknown"
    span = f"{min(taken):.0f} ns" if is_steady(taken) else f"{min(taken):.0f} to {max(taken):.0f} ns"
    return f"cache line: goes to the other core in {span}; 8 bytes need {times:.2f} times that; goal {MOST_LINES}: {'reached' if times <= MOST_LINES else 'MISSED'}"


def unsteady_line(record):
    """A warning if the two CPUs were not always equally far from each other, as those of virtual machines. Empty if they were."""
    taken = line_times(record)
    if not taken or is_steady(taken):
        return ""
    return ("warning: these CPUs are near each other at times, and far at others, so the runs of one round may differ for this reason alone: "
            "measure with a smaller --near, or compare many rounds and look at the quartiles in node-PART.json")


def limit_line(name, record):
    """The speed as a share of what a simple program reaches without MPI, in the better of the ways measured. Empty if none was."""
    words = []
    for row in summarise(record, 0.03)["rows"]:
        ratios = [row["settings"][way]["ratio"] for way in LIMITS if row["settings"].get(way, {}).get("ratio")]
        if ratios:
            words.append(f"{plot.byte_text(row['key'])} {1 / max(ratios):.2f}")
    return f"{name}: speed / limit without MPI: " + ", ".join(words) if words else ""


def report(found):
    """The lines about all measured parts: {part: record}."""
    lines = []
    for name, record in found.items():
        lines += filter(None, (line(name, record), limit_line(name, record)))
    if "latency" in found:
        latency = found["latency"]
        lines += filter(None, (step_line(rows("latency", latency)), cache_line(latency), unsteady_line(latency)))
    return lines
