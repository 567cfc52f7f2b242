# SPDX-License-Identifier: BSD-3-Clause
"""The record of a comparison: a dictionary, written as JSON. It holds every sample. Its summary is for other programs;
coop-ab computes it anew when it reads the file.

    schema 1: title, command, settings [{name, words, env}], base, unit, better ("lower"/"higher"), key, reading, seed,
    rounds, timeout_s, started, complete, host {...}, runs [{round, position, setting, wall_s, load, exit_code, error,
    values [[key, value], ...]}], summary {...}. A key is null where the program printed one figure.
"""

import datetime

from . import files, host
from .errors import BadInput

PROGRAM = "coop-ab"
SCHEMA = 1


def new(command, settings, base, reader, seed, rounds, timeout_s):
    return {
        "program": PROGRAM,
        "schema": SCHEMA,
        "title": "",
        "command": command,
        "settings": [{"name": s.name, "words": s.words, "env": s.env} for s in settings],
        "base": base,
        "unit": "",
        "better": "",
        "key": "size",
        "reading": reader.describe(),
        "seed": seed,
        "rounds": rounds,
        "timeout_s": timeout_s,
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "complete": False,
        "host": host.facts(),
        "runs": [],
    }


def save(record, path):
    files.save(record, path)


def load(path):
    record = files.load(path, PROGRAM, SCHEMA)
    missing = [name for name in ("settings", "base", "better", "runs", "host") if not record.get(name)]
    if missing:
        raise BadInput(f"'{path}' is damaged: no {', '.join(missing)}")
    return record
