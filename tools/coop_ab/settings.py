# SPDX-License-Identifier: BSD-3-Clause
"""Settings: a name, the words that replace {} in the command, and environment variables."""

import dataclasses
import re
import shlex

from .errors import BadInput

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*\Z")
ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.S)


@dataclasses.dataclass
class Setting:
    name: str
    words: str = ""
    env: dict = dataclasses.field(default_factory=dict)


def parse_settings(setting_args, env_args, command):
    settings = {}
    for text in setting_args:
        name, equals, words = text.partition("=")
        if not equals or not NAME.match(name):
            raise BadInput(f"--setting '{text}': use NAME='WORDS' (a name of letters, digits, . _ + -)")
        if name in settings:
            raise BadInput(f"--setting '{name}' is given twice")
        settings[name] = Setting(name, words)
    for text in env_args:
        name, colon, assignment = text.partition(":")
        match = ASSIGNMENT.match(assignment)
        if not colon or not NAME.match(name) or not match:
            raise BadInput(f"--env '{text}': use NAME:VAR=VALUE")
        settings.setdefault(name, Setting(name)).env[match[1]] = match[2]
    if not any("{}" in word for word in command):
        for setting in settings.values():
            words_to_env(setting)
    for setting in settings.values():
        split(setting)
    if len(settings) < 2:
        raise BadInput("nothing to compare: give --setting NAME='WORDS' at least twice")
    return list(settings.values())


def split(setting):
    try:
        return shlex.split(setting.words)
    except ValueError as error:
        raise BadInput(f"--setting {setting.name}='{setting.words}': {error}") from None


def words_to_env(setting):
    """Moves the words to the environment. It is called for a command without {}, in which words have no other place."""
    for word in split(setting):
        match = ASSIGNMENT.match(word)
        if not match:
            raise BadInput(f"the command has no {{}} to replace by '{setting.words}' of setting '{setting.name}' "
                           "(without it, all words must be VAR=VALUE)")
        setting.env[match[1]] = match[2]
    setting.words = ""


def expand(command, setting):
    """The argument list. {} alone becomes the setting's words; {} inside a word (sh -c '... {} ...') becomes their text."""
    argv = []
    for word in command:
        if word == "{}":
            argv.extend(split(setting))
        else:
            argv.append(word.replace("{}", setting.words))
    return argv


def shown(command, setting):
    """The command as a user would type it."""
    env = [f"{name}={shlex.quote(value)}" for name, value in setting.env.items()]
    return " ".join(env + [shlex.join(expand(command, setting))])
