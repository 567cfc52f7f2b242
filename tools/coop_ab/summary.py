# SPDX-License-Identifier: BSD-3-Clause
"""Turns samples into the comparison: per size and setting a median, a spread, and the ratio to the base with its interval.

A ratio above 1 always means better than the base: it is base / setting where lower is better, else setting / base. Each
round gives a ratio, from runs made next to each other; the result is the median of these ratios."""

from . import stats

WITHIN = "same"
BETTER = "better"
WORSE = "worse"
UNCLEAR = "unclear"


def names(record):
    """The base comes last: tables and plots show it as the reference."""
    others = [s["name"] for s in record["settings"] if s["name"] != record["base"]]
    return others + [record["base"]]


def by_round(record):
    """{round: {setting: {key: value}}}"""
    rounds = {}
    for run in record["runs"]:
        if not run["error"]:
            rounds.setdefault(run["round"], {})[run["setting"]] = {key: value for key, value in run["values"]}
    return rounds


def ratio(value, base_value, better):
    """None if a value is missing or not positive."""
    if value is None or base_value is None or value <= 0 or base_value <= 0:
        return None
    return base_value / value if better == "lower" else value / base_value


def verdict(low, high, count, tolerance):
    """`tolerance` is a fraction: 0.03 calls two settings the same if the whole interval lies within 1/1.03 .. 1.03."""
    if count < stats.MIN_FOR_VERDICT:
        return UNCLEAR
    if 1 / (1 + tolerance) <= low and high <= 1 + tolerance:
        return WITHIN
    return BETTER if low > 1 else WORSE if high < 1 else UNCLEAR


def compare(ratios, tolerance):
    """ratios: one per round. Without ratios, the numbers are None."""
    if not ratios:
        return {"rounds": 0, "ratio": None, "low": None, "high": None, "coverage": None, "verdict": UNCLEAR}
    low, high, coverage = stats.median_interval(ratios)
    return {"rounds": len(ratios), "ratio": stats.median(ratios), "low": low, "high": high, "coverage": coverage,
            "verdict": verdict(low, high, len(ratios), tolerance)}


def describe(values):
    if not values:
        return {"median": None, "spread_percent": None, "q1": None, "q3": None}
    q1, q3 = stats.quartiles(values)
    return {"median": stats.median(values), "spread_percent": stats.half_iqr_percent(values), "q1": q1, "q3": q3}


def all_sizes(rounds, name, base, keys, better, tolerance):
    """The geometric mean over sizes, one per round: the sizes of a run are not independent of each other, rounds are."""
    means = []
    for runs in rounds.values():
        pairs = [ratio(runs.get(name, {}).get(key), runs.get(base, {}).get(key), better) for key in keys]
        if None not in pairs:
            means.append(stats.geometric_mean(pairs))
    return compare(means, tolerance)


def counted(parts):
    """The parts whose count is not 0, as 'fast 1, slow 2'."""
    return ", ".join(f"{name} {count}" for name, count in parts if count)


def missing(record):
    """Describes the missing runs and values; "" if there are none. A value is missing if other runs of its setting have it."""
    good = {setting["name"]: [run for run in record["runs"] if run["setting"] == setting["name"] and not run["error"]]
            for setting in record["settings"]}
    runs = [(name, record["rounds"] - len(found)) for name, found in good.items()]
    values = {}
    for found in good.values():
        for key in {key for run in found for key, _ in run["values"]}:
            values[key] = values.get(key, 0) + sum(key not in dict(map(tuple, run["values"])) for run in found)
    texts = []
    for what, parts, whole in (("run", runs, f" of {record['rounds'] * len(good)}"), ("value", sorted(values.items(), key=str), "")):
        count = sum(number for _, number in parts)
        if count:
            noun = what if count == 1 and not whole else what + "s"
            listed = counted(parts) if what == "run" else counted((f"{key}:", number) for key, number in parts)
            texts.append(f"{count}{whole} {noun} {'is' if count == 1 else 'are'} missing ({listed})")
    return "; ".join(texts)


def summarise(record, tolerance):
    rounds, base, better = by_round(record), record["base"], record["better"]
    found = {key for runs in rounds.values() for values in runs.values() for key in values}
    keys = sorted(found, key=lambda key: (key is not None, key or 0))
    rows = []
    for key in keys:
        row = {"key": key, "settings": {}}
        for name in names(record):
            values = [runs[name][key] for runs in rounds.values() if key in runs.get(name, {})]
            entry = describe(values)
            if name != base:
                pairs = [ratio(runs.get(name, {}).get(key), runs.get(base, {}).get(key), better)
                         for runs in rounds.values()]
                entry.update(compare([pair for pair in pairs if pair is not None], tolerance))
            row["settings"][name] = entry
        rows.append(row)
    means = {name: all_sizes(rounds, name, base, keys, better, tolerance) for name in names(record)[:-1]} if keys else {}
    return {"convention": f"a ratio above 1: better than {base} "
                           f"({base + ' / setting' if better == 'lower' else 'setting / ' + base})",
            "level": stats.LEVEL, "tolerance": tolerance, "rows": rows, "geometric_mean": means, "incomplete": missing(record)}
