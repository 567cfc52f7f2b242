# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# MPI_Allgather and MPI_Allgatherv by coll/rdmaag (programs: coll/): every algorithm over several transports and under both PMLs,
# shared memory of a node, refused operations, damaged packets, a killed rank, invalid and differing parameters.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# gathers GROUND NP PML ARGUMENT…: launch, with coll/rdmaag and the PML, and with limits that the programs must know.
gathers() {
    local common=(--mca pml "$3" "${common[@]:3}" --mca coll_rdmaag_priority 40 --mca coll_rdmaag_short_max "${short_max:-4096}"
        --mca coll_rdmaag_ring_min "${ring_min:-65536}" --mca coll_rdmaag_node "${node:-0}" --mca coll_rdmaag_node_slot "${node_slot:-1048576}"
        --mca coll_rdmaag_tune "${tune:-0}")
    ${launch:-launch} "$1" "$2" "${@:4}"
}
# The same, with the output in $log.job.
gathers_and_keep() { launch=launch_and_keep gathers "$@"; }

# gather_cases GROUND NP PML PROGRAM ARGUMENT…: all cases of a program.
gather_cases() {
    local ground=$1 np=$2 of_pml=$3 of_program=$4 arguments=("${@:5}")
    run_topic "allgather${node:+.node}.$ground.$of_pml.$of_program" "$bin/allgather_$of_program" gather_on_ground
}
gather_on_ground() { gathers "$ground" "$np" "$of_pml" "$bin/allgather_$of_program" "$@" "${arguments[@]}"; }

# Words of mpirun, followed by PARAMETER VALUE COMMAND…: the parameter is set in rank 1 only.
# shellcheck disable=SC2016 # expanded where a rank starts
of_one_rank=(sh -c '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || export "OMPI_MCA_coll_rdmaag_$1=$2"; shift 2; exec "$@"' sh)

allgather_algorithms() {
    local algorithm of_pml=ob1 ground=vader np
    for algorithm in doubling bruck ring neighbour; do
        np=5
        [ $algorithm = bruck ] || [ $algorithm = ring ] || np=4
        for ground in vader tcp; do
            if [ $of_pml = ob1 ]; then of_pml=coop; else of_pml=ob1; fi
            check "allgather.$ground.$of_pml.by_$algorithm" gathers $ground $np $of_pml --mca coll_rdmaag_algorithm $algorithm "$bin/allgather_data" puts \
                --only blocks_of_every_size
        done
        check "allgather.vader.$of_pml.unequal_by_$algorithm" gathers vader $np $of_pml --mca coll_rdmaag_algorithm $algorithm "$bin/allgather_data" puts \
            --only blocks_of_unequal_length
        if [ $of_pml = ob1 ]; then of_pml=coop; else of_pml=ob1; fi
    done
    short_max=64 check allgather.short_steps_are_few gathers vader 5 coop "$bin/allgather_data" puts --only blocks_of_every_size
    short_max=32768 check allgather.short_steps_are_long gathers tcp 5 ob1 "$bin/allgather_data" puts --only blocks_of_every_size
    ring_min=0 check allgather.every_result_by_ring gathers vader 5 ob1 "$bin/allgather_data" puts --only blocks_of_every_size
    check_on_cluster allgather.cluster.blocks_of_every_size gathers cluster 6 coop "$bin/allgather_data" puts --only blocks_of_every_size
    check_on_cluster allgather.cluster.blocks_of_unequal_length gathers cluster 6 ob1 "$bin/allgather_data" puts --only blocks_of_unequal_length
}

allgather_faults() {
    local fault
    for fault in put:1 put:3 put_busy:2 busy:3 alloc:2 sendi:1 sendi:1,alloc:3,busy:5,put:3,put_busy:2; do
        check "allgather.faults.$fault" gathers vader 3 coop --mca coll_rdmaag_fault "$fault" "$bin/allgather_data" \
            "$([ "$fault" = put:1 ] && echo packets || echo any)" --only blocks_of_every_size
        [ "$fault" = put:3 ] || [ "$fault" = alloc:2 ] || rarely check "allgather.faults.of_one_rank.$fault" gathers tcp 3 ob1 "${of_one_rank[@]}" fault "$fault" "$bin/allgather_data" \
            --only blocks_of_every_size
    done
    for fault in put:1 put:3,put_busy:2 sendi:1,alloc:3,busy:5; do
        check "allgather.faults.nonblocking.$fault" gathers vader 4 coop --mca coll_rdmaag_fault "$fault" "$bin/allgather_nonblocking"
        rarely check "allgather.faults.of_one_rank.nonblocking.$fault" gathers tcp 3 ob1 "${of_one_rank[@]}" fault "$fault" "$bin/allgather_nonblocking"
    done
}

