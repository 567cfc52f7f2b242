# SPDX-License-Identifier: BSD-3-Clause
"""The faults. Rank 0 is on host h0 and sends to rank 1 on h1, if nothing else is said.

t is the time from the fault, or from its detection, to the first message that the fault has held up; b is the bandwidth from 20
messages later until the rails come back, as a share of the rate of the rails that are left.

Detection without an event is the moment at which the queue pair fails. If the HCA itself repeats, it is the end of its timer."""

import dataclasses

MIB = 1 << 20
RATE = 200  # MB/s of a rail
TWO = ("--hosts", "2", "--hcas", "2", "--rate", f"{RATE}MB/s")
FOUR = ("--hosts", "2", "--hcas", "4", "--rate", f"{RATE // 2}MB/s")
SPINES = ("--fat-tree", "2,2,1", "--hcas", "2", "--rate", f"{RATE}MB/s")
LIDS = ("--hosts", "2", "--lmc", "1", "--rate", f"{RATE}MB/s")
PORTS = ("--hosts", "2", "--ports", "2", "--rate", f"{RATE}MB/s")
EVENT = r"^event h[01]/coop\d (PORT_ERR|DEVICE_FATAL|QP_FATAL)"
NOTICED = r"^(QP to error state|path migrated|event h[01]/coop\d QP_LAST_WQE_REACHED)"


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    words: str               # for the table
    steps: tuple             # (seconds, words of coop-fabric)
    subnet: tuple = TWO
    job: tuple = ()          # further arguments of mpirun
    program: tuple = ()      # options of coop_failover
    size: int = 65536
    began: str = EVENT       # the entry of the trace that is the fault
    event: bool = True       # whether t counts from `began`; otherwise from its detection
    left: float = RATE       # MB/s of the rails that are left
    until: float = 1.1       # seconds; b ends here
    seconds: float = 1.6     # of the job's messages
    most_t: float = 5.0      # ms
    least_b: float = 0.95    # None: b is not judged
    ends: str = ""           # the job has to end with this message
    limit_s: float = 40.0
    back: bool = True        # the rails come back before the job ends


def outage(down, up, begin=0.5, end=1.1):
    return ((begin, down), (end, up))


def coopib(*options):
    return tuple(word for option in options for word in ("--mca", *option.split(" ", 1)))


WITHOUT_EVENT = {"event": False, "until": 1.9, "seconds": 2.6}
PARTITION = {"until": 4.4, "seconds": 5.4, "began": r"^event h[01]/coop\d PORT_ACTIVE", "most_t": 50.0}

