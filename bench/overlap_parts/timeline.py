# SPDX-License-Identifier: BSD-3-Clause
"""The paper's figure 6: when the messages of a transfer left and arrived, and what both processes did at that time.

The times of the programs are coop_overlap's time stamps. The times of the HCAs are from the subnet's trace (coop-fabric run
--trace-messages), which is independent of MPI: the process that executes a message writes a line when the message begins and one
when it takes effect.
Both use CLOCK_MONOTONIC, the trace with a resolution of 1 us."""

import os
import re
import tempfile

from coop_ab import plot

from . import rounds
from .subnet import LABELS, SETTINGS, command

TITLE = "One transfer of 1 MiB: time stamps"
SHOWN = ("rput", "off", "interrupt")
SIDES = ("sender", "receiver")
SIZE = 1 << 20
COMPUTE_US = 5500  # 1.3 times the time of 1 MiB at 250 MB/s
LIMITS = rounds.Limits(rounds=1, minutes=1, tolerance=0.01, relative=False)
SHORT = 4096  # bytes: control messages are shorter, data is not

CREATED = re.compile(r"created at ([\d.]+) s of CLOCK_MONOTONIC")
MESSAGE = re.compile(r"^ *([\d.]+) s  message (begun|arrived) (QP \w+) -> (QP \w+) (\w+) (\d+) bytes", re.M)


def read_stamps(text):
    """[(call, compute, wait, return, other call, other return)] in seconds"""
    stamps = [[float(word) for word in line.split()[4:]] for line in text.splitlines() if line.startswith("# stamp ")]
    if not stamps or any(len(row) != 6 for row in stamps):
        raise ValueError("no lines '# stamp' with six times")
    return stamps


