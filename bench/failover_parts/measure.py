# SPDX-License-Identifier: BSD-3-Clause
"""One job with one fault, and what it shows."""

import re

from coop_fig import outage

from . import catalogue

PMLS = ("coop", "ob1")
AFTER = 20  # messages
TIMER_S = 4.096e-6 * 2 ** 14  # of acknowledgements, with failover and more than one rail
QUIET_S = 0.005  # after an event, it is quiet at the latest


def command(pml, fault, program):
    # Both ranks are in one node, whose shared memory they must not use.
    return ["mpirun", "-n", "2", "--oversubscribe", "--mca", "pml", pml, "--mca", "btl", "coopib,self", "--mca", "btl_coopib_failover", "1",
            "--mca", "btl_coopib_report", "1", "--mca", "pml_coop_lane", "0", "--mca", "mpi_yield_when_idle", "1", *fault.job, program]


def judge_end(fault, outcome):
    """What is wrong with the way in which the job ended, or None."""
    if outcome.timed_out:
        return "hangs"
    if fault.ends:
        if outcome.status == 0:
            return "did not end"
        return None if fault.ends in outcome.text else "another message"
    return None if outcome.status == 0 else f"dies (status {outcome.status})"


def times_of(fault, outcome):
    """The messages that are measured: those of the receiver, or of the origin of one-sided operations."""
    return outcome.arrivals[1] or outcome.arrivals[0]


def detection(outcome, since, until):
    """When the loss was noticed: the queue pair failed or moved, or the HCA's timer was over, or it was told that the receiver is not
    ready. None without a trace of that."""
    seen = [(at, words) for at, words in outcome.trace if since <= at <= until]
    failed = [at for at, words in seen if re.search(catalogue.NOTICED, words)]
    if failed:
        return failed[0]
    timers = [at + TIMER_S for at, words in seen if words.startswith("retry ")]
    told = [at for at, words in seen if words.startswith("receiver not ready ")]
    return max((at for at in timers + told if at <= until), default=None)


def figures(fault, outcome):
    """{"t": ms, "detected": ms after the fault, "b": share}; what is not known is missing. Of several faults, the longest t counts."""
    times = times_of(fault, outcome)
    until = outcome.started + fault.until
    begins = [at for at, words in outcome.trace if at >= outcome.started and re.search(fault.began, words)]
    if not begins or not times:
        return {}
    found, first_held = {}, None
    for began, end in zip(begins, begins[1:] + [until]):
        # Messages on the way arrive, then it is quiet. Without an event, the first message after the detection ends that.
        gap = outage.longest_gap(times, began, end if not fault.event else min(end, began + QUIET_S))
        if gap is None:
            continue
        since = began
        if not fault.event:
            noticed = detection(outcome, began, gap[1])
            if noticed is not None:
                found["detected"] = 1e3 * (noticed - began)
                since = noticed
        t = 1e3 * max(0.0, gap[1] - since)
        if "t" not in found or t > found["t"]:
            found["t"], first_held = t, gap[1]
    if first_held is None:
        return {}
    later = [at for at in times if at >= first_held]
    if fault.least_b is not None and len(later) > AFTER:
        speed = outage.rate(times, later[AFTER], until, fault.size)
        if speed is not None:
            found["b"] = speed / fault.left
    return found


def one_run(prefix, fault, pml, scale=1.0):
    """`scale` below 1 makes every time of the job shorter, for a test."""
    steps = tuple((at * scale, words) for at, words in fault.steps)
    program = ["-m", str(fault.size), "-t", f"{fault.seconds * scale:g}", *fault.program]
    outcome = outage.run(f"{prefix}/bin/coop-fabric", fault.subnet, command(pml, fault, f"{prefix}/libexec/ompi-coop/coop_failover"), program,
                         steps, fault.limit_s)
    wrong = judge_end(fault, outcome)
    sample = {"fault": fault.name, "pml": pml, "wrong": wrong, "figures": {}, "lost": outcome.text.count(" is lost: "),
              "back": outcome.text.count(" is back after "), "moved": outcome.text.count(" has moved to ")}
    if not wrong and not fault.ends:
        sample["figures"] = {name: round(value, 4) for name, value in figures(fault, outcome).items()}
        if fault.back and sample["back"] < sample["lost"] and not sample["moved"]:
            sample["wrong"] = "a rail did not come back"
    return sample, outcome
