# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Whether others get their turn during a copy inside a node. Moments are compared: nothing else should keep the cores busy.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# Two ranks on one host, the third on another.
on_two_hosts() {
    timeout -k 10 "${limit:-120}" mpirun -np 3 "${common[@]}" --host v0:2,v1:1 --map-by slot --mca plm_rsh_agent "$here/vcluster/agent" \
        --mca btl vader,tcp,self --mca mpi_yield_when_idle 1 "$@" </dev/null
}

part_turns() {
    local wish
    if [ "$pml" != coop ]; then
        report_skip turns "only pml/coop takes turns"
        return
    fi
    cluster_possible || { report_skip turns "no UTS namespaces here (not root?)"; return; }
    for wish in coop hybrid rput; do
        check "turns.by_$wish" on_two_hosts --mca pml_coop_protocol "$wish" "$bin/turns"
    done
    check turns.none_in_a_copy_that_is_not_cut on_two_hosts --mca pml_coop_protocol rput --mca pml_coop_copy_chunk 64m "$bin/turns" whole
}
