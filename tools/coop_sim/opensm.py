# SPDX-License-Identifier: BSD-3-Clause
"""Routes of a real subnet manager: runs opensm on ibsim (Debian's packages opensm and ibsim-utils) with the topology of a
simulation, and writes its forwarding tables as a file for the engine's --forwarding."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import time

from coop_ab import files
from coop_ab.errors import BadInput, RunFailed

PRELOAD = "/usr/lib/*/umad2sim/libumad2sim.so"
SECONDS = 600  # a large subnet takes a while


def fat_tree(shape):
    """Nodes and cables, numbered as in the engine (topology.cc): {name: ports}, each port (peer, the peer's port)."""
    match = re.fullmatch(r"(\d+(?:,\d+)*)(?::(\d+(?:,\d+)*))?", shape)
    if not match:
        raise BadInput(f"'{shape}' is not a fat tree such as 12,12:12")
    down = [int(word) for word in match[1].split(",")]
    up = [int(word) for word in match[2].split(",")] if match[2] else []
    if len(up) != len(down) - 1 or 0 in down + up:
        raise BadInput(f"fat tree '{shape}': {len(down)} levels need {len(down) - 1} numbers after ':'")
    levels = len(down)

    def product(values):
        result = 1
        for value in values:
            result *= value
        return result

    counts = [product(down[level:]) * product(up[:max(0, level - 1)]) for level in range(levels + 1)]

    def name(level, index):
        return f"{'h' if level == 0 else 'leaf' if level == 1 else 'spine' if level == levels else f'mid{level}-'}{index}"

    nodes = {name(level, index): [] for level in range(levels + 1) for index in range(counts[level])}
    for level in range(levels):
        equals, parents = product(up[:max(0, level - 1)]), 1 if level == 0 else up[level - 1]
        for index in range(counts[level]):
            subtree, place = index // equals // down[level], index % equals
            for parent in range(parents):
                a, b = name(level, index), name(level + 1, subtree * equals * parents + place + parent * equals)
                nodes[a].append((b, len(nodes[b]) + 1))
                nodes[b].append((a, len(nodes[a])))
    return nodes


def net_file(nodes):
    lines = []
    for name, ports in nodes.items():
        lines.append(f'{"Hca" if name.startswith("h") else "Switch"} {len(ports)} "{name}"')
        lines += [f'[{number}] "{peer}"[{far}]' for number, (peer, far) in enumerate(ports, 1)] + [""]
    return "\n".join(lines)


def programs():
    preload = glob.glob(PRELOAD)
    opensm = shutil.which("opensm") or shutil.which("opensm", path="/usr/sbin:/sbin")
    if not preload or not opensm or not shutil.which("ibsim"):
        raise BadInput("opensm or ibsim is missing: install the packages opensm and ibsim-utils")
    return opensm, preload[0]


def sweep(nodes, lmc, folder, routing_engine):
    """opensm's dump of all forwarding tables."""
    opensm, preload = programs()
    net = os.path.join(folder, "net")
    with open(net, "w", encoding="ascii") as file:
        file.write(net_file(nodes))
    env = os.environ | {"IBSIM_SOCKNAME": f"coop-sim-{os.getpid()}", "SIM_HOST": "h0", "OSM_TMP_DIR": folder, "OSM_CACHE_DIR": folder}
    with open(os.path.join(folder, "ibsim.log"), "wb") as log, \
            subprocess.Popen(["ibsim", "-s", "-N", str(len(nodes) + 8), net], env=env, stdin=subprocess.PIPE, stdout=log, stderr=log) as ibsim:
        try:
            time.sleep(1)
            manager = [opensm, "-o", "-l", str(lmc), "-f", os.path.join(folder, "opensm.log"), "-D", "0x43"]
            manager += ["-R", routing_engine] if routing_engine else []
            done = subprocess.run(manager, env=env | {"LD_PRELOAD": preload}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"opensm did not finish within {SECONDS} s") from None
        finally:
            ibsim.kill()
    dump = os.path.join(folder, "opensm-lfts.dump")
    if not os.path.exists(dump):
        raise RunFailed(f"opensm wrote no tables: {done.stdout.strip()[-300:]}")
    with open(dump, encoding="ascii") as file:
        return file.read()


def to_forwarding(dump, nodes, lmc):
    """Converts opensm's dump to the format of the engine (forwarding_file.h)."""
    lines, base, switch = [], {}, None
    for line in dump.splitlines():
        if head := re.match(r"Unicast lids .* switch .* \('(.*)'\):", line):
            switch = head[1]
        elif (entry := re.match(r"0x([0-9a-f]+) (\d+) # (Channel Adapter|Switch) .*: '(.*)'", line)) and entry[3] != "Switch":
            lid = int(entry[1], 16)
            base[entry[4]] = min(base.get(entry[4], lid), lid)
            lines.append(f"{switch} {lid} {int(entry[2])}")
    hosts = [name for name in nodes if name.startswith("h")]
    missing = [host for host in hosts if host not in base]
    if missing:
        raise RunFailed(f"opensm's tables lack {missing[0]}: LMC {lmc} with {len(hosts)} hosts may not fit the LID space")
    return "\n".join([f"# opensm, LMC {lmc}"] + [f"host {host} {base[host]}" for host in hosts] + lines) + "\n"


def make(shape, lmc, path, routing_engine=None):
    if not 0 <= lmc <= 5:
        raise BadInput(f"--lmc {lmc}: must be from 0 to 5")
    nodes = fat_tree(shape)
    with tempfile.TemporaryDirectory(prefix="coop-sim-") as folder:
        text = to_forwarding(sweep(nodes, lmc, folder, routing_engine), nodes, lmc)
    files.write(text, path)
