# SPDX-License-Identifier: BSD-3-Clause
"""The figure of failover: bandwidth over time while rails fail and come back, on software subnets with a fast and a slow rail (chapter 10
of the dissertation, 10.13 to 10.20). Stock components run the same program with the same faults. A line is the median of the rounds,
a band their middle half; where a job has died, its bandwidth is zero."""

import dataclasses
import sys
import time

from coop_ab import host, plot, record as records, session
from coop_ab.settings import Setting

from . import draw, outage
from .protocols import Look
from .subnet import tool

NAME = "failover"
TITLE = "Bandwidth while rails fail and come back"
FAST, SLOW = 200, 100  # MB/s
SIZE, WINDOW = 131072, 16
BIN_S = 0.05
BEFORE_S = 0.6  # from the start of the job to the fault

COOPIB = "--mca btl coopib,self --mca btl_coopib_failover 1"
SETTINGS = (
    Setting("coop", f"--mca pml coop --mca pml_coop_lane 0 {COOPIB}"),
    Setting("ob1", f"--mca pml ob1 {COOPIB}"),
    Setting("openib", "--mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_warn_default_gid_prefix 0"),
    Setting("ucx", "--mca pml ucx --mca btl self --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=rc_v,self -x UCX_MAX_RNDV_RAILS=2 "
            "-x UCX_MAX_EAGER_RAILS=2"))
LABELS = {"coop": "pml/coop, coopib", "ob1": "ob1, coopib", "openib": "ob1, openib", "ucx": "pml/ucx", "rails": "rails that work"}
LOOKS = {
    "coop": Look("#0072B2", ""),
    "ob1": Look("#D55E00", ""),
    "openib": Look("#555555", "", "--"),
    "ucx": Look("#009E73", "", "--"),
    "rails": Look("#BBBBBB", "", ":"),
}


@dataclasses.dataclass(frozen=True)
class Scene:
    title: str
    kind: str       # of coop_failover
    faults: tuple   # (seconds after the first fault, rails that change in MB/s, words of coop-fabric)
    began: str      # the entry of the trace that is the first fault
    begin_s: float = -0.5
    end_s: float = 1.5
    first_message: bool = False


def flap(rail, rate):
    return ((0.0, -rate, f"port h0/coop{rail}/1 down"), (0.8, rate, f"port h0/coop{rail}/1 up"))


# Rail 0 is the fast one. In a partition, each side loses one port.
LOST = ((0.0, -FAST, "port h0/coop0/1 down"), (0.0, -SLOW, "port h1/coop1/1 down"))
SCENES = (
    Scene("the fast rail fails, one way", "send", flap(0, FAST), r"^port down"),
    Scene("the slow rail fails, one way", "send", flap(1, SLOW), r"^port down"),
    Scene("the fast rail fails, both ways", "both", flap(0, FAST), r"^port down"),
    Scene("the slow rail fails, both ways", "both", flap(1, SLOW), r"^port down"),
    Scene("the fast rail fails at the first message", "send", ((0.0, -FAST, "fault h0/coop0/1 cut --count 1"), (0.8, FAST, "port h0/coop0/1 up")),
          r"^fault cut", begin_s=-0.1, first_message=True),
    Scene("no rail works; the fast one returns first", "send", (*LOST, (0.5, FAST, "port h0/coop0/1 up"), (1.0, SLOW, "port h1/coop1/1 up")),
          r"^port down"),
    Scene("no rail works; the slow one returns first", "send", (*LOST, (0.5, SLOW, "port h1/coop1/1 up"), (1.0, FAST, "port h0/coop0/1 up")),
          r"^port down"),
)


def limit(scene, at):
    """MB/s of the rails that work."""
    return (2 if scene.kind == "both" else 1) * (FAST + SLOW + sum(change for when, change, _ in scene.faults if when <= at))


def job(options, setting, scene):
    program = ["-k", scene.kind, "-m", str(SIZE), "-w", str(WINDOW), "-t", f"{scene.end_s + (0 if scene.first_message else BEFORE_S) + 0.1:g}"]
    command = [options.mpirun, "-n", "2", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "--mca", "btl_base_warn_component_unused", "0",
               *setting.words.split(), f"{options.bench}/coop_failover"]
    if scene.first_message:
        # The rule is there before the first message, and the port fails with it.
        program += ["-d", f"{BEFORE_S:g}"]
        return command, program, [(0.3, scene.faults[0][2])] + [(BEFORE_S + at, words) for at, _, words in scene.faults[1:]]
    return command, program, [(BEFORE_S + at, words) for at, _, words in scene.faults]


