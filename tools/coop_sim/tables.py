# SPDX-License-Identifier: BSD-3-Clause
"""Results as text."""

from . import figures


def settled_us(result):
    """Mean time of an iteration after the weights have settled, or of the last one if there are few."""
    times = result["iteration_us"]
    warm = figures.WARM if len(times) > figures.WARM else len(times) - 1
    return sum(times[warm:]) / len(times[warm:])


def last_us(result):
    """Mean time of the last iterations, for runs of different lengths. With ITERATIONS it equals settled_us()."""
    times = result["iteration_us"][figures.WARM - figures.ITERATIONS:]
    return sum(times) / len(times)


def percent(value, base):
    return f"{100 * (value / base - 1):+.0f}"


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]).rstrip()
                     for row in rows) + "\n"


def paper_cell(row, column):
    value = figures.PAPER.get(row, {}).get(column)
    return "" if value is None else f" ({value:+d})" if isinstance(value, int) else f" ({value})"


def policies_in(results):
    """The policies of these runs of collectives, in the order of POLICIES."""
    return [policy for policy in figures.POLICIES if any(name.endswith(" " + policy) for name in results)]


def collectives(results):
    """Change of the time against `original` in percent. In brackets the dissertation's value, measured on scattered routes."""
    policies = policies_in(results)
    rows = [["", "original us"] + [f"{policy} %" for policy in policies[1:]] + ["bss/hsam %"]]
    for pattern in figures.COLLECTIVES:
        for ranks in figures.RANKS:
            for mapping in figures.MAPPINGS:
                times = {policy: settled_us(results[f"{pattern} {ranks} {mapping} {policy}"]) for policy in policies}
                key, base = (pattern, ranks, mapping), times["original"]
                cells = [percent(times[policy], base) + paper_cell(key, policy) for policy in policies[1:]]
                against = percent(times["bss:12,3"], times["hsam:4"]) + paper_cell(key, "bss/hsam")
                rows.append([f"{pattern} {ranks} {mapping}", f"{base:.0f}"] + cells + [against])
    return aligned(rows)


def by_group(results, title, time_us=settled_us):
    """Names are 'GROUP | POLICY'. A row per group: percent against its `original`, and bss:12,3 against hsam:4 if both ran."""
    groups, policies = {}, []
    for name, result in results.items():
        group, policy = name.split(" | ")
        groups.setdefault(group, {})[policy] = result
        if policy not in policies:
            policies.append(policy)
    policies.sort(key=figures.POLICIES.index)
    compared = "bss:12,3" in policies and "hsam:4" in policies
    rows = [[title, "original us"] + [f"{policy} %" for policy in policies if policy != "original"] + ["bss/hsam %"] * compared]
    for group, found in groups.items():
        base = time_us(found["original"])
        cells = [percent(time_us(found[policy]), base) if policy in found else "" for policy in policies if policy != "original"]
        rows.append([group, f"{base:.0f}"] + cells + ([percent(time_us(found["bss:12,3"]), time_us(found["hsam:4"]))] if compared else []))
    return aligned(rows)


def mean_bandwidth(result):
    values = [value for step in result["mb_per_s"] for value in step]
    return sum(values) / len(values)


def ring(results):
    base = mean_bandwidth(results["original ring"])
    rows = [["displaced ring, 24 processes", "MB/s", "change %", "paper %"]]
    for name, result in results.items():
        if name.endswith(" ring"):
            policy, mean = name.split()[0], mean_bandwidth(result)
            rows.append([policy, f"{mean:.0f}", percent(mean, base), "+21" if policy == "hsam:4" else ""])
    for name, result in results.items():
        if name.endswith("step 12"):
            rows.append([f"{name}: messages on a cable", " ".join(str(load) for load in loads(result)), "", "4 to 0" if "original" in name else ""])
    return aligned(rows)


def loads(result):
    """Messages on each cable from the first leaf to a spine in one step of the ring: a mean over all iterations of the run."""
    per_message = result["bytes"] * len(result["iteration_us"])
    return [round(carried / per_message, 1) if carried % per_message else int(carried / per_message)
            for source, target, carried in result["cables"] if source == "leaf0" and target.startswith("spine")]