# The job must end by itself, without a crash, and name the sender and the wrong field.
damaged_packet_is_diagnosed() { # FAULT
    limit=30 ends_with_an_error gathers_and_keep vader 3 coop --mca coll_rdmaag_fault "$1" "$bin/allgather_data" --only blocks_of_every_size || return 1
    ! grep -aE 'Signal:|signal [0-9]+ \(|HANG|CHECK failed|AddressSanitizer|runtime error' "$log.job" || return 1
    grep -a 'coll/rdmaag: a packet of an allgather is damaged' "$log.job" && grep -aE '  Sender: *rank [0-9]+' "$log.job" &&
        grep -aE '  Wrong: *[a-z]' "$log.job"
}

allgather_damaged() {
    local fault
    # =2: the kind; =23: the bytes that follow an announcement; =12: the number of the call.
    for fault in corrupt_match@2 corrupt_match@2=2 corrupt_rts@1 corrupt_rts@1=2 corrupt_rts@1=23 corrupt_frag@1,put:1 \
        corrupt_frag@1=12,put:1 corrupt_fin@1 corrupt_fin@1=39; do
        check "allgather.damaged.$fault" damaged_packet_is_diagnosed "$fault"
    done
}

# Kills a rank between calls that follow each other. The job must end soon.
killed_rank_ends_the_job() { # GROUND PML [ARGUMENT of the program]
    local status=0 start=$SECONDS
    limit=60 gathers_and_keep "$1" 3 "$2" "$bin/allgather_together" --only a_rank_is_killed killed "${@:3}" || status=$?
    echo "ended after $((SECONDS - start)) s with status $status"
    is_status_of_an_error $status 9 && [ $((SECONDS - start)) -le 20 ] && grep -a '^KILLED' "$log.job" &&
        ! grep -aE 'Signal: |Segmentation|HANG|CHECK failed' "$log.job"
}

# --- shared memory of a node ----------------------------------------------------------------------------------------

# by_node NP ARGUMENT…: gathers through shared memory; blocks of a few KiB are long.
by_node() { node=2 node_slot=3000 gathers vader "$1" coop "${@:2}"; }
# A program that does not keep MPI_T open prints the report. WORD OF mpirun…
by_node_and_report() {
    launch=launch_and_keep by_node 3 --mca coll_rdmaag_report 1 "$@" "$prefix/libexec/ompi-coop/coop_allgather" -m 8:16K -i 10 -b 1 -d
}

# The kernel denies copies to WHO (all, or a rank).
node_with_copies_denied() { # WHO ARGUMENT…
    by_node 4 "$bin/deny_copies" "$1" "$bin/allgather_data" node "${@:2}" --only blocks_of_every_size
}

# Memory cannot be shared: all processes use the transports, and the report says so.
node_without_memory() { # WORD OF mpirun…
    by_node 3 "$@" "$bin/allgather_data" --only blocks_of_unequal_length && by_node_and_report "$@" || return 1
    [ "$(grep -ac ' node_refused 1;' "$log.job")" = 3 ] && ! grep -aE ': node [0-9]' "$log.job"
}

node_is_reported() {
    by_node_and_report || return 1
    [ "$(grep -acE 'coll/rdmaag: rank [0-2]: node [0-9]+;' "$log.job")" = 3 ]
}

# Files of other jobs may come and go: those of tests, and of btl/vader.
foreign_files() { find /dev/shm -mindepth 1 -maxdepth 1 ! -name 'ct.*' ! -name '*t[0-9]*-*' ! -name 'vader_segment*'; }
node_of_a_killed_rank_leaves_nothing() {
    local before
    before=$(foreign_files)
    node=1 killed_rank_ends_the_job vader coop node && [ "$(foreign_files)" = "$before" ]
}

by_node_with_long_slots() { node=1 gathers tcp 3 ob1 "$bin/allgather_data" node --only blocks_of_every_size; }

# by_hierarchy NP PML ARGUMENT…: on three virtual hosts.
by_hierarchy() { node=2 node_slot=${node_slot:-3000} gathers cluster "$1" "$2" "${@:3}"; }

