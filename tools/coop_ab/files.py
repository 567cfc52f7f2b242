# SPDX-License-Identifier: BSD-3-Clause
"""Files of results. Each is a JSON object that names the program that wrote it and the schema of its contents."""

import json

from .errors import BadInput


def write(text, path):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise BadInput(f"cannot write '{path}': {error.strerror}") from None


def save(data, path, indent=1):
    write(json.dumps(data, indent=indent) + "\n", path)


def load(path, program, schema):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise BadInput(f"cannot read '{path}': {error.strerror}") from None
    except ValueError:
        raise BadInput(f"'{path}' is not JSON") from None
    if not isinstance(data, dict) or data.get("program") != program:
        raise BadInput(f"'{path}' was not written by {program}")
    if data.get("schema") != schema:
        raise BadInput(f"'{path}' has schema {data.get('schema')}, this {program} reads {schema}")
    return data
