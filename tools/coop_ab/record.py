# SPDX-License-Identifier: BSD-3-Clause
"""What is kept of a comparison: a dictionary, written as JSON. It holds every sample; the summary in it is for other
programs and is computed anew when coop-ab reads the file.

    schema 1: title, command, settings [{name, words, env}], base, unit, better ("lower"/"higher"), key, reading, seed,
    rounds, timeout_s, started, complete, host {...}, runs [{round, position, setting, wall_s, load, exit_code, error,
    values [[key, value], ...]}], summary {...}. A key is null where the program printed one figure.
"""

import datetime
import json

from . import host
from .errors import BadInput

SCHEMA = 1


def new(command, settings, base, reader, seed, rounds, timeout_s):
    return {
        "program": "coop-ab",
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
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
            file.write("\n")
    except OSError as error:
        raise BadInput(f"cannot write '{path}': {error.strerror}") from None


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except OSError as error:
        raise BadInput(f"cannot read '{path}': {error.strerror}") from None
    except ValueError:
        raise BadInput(f"'{path}' is not JSON") from None
    if not isinstance(record, dict) or record.get("program") != "coop-ab":
        raise BadInput(f"'{path}' was not written by coop-ab")
    if record.get("schema") != SCHEMA:
        raise BadInput(f"'{path}' has schema {record.get('schema')}, this coop-ab reads {SCHEMA}")
    missing = [name for name in ("settings", "base", "better", "runs", "host") if not record.get(name)]
    if missing:
        raise BadInput(f"'{path}' is damaged: no {', '.join(missing)}")
    return record
