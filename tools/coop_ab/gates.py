# SPDX-License-Identifier: BSD-3-Clause
"""Assertions (--assert), e.g. ratio(coop)>=0.97, ratio(coop, 8)>=0.95, ratio(coop, 1:4K)>=1, geomean(coop)>1,
median(coop, 8)<0.3."""

import dataclasses
import operator
import re

from .errors import BadInput
from .table import figure, key_text

GATE = re.compile(r"\s*(ratio|geomean|median)\(\s*([^\s,()]+)\s*(?:,\s*([^\s,()]+)\s*)?\)\s*(>=|<=|>|<)\s*(\S+)\s*\Z")
COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
BY = ("median", "favourable", "strict")


@dataclasses.dataclass
class Gate:
    text: str
    function: str
    setting: str
    keys: tuple  # (low, high), or None for all
    sign: str
    limit: float

    def end(self, entry, by):
        """The number to compare with the limit. 'favourable' takes the end of the interval that is nearer to passing, so
        that only a sure violation fails; 'strict' takes the other end."""
        if self.function == "median":
            return entry["median"]
        upwards = self.sign in (">=", ">")
        if by == "favourable":
            return entry["high" if upwards else "low"]
        return entry["low" if upwards else "high"] if by == "strict" else entry["ratio"]

    def holds(self, value):
        return value is not None and COMPARE[self.sign](value, self.limit)


def size(text):
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)", text)
    return float(found[1]) * 1024 ** " KMG".index(found[2] or " ") if found else None


def parse(text, settings, base):
    match = GATE.match(text)
    if not match:
        raise BadInput(f"--assert '{text}': use ratio(SETTING)>=NUMBER, ratio(SETTING, MIN:MAX)…, geomean(SETTING)… "
                       "or median(SETTING, SIZE)…")
    function, setting, keys, sign, limit = match.groups()
    if setting not in settings:
        raise BadInput(f"--assert '{text}': no setting '{setting}' (settings: {', '.join(settings)})")
    if setting == base and function != "median":
        raise BadInput(f"--assert '{text}': '{base}' is the base, its ratio is always 1")
    if keys and function == "geomean":
        raise BadInput(f"--assert '{text}': the geometric mean is over all sizes")
    if keys:
        low, _, high = keys.partition(":")
        bounds = size(low), size(high or low)
        if None in bounds or bounds[0] > bounds[1]:
            raise BadInput(f"--assert '{text}': '{keys}' is not SIZE or MIN:MAX")
        keys = bounds
    try:
        return Gate(text.strip(), function, setting, keys, sign, float(limit))
    except ValueError:
        raise BadInput(f"--assert '{text}': '{limit}' is not a number") from None


def check(gate, summary, by):
    """Returns (holds, one line with the reason)."""
    if gate.function == "geomean":
        entries = [("geometric mean", summary["geometric_mean"].get(gate.setting))]
    else:
        entries = [(key_text(row["key"]), row["settings"][gate.setting]) for row in summary["rows"]
                   if not gate.keys or (row["key"] is not None and gate.keys[0] <= row["key"] <= gate.keys[1])]
    seen = [(name, gate.end(entry, by) if entry else None) for name, entry in entries]
    how = "" if by == "median" or gate.function == "median" else f" ({by} end of the interval)"
    if not seen:
        return False, f"VIOLATED  {gate.text}: no such size was measured"
    wrong = [f"{name}: {figure(value)}" for name, value in seen if not gate.holds(value)]
    if wrong:
        count = f"{len(wrong)} of {len(seen)}: " if len(seen) > 1 else ""
        return False, f"VIOLATED  {gate.text}{how}: {count}{', '.join(wrong)}"
    pick = min if gate.sign in (">=", ">") else max
    name, value = pick(seen, key=lambda item: item[1])
    return True, f"HOLDS     {gate.text}{how}: nearest {name}: {figure(value)}"