def one_run(options, setting, scene):
    """A run of a record: the middle of each interval in ms after the fault, and its MB/s."""
    command, program, steps = job(options, setting, scene)
    load = host.load()
    begin = time.monotonic()
    outcome = outage.run(tool(options.bench), ["--hosts", "2", "--hcas", "2", "--rate", f"{FAST}MB/s,{SLOW}MB/s"], command, program, steps,
                         scene.end_s + BEFORE_S + 2.5)
    sample = {"setting": setting.name, "wall_s": round(time.monotonic() - begin, 3), "load": load, "exit_code": outcome.status, "error": None,
              "values": [], "end": "hangs" if outcome.timed_out else "died" if outcome.status else "well"}
    fault = outcome.first(scene.began, outcome.started or 0.0)
    if outcome.started is None or fault is None:
        sample["error"] = "the job has not begun, or there was no fault"
        return sample, outcome
    times = sorted(outcome.arrivals[0] + outcome.arrivals[1])
    found = outage.bins(times, fault + scene.begin_s, fault + scene.end_s, BIN_S, SIZE)
    sample["values"] = [[round(1e3 * (scene.begin_s + BIN_S * (i + 0.5))), [round(value, 1)]] for i, value in enumerate(found)]
    return sample, outcome


def shorter(scene):
    """The scene in half a second, to see that everything works."""
    return dataclasses.replace(scene, faults=tuple((at * 0.2, change, words) for at, change, words in scene.faults), end_s=scene.end_s * 0.2)


def measure(options):
    """The records of the scenes, and the number of failed runs."""
    scenes = (shorter(SCENES[0]),) if options.quick else SCENES
    pages = []
    for scene in scenes:
        record = records.new([options.mpirun, "-n", "2", "{}"], SETTINGS, "coop", _Reading, options.seed, options.rounds, 0)
        record.update({"title": scene.title, "unit": "MB/s", "better": "higher", "key": "ms"})
        pages.append(record)
    start, longest, failures = time.monotonic(), 0.0, 0
    for number, order in enumerate(session.orders(len(SETTINGS), options.rounds, options.seed), 1):
        begin = time.monotonic()
        if number > 1 and begin - start + longest > options.minutes * 60:
            print(f"coop-figures: {number - 1} of {options.rounds} rounds fit into {options.minutes:g} minutes", file=sys.stderr)
            break
        for scene, record in zip(scenes, pages):
            for position, index in enumerate(order):
                sample, outcome = one_run(options, SETTINGS[index], scene)
                record["runs"].append({"round": number, "position": position, **sample})
                if sample["error"]:
                    failures += 1
                    print(f"coop-figures: left out: {SETTINGS[index].name}: {sample['error']}\n{outcome.text[-2000:]}", file=sys.stderr)
                if not options.quiet:
                    print(f"[{time.monotonic() - start:4.0f} s] round {number}  {scene.title}  {SETTINGS[index].name}: {sample['end']}",
                          file=sys.stderr, flush=True)
        longest = max(longest, time.monotonic() - begin)
    for record in pages:
        record["complete"] = True
    return pages, failures


class _Reading:
    @staticmethod
    def describe():
        return "arrivals of messages"


def scene_of(record):
    return next(scene for scene in SCENES if scene.title == record["title"])


def limits(record):
    """{ms: [MB/s]} of the rails that work, at the times of the record."""
    keys = sorted({key for run in record["runs"] for key, _ in run["values"]})
    return {key: [limit(scene_of(record), key / 1e3)] for key in keys}


def lines(record):
    """(setting, {ms: samples})"""
    yield "rails", limits(record)
    for name in draw.setting_names(record):
        found = draw.samples(record, name, 0)
        if found:
            yield name, found


def ends(record):
    """{setting: how its jobs ended}, for the text beside the figure."""
    found = {}
    for run in record["runs"]:
        found.setdefault(run["setting"], []).append(run["end"])
    return found


def panel(axes, record):
    from coop_ab import stats

    plot.panel_frame(axes)
    for name, values in lines(record):
        keys = sorted(values)
        quartiles = [stats.quartiles(values[key]) for key in keys]
        look = LOOKS[name].line()
        axes.fill_between([key / 1e3 for key in keys], *zip(*quartiles), color=look["color"], alpha=0.15, linewidth=0, zorder=1)
        axes.plot([key / 1e3 for key in keys], [stats.median(values[key]) for key in keys], label=LABELS[name], **look)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds after the fault")
    axes.set_ylabel("MB/s")
    axes.set_title(record["title"], loc="left", fontsize=9.5)
    draw.legend(axes)


def save(pages, path):
    rows = -(-len(pages) // 2)
    rounds = max(run["round"] for record in pages for run in record["runs"])
    with plot.page(path, "coop-figures", 3.2 * rows + 0.6, TITLE, f"{host.one_line(pages[0]['host'])}; {rounds} rounds") as page:
        panels = list(page.subplots(rows, 2, squeeze=False).flat)
        for axes, record in zip(panels, pages):
            panel(axes, record)
        for axes in panels[len(pages):]:
            axes.axis("off")