allgather_hierarchy() {
    local program="$bin/allgather_data"
    check_on_cluster allgather.hierarchy.by_node.every_size by_hierarchy 7 coop "$program" node --only blocks_of_every_size
    check_on_cluster allgather.hierarchy.by_slot.every_size by_hierarchy 9 ob1 --map-by slot "$program" node --only blocks_of_every_size
    rarely check_on_cluster allgather.hierarchy.by_slot.in_place by_hierarchy 6 coop --map-by slot "$program" node --only blocks_in_place
    check_on_cluster allgather.hierarchy.by_node.unequal by_hierarchy 9 ob1 "$program" node --only blocks_of_unequal_length
    check_on_cluster allgather.hierarchy.by_slot.unequal by_hierarchy 6 coop --map-by slot "$program" node --only blocks_of_unequal_length
    rarely check_on_cluster allgather.hierarchy.empty_blocks by_hierarchy 5 coop "$program" node --only one_block_all_but_one_or_all_blocks_are_empty
    check_on_cluster allgather.hierarchy.types by_hierarchy 5 ob1 "$program" node --only ranks_use_different_types_of_equal_signature
    rarely check_on_cluster allgather.hierarchy.shuffled by_hierarchy 9 coop "$program" node shuffled --only blocks_of_unequal_length
    check_on_cluster allgather.hierarchy.one_rank_late by_hierarchy 7 coop "$bin/allgather_together" node --only calls_in_a_row_with_one_rank_late
    rarely check_on_cluster allgather.hierarchy.back_to_back by_hierarchy 6 ob1 "$bin/allgather_together" node --only calls_back_to_back
    check_on_cluster allgather.hierarchy.threads by_hierarchy 4 coop "$bin/allgather_threads" node
    check_on_cluster allgather.hierarchy.faults by_hierarchy 6 coop --mca coll_rdmaag_fault get:2,put:3,sendi:3,busy:5 "$program" node --only blocks_of_every_size
    node=1 check_on_cluster allgather.hierarchy.switched_off gathers cluster 6 coop "$program" puts --only blocks_of_unequal_length
}

allgather_node_quickly() {
    node=1 node_slot=3000 gather_cases vader 4 coop together node direct
    check allgather.node.two_processes by_node 2 "$bin/allgather_data" node direct --only blocks_of_every_size
    check allgather.node.copies_refused_now_and_then by_node 3 --mca coll_rdmaag_fault get:3 "$bin/allgather_data" node --only blocks_of_unequal_length
}

allgather_node() {
    local status=0
    node=1 node_slot=3000 gather_cases vader "$most" coop data node direct
    node=1 node_slot=3000 gather_cases tcp 3 ob1 threads node
    allgather_node_quickly
    check allgather.node.one_of_many_is_late by_node "$most" "$bin/allgather_together" node direct --only calls_in_a_row_with_one_rank_late
    check allgather.node.long_slots by_node_with_long_slots
    check allgather.node.reported node_is_reported
    check allgather.node.asked_for by_node 3 --mca coll_rdmaag_algorithm node "$bin/allgather_data" node --only blocks_in_place
    check allgather.node.not_if_another_algorithm_is_asked_for by_node 3 --mca coll_rdmaag_algorithm ring "$bin/allgather_data" puts --only blocks_in_place
    check allgather.node.killed_rank_leaves_nothing node_of_a_killed_rank_leaves_nothing
    "$bin/deny_copies" all true || status=$?
    if [ $status = 77 ]; then
        report_skip allgather.node.denied "no seccomp here" 2
    else
        check allgather.node.denied.all node_with_copies_denied all chunks
        check allgather.node.denied.of_one_rank node_with_copies_denied 1
    fi
    check allgather.node.copies_refused by_node 4 --mca coll_rdmaag_fault get:1 "$bin/allgather_data" node chunks --only blocks_of_every_size
    check allgather.node.copies_refused_in_one_rank by_node 4 "${of_one_rank[@]}" fault get:2 "$bin/allgather_data" node --only blocks_of_unequal_length
    check allgather.node.no_memory node_without_memory --mca coll_rdmaag_fault register:1
    check allgather.node.no_memory_in_one_rank node_without_memory "${of_one_rank[@]}" fault register:1
    [ -n "$san" ] || check allgather.node.no_memfd node_without_memory -x LD_PRELOAD="$bin/no_memfd.so" -x NO_MEMFD=none
    node=1 left_to_others another_node_slot_is_left_to_others parameters_differ node_slot 5000
}

