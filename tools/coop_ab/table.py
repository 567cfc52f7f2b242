# SPDX-License-Identifier: BSD-3-Clause
"""The comparison as text: a block for each setting against the base."""

from . import host, session, stats


def figure(value):
    """Four significant digits, without an exponent for large numbers."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 10000 else f"{value:.4g}"


def factor(value):
    return "-" if value is None else f"{value:.3f}" if value < 100 else f"{value:.0f}"


def percent(value):
    return "-" if value is None else f"{value:.1f}"


def key_text(key):
    return "figure" if key is None else str(key)


def interval(entry):
    return "-" if entry["low"] is None else f"{factor(entry['low'])} … {factor(entry['high'])}"


def header(record, summary, other):
    base, better = record["base"], record["better"]
    formula = f"{base} / {other}" if better == "lower" else f"{other} / {base}"
    count = max((row["settings"][other]["rounds"] for row in summary["rows"]), default=0)
    rounds = str(count) if count == record["rounds"] else f"{count} of {record['rounds']}"
    lines = [
        f"{record['title']}: {other} against {base}",
        f"{rounds} rounds, order seed {record['seed']}; "
        f"unit {record['unit'] or 'not given'}, {better} is better; ± is half the interquartile range",
        f"ratio = {formula}, median of the rounds' ratios: above 1, {other} is better; [95 % interval]",
        f"same: whole interval within ±{summary['tolerance'] * 100:g} %; unclear: neither same, better nor worse",
    ]
    if summary["incomplete"]:
        lines.insert(1, f"INCOMPLETE: {summary['incomplete']}")
    settings = len(record["settings"])
    if record["rounds"] % session.balanced(settings):
        lines.append(f"{record['rounds']} rounds: not every setting runs first equally often, which may bias the ratio; "
                     f"a multiple of {session.balanced(settings)} avoids this")
    if 0 < count and stats.coverage(count, 1) < stats.LEVEL:
        lines.append(f"few rounds: the intervals below cover {100 * stats.coverage(count, 1):.1f} %, not 95 %, "
                     "which needs at least 6 rounds")
    return lines


def block(record, summary, other):
    base, rows = record["base"], []
    most = max((row["settings"][other]["rounds"] for row in summary["rows"]), default=0)
    sized = any(row["key"] is not None for row in summary["rows"])
    rows.append([record["key"] if sized else "", other, "± %", base, "± %", "ratio", "95 % interval", "verdict"])
    for row in summary["rows"]:
        mine, theirs = row["settings"][other], row["settings"][base]
        rows.append([key_text(row["key"]), figure(mine["median"]), percent(mine["spread_percent"]),
                     figure(theirs["median"]), percent(theirs["spread_percent"]),
                     factor(mine["ratio"]), interval(mine), mine["verdict"]])
        if mine["rounds"] < most:
            rows[-1][-1] += f" ({mine['rounds']} rounds)"
    mean = summary["geometric_mean"].get(other)
    if mean and len(summary["rows"]) > 1:
        rows.append(["geometric mean", "", "", "", "", factor(mean["ratio"]), interval(mean), mean["verdict"]])
    widths = [max(len(line[column]) for line in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) if column in (0, 7) else cell.rjust(width)
                      for column, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in rows]


def render(record, summary):
    lines = []
    for name in list(summary["geometric_mean"]):
        lines += header(record, summary, name) + [""] + block(record, summary, name) + [""]
    return "\n".join(lines + [host.one_line(record["host"])])
