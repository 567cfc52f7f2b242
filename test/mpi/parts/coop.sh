# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Copies inside a node: every wish, offered receives, refusals, a peer that dies, a kernel that denies copies, and whether
# others get their turn meanwhile. Programs: coop/.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

rows() { # NAME WISH ARGUMENT-OF-MPIRUN… -- ARGUMENT…
    local name=$1 wish=$2 for_mpirun=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do for_mpirun+=("$1") && shift; done
    [ $# = 0 ] || shift
    check "coop.$name" launch vader 2 "${for_mpirun[@]}" --mca pml_coop_protocol "$wish" "$bin/rows" "$wish" "$@"
}

part_coop() {
    local wish
    if [ "$pml" != coop ]; then
        report_skip coop "only pml/coop has it"
        return
    fi
    for wish in hybrid coop coop_fixed coop_coll coop_load rget rput send; do
        rows "rows_by_$wish" "$wish"
    done
    check coop.hints hints
    part_coop_offers
    part_coop_faults
}

# The value that is not allowed is named, by each process once.
hints() {
    launch vader 2 "$bin/hints" >"$results/log/coop.hints.out" 2>&1 || { cat "$results/log/coop.hints.out"; return 1; }
    cat "$results/log/coop.hints.out"
    grep -q 'pml_coop_protocol' "$results/log/coop.hints.out" && grep -q 'bogus' "$results/log/coop.hints.out"
}

part_coop_offers() {
    # shellcheck source=test/mpi/parts/semantics.sh
    . "$here/parts/semantics.sh"
    run_cases vader 2 offers
}

part_coop_faults() {
    local wish fault
    for wish in coop hybrid; do
        for fault in get:1 put:1 get_busy:2 put_busy:2 alloc:3 busy:3 get:3,put:4 get_busy:2,put_busy:3,get:7,put:5,busy:5,alloc:7; do
            rows "rows_by_${wish}_under_$fault" "$wish" --mca pml_coop_fault "$fault" -- refused
        done
        rows "both_refused_by_$wish" "$wish" --mca pml_coop_fault get:1,put:1 -- both
    done
    check coop.load_after_a_copy_that_both_refused launch vader 2 --mca pml_coop_protocol coop_load --mca pml_coop_fault get@1,put@1 "$bin/load" coop
    check coop.load_after_a_get_that_was_refused launch vader 2 --mca pml_coop_protocol coop_load --mca pml_coop_fault get@1 "$bin/load" coop_load
}