def median_stamp(stamps):
    """The transfer with the median time."""
    return sorted(stamps, key=lambda row: row[3] - row[0])[(len(stamps) - 1) // 2]


def read_messages(text):
    """[{from, to, kind, bytes, begun, arrived}] in order of their start. Messages of one queue pair and kind arrive in order."""
    created = CREATED.search(text)
    if not created:
        raise ValueError("the trace does not say when the subnet was created")
    origin, messages, waiting = float(created[1]), [], {}
    for time, what, source, to, kind, size in MESSAGE.findall(text):
        key = (source, to, kind, size)
        if what == "begun":
            message = {"from": source, "to": to, "kind": kind, "bytes": int(size), "begun": origin + float(time), "arrived": None}
            messages.append(message)
            waiting.setdefault(key, []).append(message)
        elif waiting.get(key):
            waiting[key].pop(0)["arrived"] = origin + float(time)
    return [message for message in messages if message["arrived"]]


def roles(messages, begin, end, size):
    """Names the messages of one transfer: {name: {from_sender, begun, arrived}} in seconds. Long messages are the data; a read is
    posted by the receiver and a write by the sender, which identifies the two. Reads that have queue pairs of their own do not; then
    the last message before the read is the sender's. RTS: the sender's first message, before the data.
    CTS: the receiver's last message before a write. FIN: the first message after the data from the side that posted it."""
    inside = [m for m in messages if begin <= m["begun"] <= end]
    data = [m for m in inside if m["bytes"] > SHORT]
    if sum(m["bytes"] for m in data) < size // 2:
        raise ValueError("the trace has no data for that transfer")
    reads = data[0]["kind"] == "RDMA_READ"
    sender = data[0]["to"] if reads else data[0]["from"]
    first, last = min(m["begun"] for m in data), max(m["arrived"] for m in data)
    short = [m for m in inside if m["bytes"] <= SHORT]
    before = [m for m in short if m["begun"] <= first]
    if before and not any(sender in (m["from"], m["to"]) for m in short):
        sender = before[-1]["from"]

    def pick(from_sender, allowed, place):
        chosen = [m for m in short if (m["from"] == sender) == from_sender and allowed(m)]
        return chosen[place] if chosen else None

    found = {"RTS": pick(True, lambda m: m["begun"] <= first and m["bytes"] >= 48, 0),
             "CTS": None if reads else pick(False, lambda m: m["arrived"] <= first, -1),
             "FIN": pick(not reads, lambda m: m["arrived"] >= last, 0)}
    result = {name: {"from_sender": m["from"] == sender, "begun": m["begun"], "arrived": m["arrived"]} for name, m in found.items() if m}
    result["read" if reads else "write"] = {"from_sender": not reads, "begun": first, "arrived": last}
    missing = {"RTS", "FIN"} - set(result)
    if missing:
        raise ValueError(f"the trace has no {' and no '.join(sorted(missing))} of that transfer")
    return result


def one_side(context, side, setting):
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        program = [f"{context.prefix}/libexec/ompi-coop/coop_overlap", "--side", side, "--compute-us", str(COMPUTE_US), "--stamps", "-m", str(SIZE), "-i",
                   "1", "-x", "3", "-b", "5" if context.quick else "31"]
        words = command(context.prefix, 2, context.cores, program, ("--trace-messages", "--trace-to", trace))

        def read(text):
            with open(trace, encoding="utf-8") as file:
                messages = read_messages(file.read())
            stamp = median_stamp(read_stamps(text))
            call, compute, wait, back, other_call, other_back = stamp
            found = roles(messages, call - 1e-6, max(back, other_back) + 1e-6, SIZE)
            after = {name: {**m, "begun": (m["begun"] - call) * 1e6, "arrived": (m["arrived"] - call) * 1e6}
                     for name, m in found.items()}
            moments = dict(zip(("call", "compute", "wait", "return", "other_call", "other_return"),
                               [(t - call) * 1e6 for t in (call, compute, wait, back, other_call, other_back)]))
            return {"total_us": moments["return"] - moments["call"]}, {"moments_us": moments, "messages_us": after}

        return rounds.one_run(rounds.Job(side, SETTINGS[setting], words, read))


def measure(context):
    runs = [{"round": 1, "position": 0, **one_side(context, side, name)} for side in SIDES for name in SHOWN]
    return runs, {"rounds": 1, "figures": len(rounds.figures_of(runs)), "not_stable": [], "tolerance": 0, "relative": False}


def table(runs):
    """Lines: microseconds from the call of the side that computes."""
    lines = []
    for sample in runs:
        if sample["error"]:
            continue
        moments, messages = sample["kept"]["moments_us"], sample["kept"]["messages_us"]
        events = [("computing begins", moments["compute"]), ("computing ends", moments["wait"]), ("wait returns", moments["return"]),
                  ("other side calls", moments["other_call"]), ("other side returns", moments["other_return"])]
        for name, message in messages.items():
            events += [(f"{name} posted" if name in ("read", "write") else f"{name} sent", message["begun"]),
                       (f"{name} completed" if name in ("read", "write") else f"{name} arrived", message["arrived"])]
        words = "; ".join(f"{name} {time:.0f}" for name, time in sorted(events, key=lambda event: event[1]))
        lines.append(f"{sample['job']} computes, {LABELS[sample['setting']]}, us: {words}")
    return lines


COMPUTE, INSIDE, DATA, CONTROL = "#0072B2", "#DDAA33", "#009E73", "#333333"
SENDER, RECEIVER = 1.0, 0.0  # heights of the two processes


def draw_process(axes, height, spans):
    for begin, end, color in spans:
        axes.barh(height, end - begin, left=begin, height=0.16, color=color, linewidth=0, zorder=2)


def draw_messages(axes, messages):
    for name, message in messages.items():
        if name in ("read", "write"):
            # A read's data travels from the sender too.
            corners = [(message["begun"], SENDER - 0.1), (message["arrived"], SENDER - 0.1), (message["arrived"], RECEIVER + 0.1),
                       (message["begun"], RECEIVER + 0.1)]
            axes.fill(*zip(*corners), color=DATA, alpha=0.25, linewidth=0, zorder=1)
            axes.text((message["begun"] + message["arrived"]) / 2, 0.5, f"RDMA {name}", ha="center", va="center", fontsize=8)
        else:
            ends = (SENDER - 0.08, RECEIVER + 0.08) if message["from_sender"] else (RECEIVER + 0.08, SENDER - 0.08)
            axes.annotate("", (message["arrived"], ends[1]), (message["begun"], ends[0]), zorder=3,
                          arrowprops={"arrowstyle": "-|>", "color": CONTROL, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0})
            axes.annotate(name, (message["begun"], ends[0]), xytext=(3, -9 if message["from_sender"] else 3),
                          textcoords="offset points", fontsize=7.5, color=CONTROL)


def draw_panel(axes, sample):
    plot.panel_frame(axes)
    axes.set_title(f"{sample['job']} computes: {LABELS[sample['setting']]}", loc="left", fontsize=9.5)
    axes.set_ylim(-0.35, 1.35)
    axes.set_yticks([SENDER, RECEIVER], ["sender", "receiver"])
    axes.set_xlabel("us from the call of the side that computes")
    if sample["error"]:
        axes.text(0.5, 0.5, sample["error"], ha="center", va="center", transform=axes.transAxes, fontsize=7, color="#777777")
        return
    m = sample["kept"]["moments_us"]
    own, other = (SENDER, RECEIVER) if sample["job"] == "sender" else (RECEIVER, SENDER)
    draw_process(axes, own, [(m["call"], m["compute"], INSIDE), (m["compute"], m["wait"], COMPUTE), (m["wait"], m["return"], INSIDE)])
    draw_process(axes, other, [(m["other_call"], m["other_return"], INSIDE)])
    draw_messages(axes, sample["kept"]["messages_us"])


def draw(figure, runs, _end):
    from matplotlib.patches import Patch

    grid = figure.subplots(len(SHOWN), len(SIDES), squeeze=False)
    last = max(sample["kept"]["moments_us"][name] for sample in runs if not sample["error"] for name in ("return", "other_return"))
    by_key = {(sample["job"], sample["setting"]): sample for sample in runs}
    for row, name in zip(grid, SHOWN):
        for axes, side in zip(row, SIDES):
            if (side, name) in by_key:
                draw_panel(axes, by_key[(side, name)])
            axes.set_xlim(-0.03 * last, 1.03 * last)  # the same scale for all; a blocking side may have called much earlier
    figure.legend(handles=[Patch(color=COMPUTE, label="computing"), Patch(color=INSIDE, label="in MPI"),
                           Patch(color=DATA, alpha=0.25, label="data on the way")], ncol=3, frameon=False, fontsize=8, loc="upper right")


HEIGHT = 6.6