# The job stops in MPI_Init, with one message that names the parameter, the value and what is allowed.
allgather_refuses() { # PARAMETER VALUE ALLOWED
    limit=30 ends_with_an_error launch_and_keep vader 2 --mca coll_rdmaag_priority 40 --mca "coll_rdmaag_$1" "$2" "$bin/ground" 1 2 || return 1
    ! grep -aE '^RUN|Signal:' "$log.job" || return 1
    [ "$(grep -ac 'Parameter:' "$log.job")" = 1 ] || { echo "not one message"; return 1; }
    grep -a "Parameter: *coll_rdmaag_$1\$" "$log.job" && grep -a "Value: *$2\$" "$log.job" && grep -aF -- "$3" "$log.job"
}

# left_to_others NAME WHY PARAMETER VALUE: rank 1 has another value of the parameter.
left_to_others() {
    check "allgather.params.$1" gathers vader 4 coop "${of_one_rank[@]}" "$3" "$4" "$bin/allgather_data" "left=$2" --only blocks_of_unequal_length
}

allgather_params() {
    check allgather.params.unknown_algorithm_is_refused allgather_refuses algorithm bogus "auto, doubling, bruck, ring, neighbour, node"
    check allgather.params.short_max_below_the_range_is_refused allgather_refuses short_max 63 "64..65536 bytes"
    check allgather.params.short_max_beyond_the_range_is_refused allgather_refuses short_max 65537 "64..65536 bytes"
    check allgather.params.negative_ring_min_is_refused allgather_refuses ring_min -1 "0..1099511627776 bytes"
    check allgather.params.node_slot_below_the_range_is_refused allgather_refuses node_slot 1023 "1024..16777216 bytes"
    check allgather.params.unknown_node_is_refused allgather_refuses node 3 "0..2"
    check allgather.params.report_level_is_refused allgather_refuses report 3 "0..2"
    check allgather.params.unknown_row_is_refused allgather_refuses row ring "auto, am, buffer"
    check allgather.params.memory_max_beyond_the_range_is_refused allgather_refuses memory_max 1073741825 "0..1073741824 bytes"
    check allgather.params.unknown_fault_is_refused allgather_refuses fault nonsense:1 'unknown fault "nonsense"'
    left_to_others another_algorithm_is_left_to_others parameters_differ algorithm ring
    check allgather.params.too_many_trials_are_refused allgather_refuses tune 11 "0..10"
    left_to_others another_tune_is_left_to_others parameters_differ tune 3
    left_to_others another_ring_min_is_left_to_others parameters_differ ring_min 5000
    check allgather.params.the_smallest_short_max_is_taken gathers vader 4 coop "${of_one_rank[@]}" short_max 100 "$bin/allgather_data" puts \
        --only blocks_of_unequal_length
    check allgather.params.not_used_unless_asked launch vader 2 "$bin/allgather_together" --only nothing_is_done_here_unless_all_ask unasked
    check allgather.params.not_used_unless_all_ask gathers vader 4 coop "${of_one_rank[@]}" priority 0 "$bin/allgather_together" \
        --only nothing_is_done_here_unless_all_ask unasked
}

# The first calls try several ways, and the fastest is taken.
allgather_tuning() {
    local program=$bin/allgather_tuning
    tune=5 check allgather.tuning.vader gathers vader 4 coop "$program"
    tune=4 check allgather.tuning.report_tells_the_choice report_tells_the_choice
    everywhere || return 0
    tune=5 check allgather.tuning.one_rank_is_late gathers vader 3 coop "$program" late
    tune=4 check allgather.tuning.slow_calls_are_left_to_others gathers vader 4 coop --mca coll_rdmaag_fault slow:1 "$program" slow
    [ "$long" = yes ] || return 0
    tune=3 check allgather.tuning.blocks_of_every_size gathers vader 4 coop "$bin/allgather_data" --only blocks_of_every_size
    tune=4 check allgather.tuning.calls_that_are_slow_in_one_rank gathers tcp 3 ob1 "${of_one_rank[@]}" fault slow:1 "$program" slow late
    tune=10 check allgather.tuning.tcp gathers tcp 5 ob1 "$program"
    tune=2 check allgather.tuning.data gathers vader 6 ob1 "$bin/allgather_data"
    tune=3 check allgather.tuning.together gathers vader 3 coop "$bin/allgather_together" --from calls_back_to_back
    tune=3 check_on_cluster allgather.tuning.cluster gathers cluster 6 coop "$program"
}

