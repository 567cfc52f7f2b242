# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Copies inside a node: every wish, offered receives, refusals, a peer that dies, a kernel that denies copies, and whether
# others get their turn meanwhile. Programs: coop/.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# cases NAME ARGUMENT…: the cases of a topic under a name of their own; arguments before -- are mpirun's, then the topic and
# its arguments.
cases_as() {
    local name=$1 for_mpirun=() case
    shift
    while [ "$1" != -- ]; do for_mpirun+=("$1") && shift; done
    local topic=$2 arguments=("${@:3}")
    for case in $("$bin/$topic" --list); do
        check "coop.$name.$case" launch vader 2 "${for_mpirun[@]}" "$bin/$topic" --only "$case" "${arguments[@]}"
    done
}

part_coop() {
    local wish
    if [ "$pml" != coop ]; then
        report_skip coop "only pml/coop has it"
        return
    fi
    for wish in hybrid coop coop_fixed coop_coll coop_load rget rput send; do
        check "coop.rows_by_$wish" launch vader 2 --mca pml_coop_protocol "$wish" "$bin/rows" "$wish"
    done
}
