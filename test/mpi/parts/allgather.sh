# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# MPI_Allgather and MPI_Allgatherv by coll/rdmaag (programs: coll/): every algorithm over several transports and under both PMLs,
# refused operations, damaged packets, a killed rank, invalid and differing parameters.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# gathers GROUND NP PML ARGUMENT…: launch, with coll/rdmaag and the PML, and with limits that the programs must know.
gathers() {
    local common=(--mca pml "$3" "${common[@]:3}" --mca coll_rdmaag_priority 40 --mca coll_rdmaag_short_max "${short_max:-4096}"
        --mca coll_rdmaag_ring_min "${ring_min:-65536}")
    ${launch:-launch} "$1" "$2" "${@:4}"
}
# The same, with the output in $log.job.
gathers_and_keep() { launch=launch_and_keep gathers "$@"; }

# gather_cases GROUND NP PML PROGRAM ARGUMENT…: all cases of a program.
gather_cases() {
    local ground=$1 np=$2 of_pml=$3 of_program=$4 arguments=("${@:5}")
    run_topic "allgather.$ground.$of_pml.$of_program" "$bin/allgather_$of_program" gather_on_ground
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
        [ "$fault" = put:3 ] || [ "$fault" = alloc:2 ] || check "allgather.faults.of_one_rank.$fault" gathers tcp 3 ob1 "${of_one_rank[@]}" fault "$fault" "$bin/allgather_data" \
            --only blocks_of_every_size
    done
    for fault in put:1 put:3,put_busy:2 sendi:1,alloc:3,busy:5; do
        check "allgather.faults.nonblocking.$fault" gathers vader 4 coop --mca coll_rdmaag_fault "$fault" "$bin/allgather_nonblocking"
        check "allgather.faults.of_one_rank.nonblocking.$fault" gathers tcp 3 ob1 "${of_one_rank[@]}" fault "$fault" "$bin/allgather_nonblocking"
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
killed_rank_ends_the_job() { # GROUND PML
    local status=0 start=$SECONDS
    limit=60 gathers_and_keep "$1" 3 "$2" "$bin/allgather_together" --only a_rank_is_killed killed || status=$?
    echo "ended after $((SECONDS - start)) s with status $status"
    is_status_of_an_error $status 9 && [ $((SECONDS - start)) -le 20 ] && grep -a '^KILLED' "$log.job" &&
        ! grep -aE 'Signal: |Segmentation|HANG|CHECK failed' "$log.job"
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
    check allgather.params.unknown_algorithm_is_refused allgather_refuses algorithm bogus "auto, doubling, bruck, ring, neighbour"
    check allgather.params.short_max_below_the_range_is_refused allgather_refuses short_max 63 "64..65536 bytes"
    check allgather.params.short_max_beyond_the_range_is_refused allgather_refuses short_max 65537 "64..65536 bytes"
    check allgather.params.negative_ring_min_is_refused allgather_refuses ring_min -1 "0..1099511627776 bytes"
    check allgather.params.report_level_is_refused allgather_refuses report 2 "0..1"
    check allgather.params.unknown_fault_is_refused allgather_refuses fault nonsense:1 'unknown fault "nonsense"'
    left_to_others another_algorithm_is_left_to_others parameters_differ algorithm ring
    left_to_others another_ring_min_is_left_to_others parameters_differ ring_min 5000
    check allgather.params.the_smallest_short_max_is_taken gathers vader 4 coop "${of_one_rank[@]}" short_max 100 "$bin/allgather_data" puts \
        --only blocks_of_unequal_length
    check allgather.params.not_used_unless_asked launch vader 2 "$bin/allgather_together" --only nothing_is_done_here_unless_all_ask unasked
    check allgather.params.not_used_unless_all_ask gathers vader 4 coop "${of_one_rank[@]}" priority 0 "$bin/allgather_together" \
        --only nothing_is_done_here_unless_all_ask unasked
}

part_allgather() {
    if [ "$pml" != coop ]; then
        report_skip allgather "coll/rdmaag is installed with pml/coop"
        return
    fi
    gather_cases vader 3 coop threads
    gather_cases vader 4 coop together puts
    gather_cases vader 4 coop nonblocking
    if ! everywhere; then # the same code on fewer grounds
        gather_cases vader 5 ob1 data puts
        check allgather.faults.of_one_rank gathers vader 3 coop "${of_one_rank[@]}" fault sendi:1,alloc:3,busy:5,put:3,put_busy:2 "$bin/allgather_data" \
            --only blocks_of_every_size
        check allgather.damaged.corrupt_rts@1=23 damaged_packet_is_diagnosed corrupt_rts@1=23
        return
    fi
    gather_cases vader 9 coop data puts
    gather_cases tcp 7 ob1 data puts
    gather_cases tcp 4 ob1 together puts
    gather_cases tcp 3 ob1 threads
    gather_cases tcp 5 ob1 nonblocking
    check_on_cluster allgather.cluster.nonblocking gathers cluster 6 coop "$bin/allgather_nonblocking"
    check allgather.notices_do_not_overtake_the_data gathers tcp 2 ob1 --mca btl_tcp_links 2 --mca btl_tcp_bandwidth_lo:0 100 \
        --mca btl_tcp_bandwidth_lo:1 10000 "$bin/allgather_together" --only notices_do_not_overtake_the_data puts links
    allgather_algorithms
    allgather_params
    allgather_faults
    allgather_damaged
    check allgather.killed_rank_ends_the_job.vader killed_rank_ends_the_job vader coop
    check allgather.killed_rank_ends_the_job.tcp killed_rank_ends_the_job tcp ob1
}