# Rank 0 prints the times of the trials, each rank its calls by reason.
report_tells_the_choice() {
    gathers_and_keep vader 3 coop --mca coll_rdmaag_report 2 --mca coll_rdmaag_fault slow:1 "$bin/allgather_tuning" slow \
        --only all_ranks_take_the_same_way_and_one_for_good || return 1
    [ "$(grep -acE 'coll/rdmaag: rank [0-2]:.* chosen: tuning [0-9]+;.* left to others: measured-slower [0-9]+;' "$log.job")" = 3 ] || return 1
    [ "$(grep -acE '^ +others +<= 64 B .* too-few-calls$' "$log.job")" = 3 ] || return 1
    [ "$(grep -acE '^ +<= 256 KiB .* measured-slower$' "$log.job")" = 3 ] || return 1
    [ "$(grep -ac 'coll/rdmaag: rank 0: allgather, 3 processes, blocks of 64.0 KiB and more: .* chosen: others$' "$log.job")" = 1 ]
}

# Calls of all kinds on several communicators, in a random order.
allgather_soak() {
    local seed
    tune=3 check allgather.soak.vader gathers vader 4 coop "$bin/allgather_soak" ${san:+calls=300}
    [ "$long" = yes ] || return 0
    node=2 tune=3 check allgather.soak.node gathers vader 5 ob1 "$bin/allgather_soak" seed=2
    node=2 tune=3 check_on_cluster allgather.soak.cluster gathers cluster 6 coop "$bin/allgather_soak" seed=3
    for seed in 11 12 13 14; do
        limit=3000 node=$((seed % 2 * 2)) tune=3 check allgather.soak.long_$seed gathers vader 4 coop "$bin/allgather_soak" calls=300000 seed=$seed
    done
    local node
    for node in 0 2; do
        limit=3000 check allgather.soak.communicators_$node gathers vader 2 coop "$bin/allgather_together" rounds=100000 \
            "$([ $node = 0 ] || echo node)" --only communicators_come_and_go_without_a_trace
    done
}

part_allgather() {
    if [ "$pml" != coop ]; then
        report_skip allgather "coll/rdmaag is installed with pml/coop"
        return
    fi
    gather_cases vader 3 coop threads
    gather_cases vader 4 coop together puts
    gather_cases vader 4 coop nonblocking
    allgather_tuning
    allgather_soak
    if ! everywhere; then # the same code on fewer grounds
        gather_cases vader 5 ob1 data puts
        allgather_node_quickly
        check allgather.faults.of_one_rank gathers vader 3 coop "${of_one_rank[@]}" fault sendi:1,alloc:3,busy:5,put:3,put_busy:2 "$bin/allgather_data" \
            --only blocks_of_every_size
        check allgather.damaged.corrupt_rts@1=23 damaged_packet_is_diagnosed corrupt_rts@1=23
        check_on_cluster allgather.hierarchy.by_node.unequal by_hierarchy 7 coop "$bin/allgather_data" node --only blocks_of_unequal_length
        check allgather.subnet.coop.buffers gathers subnet 3 coop --mca coll_rdmaag_row buffer "$bin/allgather_data" puts buffers
        return
    fi
    local most=5 # processes
    [ "$long" = no ] || most=9
    gather_cases vader "$most" coop data puts
    [ "$long" = no ] || gather_cases tcp 7 ob1 data puts
    rarely gather_cases tcp 4 ob1 together puts
    rarely gather_cases tcp 3 ob1 threads
    gather_cases tcp 5 ob1 nonblocking
    check_on_cluster allgather.cluster.nonblocking gathers cluster 6 coop "$bin/allgather_nonblocking"
    check allgather.notices_do_not_overtake_the_data gathers tcp 2 ob1 --mca btl_tcp_links 2 --mca btl_tcp_bandwidth_lo:0 100 \
        --mca btl_tcp_bandwidth_lo:1 10000 "$bin/allgather_together" --only notices_do_not_overtake_the_data puts links
    allgather_algorithms
    allgather_node
    allgather_hierarchy
    allgather_params
    allgather_faults
    allgather_damaged
    check allgather.killed_rank_ends_the_job.vader killed_rank_ends_the_job vader coop
    check allgather.killed_rank_ends_the_job.tcp killed_rank_ends_the_job tcp ob1
}
