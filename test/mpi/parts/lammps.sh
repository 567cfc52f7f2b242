# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# LAMMPS, from Debian's package lammps: a melting crystal must have the same energies, pressures and atoms as under stock ob1,
# to the last digit. Two runs under ob1 agree as well (--pml ob1 compares two such runs): with the same number of ranks, the
# sums do not depend on the arrival of messages. A relative error of 1e-11 in a received force shows. Errors in some bytes do
# not: last bits are rounded away, and some atoms sent near the border have no partner. The storm checks every byte. Only the run
# with moving borders calls MPI_Allgather.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# melt PML FOLDER GROUND RANKS CELLS [BALANCE]: leaves FOLDER/energies and FOLDER/atoms.
melt() {
    local common=(--mca pml "$1" "${common[@]:3}") arguments=()
    with_rdmaag "$1"
    [ "$1" = ob1 ] || arguments=(--mca pml_coop_report 1 "${rdmaag[@]}")
    rm -rf "$2" && mkdir -p "$2" || return 1
    limit=100 launch_and_keep "$3" "$4" -x OMP_NUM_THREADS=1 "${arguments[@]}" lmp -in "$here/foreign/melt.lmp" \
        -log "$2/log" -var cells "$5" -var steps 100 -var balance "${6:-0}" -var out "$2/atoms" || return 1
    sed -n '/^ *Step /,/^Loop time/p' "$2/log" | grep -v '^Loop time' >"$2/energies"
    # A heading, and every tenth step from 0 to 100.
    [ "$(wc -l <"$2/energies")" = 12 ] && [ "$(wc -l <"$2/atoms")" = $((9 + 4 * $5 ** 3)) ]
}

# melts_as_under_stock GROUND RANKS CELLS
melts_as_under_stock() {
    local folder=$results/lammps/$1.$2
    (unset OMPI_MCA_mca_base_component_path && melt ob1 "$folder/stock" "$@") || return 1
    melt "$pml" "$folder/tested" "$@" || return 1
    diff "$folder/stock/energies" "$folder/tested/energies" || return 1
    cmp "$folder/stock/atoms" "$folder/tested/atoms" || return 1
    # Messages with a rendezvous must have been sent.
    [ "$pml" = ob1 ] || grep -aE '^  (rget|rput|coop|rtr|send) ' "$log.job"
}

# The same with moving borders, which are gathered by coll/rdmaag. These ranks add up forces in the order in which they arrive, so
# the energies agree only nearly.
borders_move_as_under_stock() { # GROUND RANKS CELLS
    local folder=$results/lammps/$1.$2.borders
    (unset OMPI_MCA_mca_base_component_path && melt ob1 "$folder/stock" "$@" 1) && melt "$pml" "$folder/tested" "$@" 1 || return 1
    rdmaag_was_used "$log.job" || return 1
    paste "$folder/stock/energies" "$folder/tested/energies"
    paste "$folder/stock/energies" "$folder/tested/energies" | awk 'NR > 1 {
        for (i = 1; i <= NF / 2; ++i) { d = $i - $(i + NF / 2); if (d * d > 1e-20 * $i * $i) exit wrong = 1 }
    } END { exit wrong || NR < 12 }'
}

part_lammps() {
    # shellcheck source=test/mpi/lib/rdmaag.sh
    . "$here/lib/rdmaag.sh"
    need_debian lammps || return
    check lammps.two_ranks_over_vader melts_as_under_stock vader 2 16
    check lammps.four_ranks_over_vader melts_as_under_stock vader 4 18
    check lammps.four_ranks_whose_borders_move borders_move_as_under_stock vader 4 10
    check_on_cluster lammps.over_cluster melts_as_under_stock cluster 6 12
}
