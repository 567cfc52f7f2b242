# SPDX-License-Identifier: BSD-3-Clause
"""The settings to compare, and the subnet: one rank per virtual host (in `mixed` two on one of them), one rail."""

from coop_ab.settings import Setting

RATE_MB_PER_S = 250
COOP = "--mca pml coop --mca btl coopib,self"

SETTINGS = {setting.name: setting for setting in (
    Setting("off", f"{COOP} --mca pml_coop_async off"),
    Setting("interrupt", f"{COOP} --mca pml_coop_async interrupt"),
    Setting("rput", f"{COOP} --mca pml_coop_protocol rput"),
    Setting("openib", "--mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_warn_default_gid_prefix 0"),
    # By default pml/ucx refuses machines that have none of the network cards on its list.
    Setting("ucx", "--mca pml ucx --mca btl self --mca pml_ucx_tls any --mca pml_ucx_devices any -x UCX_TLS=rc_v,self"))}
COMPARED = ("off", "interrupt", "openib", "ucx")

LABELS = {"off": "pml/coop", "interrupt": "pml/coop, interrupt", "rput": "pml/coop, RDMA write", "openib": "ob1, openib", "ucx": "pml/ucx"}
LOOKS = {
    "off": {"color": "#D55E00", "marker": "^"},
    "interrupt": {"color": "#0072B2", "marker": "o"},
    "rput": {"color": "#E69F00", "marker": "v"},
    "openib": {"color": "#555555", "marker": "o", "mfc": "white", "linestyle": "--"},
    "ucx": {"color": "#999999", "marker": "s", "mfc": "white", "linestyle": "--"},
}

# Each rank on a core of its own, if there are enough, together with the thread that emulates its HCA and the thread for interrupts:
# as on the uniprocessor of the paper's section 5.1, these threads cannot run on an idle core.
PINNED = ["sh", "-c", 'exec taskset -c "$OMPI_COMM_WORLD_RANK" "$@"', "pinned"]
# Preloads the library that measures the time in MPI into the program only, not into other processes that mpirun starts.
PROFILED = ["sh", "-c", 'library=$1; shift; LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}; export LD_PRELOAD; exec "$@"', "profiled"]


def on_subnet(prefix, hosts, slots, options=()):
    """The start of a command on virtual hosts with one rail."""
    return [f"{prefix}/bin/coop-fabric", "run", "--hosts", str(hosts), "--hcas", "1", "--rate", f"{RATE_MB_PER_S}MB/s", "--latency",
            "1.5us", "--virtual-hosts", "--slots", str(slots), *options, "--"]


def command(prefix, ranks, cores, program, subnet_options=(), profiled=False, options=()):
    """A command on the subnet, with {} for the setting's words."""
    start = [*on_subnet(prefix, ranks, 1, subnet_options), "mpirun", "-n", str(ranks), "{}", *options]
    if ranks > cores:
        start += ["--mca", "mpi_yield_when_idle", "1"]
    else:
        start += PINNED
    return start + ([*PROFILED, f"{prefix}/libexec/ompi-coop/coop_wait.so"] if profiled else []) + program
