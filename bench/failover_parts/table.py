# SPDX-License-Identifier: BSD-3-Clause
"""The table of the catalogue: medians and the worst of the repeats, and which requirement is missed."""

from coop_ab import stats

from .catalogue import FAULTS
from .measure import PMLS


def values(samples, name):
    return [sample["figures"][name] for sample in samples if name in sample["figures"]]


def of(samples, fault):
    """One cell of the table for each column, and what is missed."""
    wrong = [sample["wrong"] for sample in samples if sample["wrong"]]
    t, b, detected = (values(samples, name) for name in ("t", "b", "detected"))
    missed = [f"{len(wrong)} of {len(samples)}: {wrong[0]}"] if wrong else []
    if t and stats.median(t) > fault.most_t:
        missed.append(f"t > {fault.most_t:g} ms")
    if b and fault.least_b is not None and stats.median(b) < fault.least_b:
        missed.append(f"b < {fault.least_b:g}")
    if not fault.ends and not t:
        missed.append("no t")
    return {
        "detected": f"{stats.median(detected):.0f}" if detected else "",
        "t": f"{stats.median(t):.1f}" if t else "",
        "t_most": f"{max(t):.1f}" if t else "",
        "b": f"{stats.median(b):.3f}" if b else "",
        "b_least": f"{min(b):.3f}" if b else "",
        "missed": "; ".join(missed)}


COLUMNS = ("detected", "t", "t_most", "b", "b_least", "missed")
TITLES = ("detected", "t", "worst t", "b", "worst b", "missed")


def rows(samples):
    for fault in FAULTS:
        for pml in PMLS:
            mine = [sample for sample in samples if sample["fault"] == fault.name and sample["pml"] == pml]
            if mine:
                yield fault, pml, len(mine), of(mine, fault)


def text(samples):
    """For people: a line for each fault and PML."""
    lines = [("fault", "pml", "jobs", *TITLES)]
    lines += [(fault.name, pml, str(count), *(cells[column] for column in COLUMNS)) for fault, pml, count, cells in rows(samples)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines)


def rst(samples):
    """For the documentation: both PMLs in a row."""
    by_fault = {}
    for fault, pml, _, cells in rows(samples):
        by_fault.setdefault(fault.name, (fault, {}))[1][pml] = cells
    lines = [["fault", *(f"{title}, {pml}" for title in ("t", "b") for pml in PMLS), "noticed after", "missed"]]
    for fault, cells in by_fault.values():
        empty = dict.fromkeys(COLUMNS, "")
        both = [cells.get(pml, empty) for pml in PMLS]
        pair = [f"{one['t']} ({one['t_most']})" if one["t"] else "–" for one in both]
        pair += [f"{one['b']} ({one['b_least']})" if one["b"] else "–" for one in both]
        seen = " / ".join(one["detected"] for one in both if one["detected"])
        missed = "; ".join(f"{pml}: {one['missed']}" for pml, one in zip(PMLS, both) if one["missed"])
        lines.append([fault.words, *pair, seen or "–", missed or "–"])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rule = "  ".join("=" * width for width in widths)
    made = ["  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines]
    return "\n".join([rule, made[0], rule, *made[1:], rule])


def complete(samples):
    """Whether no requirement is missed."""
    return not any(cells["missed"] for _, _, _, cells in rows(samples))
