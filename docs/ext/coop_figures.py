# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx directives. Two draw SVG inside the page, in its colours; the third quotes a message.

A packet header, from lines "offset bytes name" (written by generate/reference.cc), 8 bytes a row:

    .. packet:: FIN (32 bytes)
       :then: what follows the header

An exchange of packets, one line per event, top to bottom:

    .. sequence:: rget
       :actors: sender | receiver

       L: a note at the left
       R: a note at the right
       -> packet to the right | small print
       <- packet to the left
       => data to the right
       x> refused, to the right
       <x refused, to the left
       --- a line across

A message from a component's help file; pml/coop is the default:

    .. help-message:: parameter
    .. help-message:: btl-coopib/parameter
"""

import html
import textwrap

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

BLUE, ORANGE, RED = "#2a78c2", "#c96a12", "#c23636"


def text(x, y, words, size=13, anchor="middle", weight="normal", color="currentColor", mono=False):
    family = "ui-monospace, 'DejaVu Sans Mono', monospace" if mono else "'DejaVu Sans', system-ui, sans-serif"
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
            f'fill="{color}" font-family="{family}">{html.escape(words)}</text>')


def line(x1, y1, x2, y2, color="currentColor", width=1.0, extra=""):
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" stroke-width="{width:g}" {extra}/>'


def rect(x, y, width, height, color, opacity=0.14, radius=3):
    return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}" fill="{color}" '
            f'fill-opacity="{opacity}" stroke="{color}" stroke-width="1"/>')


def picture(title, width, height, parts):
    return (f'<svg class="coop-figure" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
            f'style="width:100%;max-width:{width:g}px;height:auto" aria-label="{html.escape(title)}">'
            f'<title>{html.escape(title)}</title>{"".join(parts)}</svg>')


# --- packets ----------------------------------------------------------------

BYTE, ROW, LEFT = 76, 34, 44


def draw_packet(title, fields, then):
    parts = [text(LEFT + BYTE * (i + 0.5), 14, str(i), 11) for i in range(8)]
    end = 0
    for offset, size, name in fields:
        end = offset + size
        color = "#8a8a8a" if name == "reserved" else ORANGE if name in ("check", "kind") else BLUE
        while size > 0:
            row, column = divmod(offset, 8)
            # Whole rows in one box; otherwise up to the end of the row.
            rows = size // 8 if column == 0 and size >= 8 else 1
            width = 8 if rows > 1 else min(size, 8 - column)
            box = (LEFT + column * BYTE + 1.5, 22 + row * ROW + 1.5, width * BYTE - 3, rows * ROW - 3)
            small = 10 if width == 1 and len(name) > 9 else 12
            parts += [rect(*box, color), text(box[0] + box[2] / 2, box[1] + box[3] / 2 + 4, name, small, mono=True)]
            offset, size = offset + rows * width, size - rows * width
    rows = (end + 7) // 8
    parts += [text(LEFT - 8, 22 + row * ROW + 22, str(row * 8), 11, "end") for row in range(rows)]
    height = 26 + rows * ROW
    if then:
        box = (LEFT + 1.5, height - 2.5, 8 * BYTE - 3, 26)
        parts += [f'<g stroke-dasharray="4 3">{rect(*box, "#8a8a8a", 0.05)}</g>', text(LEFT + 4 * BYTE, height + 15, then, 12)]
        height += 28
    return picture(title, LEFT + 8 * BYTE + 4, height, parts)


class Packet(SphinxDirective):
    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"then": directives.unchanged}

    def run(self):
        fields = [(int(a), int(b), c) for a, b, c in (entry.split() for entry in self.content if entry.strip())]
        drawing = draw_packet(self.arguments[0], fields, self.options.get("then"))
        return [nodes.raw("", drawing, format="html")]


# --- sequences --------------------------------------------------------------

WIDTH, X = 760, (215, 545)
NOTE = 27  # characters in a line of a note


def arrow(y, to_right, color, width, cut=False):
    start, end = (X[0] + 3, X[1] - 3) if to_right else (X[1] - 3, X[0] + 3)
    sign = 1 if to_right else -1
    if cut:
        end = start + sign * 215
        cross = "".join(line(end - 6, y + d, end + 6, y - d, color, 2) for d in (-6, 6))
        return line(start, y, end - sign * 9, y, color, width) + cross
    tip = 9 + width
    points = f"{end},{y} {end - sign * tip},{y - tip / 2} {end - sign * tip},{y + tip / 2}"
    return line(start, y, end - sign * (tip - 1), y, color, width) + f'<polygon points="{points}" fill="{color}"/>'


def draw_message(y, mark, words):
    label, _, small = (part.strip() for part in words.partition("|"))
    color = RED if "x" in mark else ORANGE if "=" in mark else BLUE
    parts = [text(WIDTH / 2, y + 12, label, 13, weight="600"),
             arrow(y + 22, mark.endswith(">"), color, 4 if "=" in mark else 1.8, "x" in mark)]
    if small:
        parts.append(text(WIDTH / 2, y + 39, small, 11))
    return parts, 48 if small else 34


def draw_note(y, right, words):
    lines = textwrap.wrap(words, NOTE)
    x, anchor = (X[1] + 14, "start") if right else (X[0] - 14, "end")
    parts = [text(x, y + 12 + 15 * i, words, 11.5, anchor) for i, words in enumerate(lines)]
    dot = f'<circle cx="{X[right]}" cy="{y + 8}" r="3.5" fill="currentColor"/>'
    return parts + [dot], 15 * len(lines) + 8


def draw_sequence(title, actors, events):
    parts, y = [], 44
    for event in events:
        mark, _, words = event.partition(" ")
        if mark in ("L:", "R:"):
            drawn, step = draw_note(y, mark == "R:", words)
        elif mark in ("->", "<-", "=>", "x>", "<x"):
            drawn, step = draw_message(y, mark, words)
        elif mark == "---":
            drawn = [line(20, y + 10, WIDTH - 20, y + 10, extra='stroke-dasharray="3 4" opacity="0.5"'),
                     text(24, y + 26, words, 12, "start", "600")]
            step = 36
        else:
            raise ValueError(f"sequence: '{event}' is no event")
        parts += drawn
        y += step
    lifelines = [line(x, 34, x, y + 4, extra='opacity="0.45"') for x in X]
    heads = [rect(x - 62, 6, 124, 28, BLUE) + text(x, 25, name.strip(), 13, weight="600") for x, name in zip(X, actors)]
    return picture(title, WIDTH, y + 8, lifelines + heads + parts)


class Sequence(SphinxDirective):
    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"actors": directives.unchanged}

    def run(self):
        actors = self.options.get("actors", "sender | receiver").split("|")
        try:
            drawing = draw_sequence(self.arguments[0], actors, [entry for entry in self.content if entry.strip()])
        except ValueError as problem:
            raise self.error(str(problem))
        figure = nodes.figure("", nodes.raw("", drawing, format="html"))
        figure += nodes.caption("", self.arguments[0])
        return [figure]


# --- help messages ----------------------------------------------------------

def help_messages(path):
    messages, topic = {}, None
    with open(path, encoding="utf-8") as file:
        for words in file.read().splitlines():
            if words.startswith("#"):
                continue
            if words.startswith("[") and words.endswith("]"):
                topic = words[1:-1]
                messages[topic] = []
            elif topic:
                messages[topic].append(words)
    return messages


class HelpMessage(SphinxDirective):
    required_arguments = 1

    def run(self):
        component, _, topic = self.arguments[0].rpartition("/")
        relative, path = self.env.relfn2path(f"/generated/help-mpi-{component or 'pml-coop'}.txt")
        self.env.note_dependency(relative)
        messages = help_messages(path)
        if topic not in messages:
            raise self.error(f"there is no message '{self.arguments[0]}'")
        words = "\n".join(messages[topic])
        return [nodes.literal_block(words, words, language="none")]


def setup(app):
    app.add_directive("help-message", HelpMessage)
    app.add_directive("packet", Packet)
    app.add_directive("sequence", Sequence)
    return {"parallel_read_safe": True}
