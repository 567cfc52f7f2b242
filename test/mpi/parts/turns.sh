# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Other messages make progress during a copy inside a node. Compares times: nothing else should keep the cores busy.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# turns_with [MPIRUN ARGUMENT…] -- [ARGUMENT…]: two ranks on one host, the third on another. The third does not yield while it waits,
# because a rank that shares its core would then keep the core for some milliseconds.
turns_with() {
    local for_mpirun=()
    while [ "$1" != -- ]; do for_mpirun+=("$1"); shift; done
    shift
    # shellcheck disable=SC2016 # expanded where a rank starts
    time_limit "${limit:-120}" mpirun -np 3 "${common[@]}" --host v0:2,v1:1 --map-by slot --mca plm_rsh_agent "$here/vcluster/agent" \
        --mca btl vader,tcp,self --mca mpi_yield_when_idle 1 "${for_mpirun[@]}" \
        sh -c '[ "$OMPI_COMM_WORLD_RANK" != 2 ] || export OMPI_MCA_mpi_yield_when_idle=0; exec "$@"' sh "$bin/turns" "$@" </dev/null
}

part_turns() {
    local wish
    if [ "$pml" != coop ]; then
        report_skip turns "only pml/coop takes turns"
        return
    fi
    cluster_possible || { report_skip turns "$no_cluster" 4; return; }
    for wish in coop hybrid rput; do
        check "turns.by_$wish" turns_with --mca pml_coop_protocol "$wish" --
    done
    check turns.none_in_a_copy_that_is_not_cut turns_with --mca pml_coop_protocol rput --mca pml_coop_copy_chunk 64m -- whole
}