FAULTS = (
    Fault("local_port", "port of the sender down", outage("port h0/coop1/1 down", "port h0/coop1/1 up")),
    Fault("remote_port", "port of the receiver down", outage("port h1/coop1/1 down", "port h1/coop1/1 up")),
    Fault("local_hca", "HCA of the sender down", outage("hca h0/coop1 down", "hca h0/coop1 up")),
    Fault("remote_hca", "HCA of the receiver down", outage("hca h1/coop1 down", "hca h1/coop1 up")),
    Fault("switch_link", "cable between switches down", outage("link leaf0-spine1 down", "link leaf0-spine1 up", end=1.9), SPINES,
          began=r"^link down", **WITHOUT_EVENT),
    Fault("lid", "one LID of two down", outage("lid 5 down", "lid 5 up", end=1.9), LIDS, began=r"^LID down", **WITHOUT_EVENT),
    Fault("one_way", "requests lost in one direction",
          outage("link h0/coop1/1-sw0 loss 100% --one-way", "link h0/coop1/1-sw0 loss 0 --one-way", end=1.9), began=r"^loss", **WITHOUT_EVENT),
    Fault("one_way_back", "acknowledgements lost in one direction",
          outage("link h1/coop1/1-sw0 loss 100% --one-way", "link h1/coop1/1-sw0 loss 0 --one-way", end=1.9), began=r"^loss", **WITHOUT_EVENT),
    Fault("drop", "everything through a port is dropped", outage("fault h0/coop1/1 drop --for 1.4s", "fault clear", end=1.9),
          began=r"^fault set", **WITHOUT_EVENT),
    Fault("cut", "16 messages executed, not acknowledged, then the port is down",
          outage("fault h1/coop1/1 cut --count 16", "port h1/coop1/1 up"), began=EVENT),
    Fault("lose_ack.sends", "16 acknowledgements of sends lost", ((0.5, "fault h1/coop1/1 lose-ack --count 16"),), size=4096,
          job=coopib("btl_coopib_ring_threshold 0"), program=("-w", "4"), began=r"^fault lose-ack", event=False, left=2 * RATE, least_b=None,
          back=False),
    Fault("lose_ack.rings", "16 acknowledgements of ring writes lost", ((0.5, "fault h1/coop1/1 lose-ack --count 16"),), size=200,
          began=r"^fault lose-ack", event=False, left=2 * RATE, least_b=None, back=False),
    Fault("lose_ack.puts", "16 acknowledgements of puts lost", ((0.5, "fault h1/coop1/1 lose-ack --count 16"),), size=MIB,
          job=coopib("btl_coopib_flags send,put"), program=("-w", "4"), began=r"^fault lose-ack", event=False, left=2 * RATE, until=2.2,
          seconds=2.4, back=False),
    Fault("lose_ack.atomics", "16 acknowledgements of atomics lost", ((0.5, "fault h1/coop1/1 lose-ack --count 16"),), size=16,
          subnet=(*TWO, "--virtual-hosts"), job=("--map-by", "node", *coopib("osc rdma")), program=("-k", "add"),
          began=r"^fault lose-ack", event=False, left=2 * RATE, least_b=None, back=False),
    Fault("kill_qp", "queue pair of the receiver fails", ((0.5, "fault h1/coop1 kill-qp"),), left=2 * RATE, least_b=None),
    Fault("mute_qp", "queue pair of the sender is mute", ((0.5, "fault h0/coop1 mute-qp"),), began=r"^fault mute-qp", event=False,
          left=2 * RATE, least_b=None, seconds=2.6),
    Fault("rnr", "100 times receiver not ready", ((0.5, "fault h1/coop1/1 rnr --count 100"),), size=4096, job=coopib("btl_coopib_ring_threshold 0"),
          program=("-w", "4"), began=r"^fault rnr", event=False, left=2 * RATE, least_b=None, back=False),
    Fault("loss", "1 % of the messages lost", outage("port h0/coop1/1 loss 1%", "port h0/coop1/1 loss 0"), began=r"^loss", event=False,
          left=2 * RATE, least_b=None, back=False),
    *(Fault(f"one_by_one.{k}", f"4 rails lost one by one, {k} left",
            tuple((0.5 + 0.4 * i, f"port h0/coop{i}/1 down") for i in range(4 - k)) +
            tuple((0.9 + 0.4 * (3 - k) + 0.1 * n, f"port h0/coop{i}/1 up") for n, i in enumerate((1, 2, 0)) if i < 4 - k), FOUR,
            began=rf"^event h0/coop{3 - k} PORT_ERR", left=k * RATE / 2, until=0.9 + 0.4 * (3 - k), seconds=1.8 + 0.4 * (3 - k)) for k in (3, 2, 1)),
    Fault("flaps", "port goes down and up 10 times a second", tuple((0.5 + 0.05 * i, f"port h0/coop1/1 {('down', 'up')[i % 2]}") for i in range(20)),
          until=1.45, seconds=2.2),
    Fault("partition.sender_first", "all rails down for 2 s, the first port of the sender returns first",
          ((0.5, "port h0/coop0/1 down"), (0.5, "port h1/coop1/1 down"), (2.5, "port h0/coop0/1 up"), (4.4, "port h1/coop1/1 up")), **PARTITION),
    Fault("partition.receiver_first", "the same, the port of the receiver first",
          ((0.5, "port h0/coop0/1 down"), (0.5, "port h1/coop1/1 down"), (2.5, "port h1/coop1/1 up"), (4.4, "port h0/coop0/1 up")), **PARTITION),
    Fault("partition.too_long", "all rails down, longer than btl_coopib_partition_timeout 1",
          ((0.5, "port h0/coop0/1 down"), (0.5, "port h1/coop1/1 down")), job=coopib("btl_coopib_partition_timeout 1"), least_b=None,
          ends="No rail between two processes has worked for too long", seconds=8),
    Fault("apm.port", "APM: port with armed queue pairs down", outage("port h0/coop0/1 down", "port h0/coop0/1 up"), PORTS,
          job=coopib("btl_coopib_apm port"), most_t=70.0, back=False),
    Fault("apm.lid", "APM: LID of armed queue pairs down, no event", outage("lid 5 down", "lid 5 up", end=1.9), LIDS,
          job=coopib("btl_coopib_apm lmc"), **WITHOUT_EVENT, began=r"^LID down", most_t=70.0, back=False),
    Fault("apm.both", "APM: the alternate path is dead, too; software takes over",
          ((0.5, "port h0/coop0/1 down"), (0.5, "port h0/coop0/2 down"), (1.1, "port h0/coop0/1 up"), (1.1, "port h0/coop0/2 up")),
          (*PORTS, "--hcas", "2"), job=coopib("btl_coopib_apm port"), left=2 * RATE, began=r"^event h0/coop0 PORT_ERR port 2"),
)


def by_name(name):
    return next(fault for fault in FAULTS if fault.name == name)
