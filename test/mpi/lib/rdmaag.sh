# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of run; for parts/
# Third-party programs run with coll/rdmaag beside pml/coop, so that the same jobs test both. Its report shows whether it was used.
# Open MPI itself calls MPI_Allgather when it splits a communicator.

# Sets `rdmaag` to arguments of mpirun for the given PML; stock ob1 runs without the component.
with_rdmaag() { # PML
    rdmaag=()
    [ "$1" = ob1 ] || rdmaag=(--mca coll_rdmaag_priority 40 --mca coll_rdmaag_report 1)
}

# Whether a process reports allgathers by coll/rdmaag; prints one such line.
rdmaag_was_used() { # FILE… (or -r FOLDER)
    [ "$pml" = ob1 ] || grep -ahE -m 1 'coll/rdmaag: rank [0-9]+: (doubling|bruck|ring|neighbour) ' "$@"
}
