# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Invalid parameters, transports that cannot reach a peer, and the pml that is selected by default.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# refused PARAMETER VALUE RANGE: the job stops in MPI_Init, with one message that names all three.
refused() {
    limit=30 ends_with_an_error launch_and_keep vader 2 --mca "$1" "$2" "$bin/ground" 1 2 || return 1
    ! grep -aE '^RUN|Signal:' "$log.job" || return 1
    [ "$(grep -ac 'Parameter:' "$log.job")" = 1 ] || { echo "not one message"; return 1; }
    grep -a "Parameter: *$1\$" "$log.job" && grep -a "Value: *$2\$" "$log.job" && grep -aF -- "$3" "$log.job"
}

accepted() {
    limit=30 launch_and_keep vader 2 --mca "$1" "$2" "$bin/ground" 1 2
}

# mpirun of 4.1.4 sometimes loses Open MPI's own message, with every pml, and reports that. Only then there is another attempt. Each
# job must end by itself, and not by a signal.
unreachable_peer() {
    local attempt
    for attempt in {1..12}; do
        limit=30 ends_with_an_error launch_and_keep any 2 --mca btl self "$bin/ground" 1 2 || return 1
        ! grep -a 'Signal:' "$log.job" || return 1
        ! grep -aE 'unable to reach each other|at least one MPI process is unreachable' "$log.job" || return 0
        grep -aE 'ORTE_ERROR_LOG: (Data unpack|Out of resource) .*show_help\.c' "$log.job" || { echo "no message, and mpirun has not lost one"; return 1; }
        retried "mpirun lost a message (show_help.c), attempt $attempt"
    done
    return 1
}

# The pml selected without --mca pml, as printed by pml_base_verbose.
chosen_pml() {
    local common=("${common[@]:3}") # without --mca pml …
    limit=30 launch_and_keep vader 2 --mca pml_base_verbose 10 "$bin/ground" 1 2 >&2 || return 1
    sed -n 's/.* selected \([a-z0-9]*\) best priority.*/\1/p' "$log.job" | sort -u
}

# The same pml is selected with and without our components in the search path.
stock_is_chosen() {
    local with without
    with=$(chosen_pml) || return 1
    grep -a 'found loaded component coop' "$log.job" || return 1
    without=$(unset OMPI_MCA_mca_base_component_path && chosen_pml) || return 1
    ! grep -a 'component coop' "$log.job" || return 1
    echo "with: '$with', without: '$without'"
    [ -n "$with" ] && [ "$with" = "$without" ] && [ "$with" != coop ]
}

part_params() {
    check params.unreachable_peer_is_the_usual_error unreachable_peer
    if [ "$pml" != coop ]; then return; fi
    check params.unknown_protocol_is_refused refused pml_coop_protocol bogus "hybrid, rget, rput, send, coop, coop_fixed, coop_coll, coop_load"
    check params.negative_size_is_refused refused pml_coop_eager_limit -1 "64..1073741824 bytes"
    check params.threshold_below_the_header_is_refused refused pml_coop_eager_limit 10 "64..1073741824 bytes"
    check params.depth_of_zero_is_refused refused pml_coop_rdma_depth 0 "1..1024"
    check params.chunk_beyond_the_range_is_refused refused pml_coop_rdma_chunk 1073741825 "4096..1073741824 bytes"
    check params.copy_chunk_below_the_range_is_refused refused pml_coop_copy_chunk 16383 "16384..1073741824 bytes"
    check params.negative_offer_threshold_is_refused refused pml_coop_rtr_min -1 "0..1099511627776 bytes"
    check params.negative_limit_of_the_lane_is_refused refused pml_coop_lane_max -2 "-1..1073741824 bytes"
    check params.limit_of_the_lane_beyond_the_range_is_refused refused pml_coop_lane_max 1073741825 "-1..1073741824 bytes"
    check params.found_limit_of_the_lane_is_accepted accepted pml_coop_lane_max -1
    check params.limit_of_the_lane_of_zero_is_accepted accepted pml_coop_lane_max 0
    check params.unknown_report_level_is_refused refused pml_coop_report 3 "0..2"
    check params.unknown_fault_is_refused refused pml_coop_fault nonsense:1 'unknown fault "nonsense"'
    check params.uncounted_fault_is_refused refused pml_coop_fault busy:zero '"busy:zero"'
    check params.smallest_eager_limit_is_accepted accepted pml_coop_eager_limit 64
    check params.largest_chunk_is_accepted accepted pml_coop_rdma_chunk 1073741824
    check params.stock_pml_is_chosen_when_nobody_asks stock_is_chosen
}
