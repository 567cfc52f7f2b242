# SPDX-License-Identifier: BSD-3-Clause
"""The settings to compare: stock components and the rendezvous protocols of pml/coop, each with its look in all figures.
coop-figures leaves out settings that do not work on this machine."""

import dataclasses

from coop_ab.settings import Setting


@dataclasses.dataclass(frozen=True)
class Look:
    color: str
    marker: str
    linestyle: str = "-"
    ring: bool = False

    def line(self):
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle, "markersize": 6 if self.ring else 4,
                "linewidth": 1.3, "mfc": "white" if self.ring else self.color, "zorder": 2 if self.ring else 3}


def coop(protocol):
    return Setting(protocol, f"--mca pml coop --mca pml_coop_protocol {protocol}")


SETTINGS = {setting.name: setting for setting in (
    Setting("ob1", "--mca pml ob1 --mca btl vader,self"),
    # By default pml/ucx refuses machines that have none of the network cards on its list.
    Setting("ucx", "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any", {"UCX_TLS": "self,posix,cma"}),
    *map(coop, ("rget", "rput", "send", "coop", "coop_fixed", "coop_coll", "coop_load", "hybrid")))}

LOOKS = {
    "ob1": Look("#555555", "o", "--", True),
    "ucx": Look("#999999", "s", "--", True),
    "rget": Look("#D55E00", "^"),
    "rput": Look("#E69F00", "v"),
    "send": Look("#A89060", "<"),
    "coop": Look("#0072B2", "o"),
    "coop_fixed": Look("#56B4E9", "s"),
    "coop_coll": Look("#009E73", "D"),
    "coop_load": Look("#CC79A7", "P"),
    "hybrid": Look("#000000", "*"),
    "both": Look("#000000", "", ":"),
    "one": Look("#888888", "", ":"),
}
