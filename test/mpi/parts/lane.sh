# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Messages through the lane (pml_coop_lane): its own cases, MPI's guarantees and the storm over it, refused operations, a peer
# that dies, and processes that cannot share memory. Programs: coop/, semantics/ and storm/.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# Every process uses the lane from its first message on.
laned=(--mca pml_coop_lane 1 --mca pml_coop_lane_after 0)

lane_cases() { # NP TOPIC ARGUMENT-OF-MPIRUN… -- ARGUMENT…
    local np=$1 topic=$2 for_mpirun=() arguments
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do for_mpirun+=("$1") && shift; done
    [ $# = 0 ] || shift
    arguments=("$@")
    run_topic "lane.$topic" "$bin/$topic" run_on_lane
}
run_on_lane() { launch vader "$np" "${laned[@]}" "${for_mpirun[@]}" "$bin/$topic" "$@" "${arguments[@]}"; }
lane_job() { launch vader "$1" "${laned[@]}" "${@:2}"; } # NP ARGUMENT…
lane_storm() { # NAME NP MESSAGES ARGUMENT-OF-MPIRUN… -- ARGUMENT…
    local name=$1 np=$2 messages=$3
    shift 3
    storm "lane.storm_$name" vader "$np" "$messages" "${laned[@]}" "$@"
}

part_lane() {
    local topic protocol only
    # The cases know this border. Those that give another one are not affected.
    local -x OMPI_MCA_pml_coop_lane_max=131072
    if [ "$pml" != coop ]; then
        report_skip lane "only pml/coop has it"
        return
    fi
    # shellcheck source=test/mpi/parts/storm.sh
    . "$here/parts/storm.sh"
    # shellcheck source=test/mpi/parts/coop.sh
    . "$here/parts/coop.sh"
    lane_cases 2 lane
    check lane.cases_among_threads lane_job 2 "$bin/lane" --multiple
    check lane.cases_of_a_program_with_threads_of_which_one_calls lane_job 2 "$bin/lane" --funneled
    lane_cases 2 answers
    check lane.answers_among_threads lane_job 2 "$bin/answers" --multiple
    # The memory of a slot is refused.
    check lane.answers_of_which_one_side_has_a_slot launch vader 1 "${laned[@]}" \
        env OMPI_MCA_pml_coop_fault=pages:1 "$bin/answers" refused : -np 1 "$bin/answers" refused
    check lane.answers_without_slots lane_job 2 --mca pml_coop_fault pages:1 "$bin/answers" refused
    check lane.answers_of_one_cpu lane_job 2 --mca mpi_yield_when_idle 1 taskset -c "$(first_cpu)" "$bin/answers" refused
    for only in answers_of_up_to_2_KiB_leave_the_ring_as_it_is messages_that_are_answered_make_the_ring_longer; do
        check "lane.$only" lane_job 2 "$bin/answers" --only "$only"
    done
    check lane.a_stream_tries_two_lengths_of_the_ring lane_job 2 "$bin/lane" --only a_stream_tries_two_lengths_of_the_ring
    # One of the calls that make the ring longer, or that provide the slot, fails. Then what the system has provided may be longer than what a stream wants to use.
    for pages in 6 7 8 9 10; do
        [ -n "$san" ] || check "lane.a_stream_tries_lengths_without_memory.$pages" lane_job 2 --mca pml_coop_fault "pages:$pages" \
            --mca pml_coop_lane_small_max 65536 "$bin/lane" refused --only a_stream_tries_two_lengths_of_the_ring
    done
    part_lane_calls
    check lane.cases_of_four_ranks lane_job 4 --mca mpi_yield_when_idle 1 "$bin/lane"
    check lane.cases_of_sixteen_ranks lane_job 16 --mca mpi_yield_when_idle 1 "$bin/lane" --only everyone_to_everyone
    check lane.cases_through_the_smallest_ring lane_job 2 --mca pml_coop_lane_memory 16384 "$bin/lane" small_ring
    # Messages of several lengths that are allowed in one packet of the lane are longer than one of the transport.
    check lane.cases_of_short_messages_only lane_job 2 --mca pml_coop_lane_max 0 "$bin/lane" refused
    check lane.cases_with_a_limit_that_is_found lane_job 2 --mca pml_coop_lane_max -1 "$bin/lane" found
    for memory in 16384 65536 524288 33554432; do
        check "lane.messages_wait_while_a_ring_grows.$memory" lane_job 2 --mca pml_coop_lane_max -1 --mca pml_coop_lane_memory "$memory" \
            "$bin/lane" found --only messages_wait_while_the_ring_becomes_longer
    done
    [ -n "$san" ] || check lane.cases_with_a_limit_where_copies_are_denied lane_job 2 --mca pml_coop_lane_max -1 "$bin/deny_copies" all "$bin/lane" denied
    check lane.the_report_shows_the_limit_that_is_found limit_is_reported -1 ': of a sender that waits up to [0-9]* bytes.*; of one that does not, up to [0-9]* bytes, .* up to [0-9]* bytes (measured: lane '
    check lane.the_report_shows_the_limit_that_is_given limit_is_reported 40000 '$'
    part_lane_long_ways
    part_lane_offers
    check lane.cases_when_operations_are_refused lane_job 2 --mca pml_coop_fault busy:3,sendi:2,alloc:5 "$bin/lane" refused
    # A ring that gets no more memory keeps the short messages.
    check lane.cases_when_memory_is_short lane_job 2 --mca pml_coop_fault pages:1 "$bin/lane" refused
    check lane.cases_when_memory_becomes_short lane_job 3 --mca pml_coop_fault pages:4 --mca mpi_yield_when_idle 1 "$bin/lane" refused
    check lane.cases_when_memory_is_short_and_the_transport_takes_more lane_job 2 --mca pml_coop_fault pages:1 --mca pml_coop_lane_small_max 1024 \
        --mca pml_coop_lane_max -1 "$bin/lane" found --only messages_wait_while_the_ring_becomes_longer
    check lane.cases_that_change_over_to_the_lane launch vader 2 --mca pml_coop_lane 1 --mca pml_coop_lane_after 20 "$bin/lane" refused
    check lane.opens_after_as_many_short_messages_as_given opens_after 20 8
    check lane.opens_after_as_many_long_messages_as_given opens_after 20 200000
    for topic in modes persistent probing cancel ordering truncation message_sizes to_self datatypes completion sendrecv tags_and_assertions unexpected; do
        lane_cases 2 "$topic"
    done
    for topic in intercomm communicators threads finalizing serialized; do lane_cases 3 "$topic"; done
    check lane.dynamic_processes launch both 2 "${laned[@]}" "$bin/dynamic"
    check lane.messages_do_not_overtake_those_that_a_transport_still_keeps launch both 2 "${laned[@]}" --mca mpi_yield_when_idle 1 \
        "$bin/lane_guests"
    # Needs half a gigabyte. The rings are full all the time.
    [ -n "$san" ] || check lane.three_hundred_thousand_sends_wait_for_their_receives lane_job 2 "$bin/shortage" \
        --only three_hundred_thousand_sends_wait_for_their_receives
    check lane.messages_of_8_KiB_make_a_ring_longer_at_once_on_a_crowded_node ring_is_long_at_once
    check lane.messages_above_8_KiB_wait_for_a_longer_ring_on_a_crowded_node lane_on_crowded_node 8200
    check lane.messages_of_16_KiB_wait_for_a_longer_ring_on_a_crowded_node lane_on_crowded_node 16384
    check lane.messages_above_32_KiB_go_another_way_on_a_crowded_node too_long_for_lane_on_crowded_node
    check lane.messages_of_32_KiB_use_one_packet_on_a_crowded_node packets_on_crowded_node 32768
    check lane.messages_longer_than_a_packet_go_another_way_on_a_crowded_node longer_than_a_packet_on_crowded_node
    check lane.limit_on_a_crowded_node_is_reported limit_on_crowded_node
    [ -n "$san" ] || check lane.limit_on_a_crowded_node_where_copies_are_denied_is_reported limit_without_kernel \
        "$bin/deny_copies" all
    check lane.limit_on_a_crowded_node_without_copies_by_the_kernel_is_reported limit_without_kernel \
        env OMPI_MCA_pml_coop_protocol=send
    check lane.limit_on_a_crowded_node_is_reported_if_vader_does_not_copy limit_without_kernel \
        env OMPI_MCA_btl_vader_single_copy_mechanism=none
    [ -n "$san" ] || check lane.a_thread_that_waits_lets_others_use_its_cpu rate_on_one_cpu
    lane_storm pair 2 4000 -- --seed 1
    lane_storm group 4 3000 -- --seed 2
    lane_storm threads 4 2000 -- --seed 3 --threads 3
    lane_storm funneled 2 3000 --mca pml_coop_lane_max -1 -- --seed 19 --level funneled
    lane_storm with_found_limits 2 3000 --mca pml_coop_lane_max -1 -- --seed 14
    lane_storm with_found_limits_among_threads 2 2000 --mca pml_coop_lane_max -1 -- --seed 15 --threads 3
    lane_storm with_found_limits_on_a_crowded_node 4 2000 --mca pml_coop_lane_max -1 taskset -c "$(first_cpu)" -- --seed 16
    lane_storm with_found_limits_among_threads_on_a_crowded_node 4 2000 --mca pml_coop_lane_max -1 taskset -c "$(first_cpu)" -- \
        --seed 17 --threads 3
    lane_storm short_messages 4 12000 -- --seed 4 --max-size 3000
    lane_storm by_send 4 1500 --mca pml_coop_protocol send -- --seed 6
    lane_storm of_refusals 3 1000 --mca pml_coop_fault busy:5,alloc:7,get:4,put:4,get_busy:3,put_busy:3 -- --seed 5 --threads 3
    for protocol in rput coop; do lane_storm "by_$protocol" 4 1000 --mca pml_coop_protocol $protocol -- --seed 8; done
    if [ "$long" = yes ]; then
        for protocol in rget coop_fixed coop_coll coop_load; do lane_storm "by_$protocol" 4 3000 --mca pml_coop_protocol $protocol -- --seed 9; done
        # The borders between one packet, fragments and the transport: all lengths by one of them, and many at each border.
        lane_storm without_fragments 4 3000 --mca pml_coop_lane_max 0 -- --seed 10 --max-size 40000
        lane_storm by_fragments 4 3000 --mca pml_coop_lane_small_max 64 --mca pml_coop_lane_max 1073741824 --mca pml_coop_protocol send -- --seed 11
        lane_storm by_long_packets 4 3000 --mca pml_coop_lane_small_max 65536 -- --seed 12 --max-size 70000 --threads 2
    fi
    lane_storm with_fewer_rings_than_ranks 4 2000 --mca pml_coop_lane_memory 32768 -- --seed 7
    part_lane_apart
    [ -n "$san" ] || check lane.a_rank_is_killed killed_on_lane
}

# What a call does beside the message that it finds in the lane.
part_lane_calls() {
    if [ "$(nproc)" -lt 2 ]; then
        report_skip lane.lane_calls "two processes share one core"
        return
    fi
    lane_cases 2 lane_calls --mca pml_coop_lane_read_min 1073741824
    # The kernel refuses to read the buffer of the sender.
    check lane.calls_return_while_the_sender_of_an_offer_is_held_up lane_job 2 --mca pml_coop_lane_read_min 0 "$bin/lane_calls"
}

# Messages that are too long for the lane, until the receiver finds that they are quicker through it.
part_lane_long_ways() {
    local -x OMPI_MCA_pml_coop_lane_max=-1
    local case
    if [ "$(nproc)" -lt 2 ]; then
        report_skip lane.long_ways "two processes share one core"
        return
    fi
    # With a sanitizer a process takes too long from MPI_Isend to MPI_Wait.
    if [ -n "$san" ]; then check lane.long_way lane_job 2 "$bin/long_way" --only messages_that_both_sides_wait_for_try_the_lane
    else lane_cases 2 long_way; fi
    for case in messages_that_both_sides_wait_for_try_the_lane mixed_messages_arrive_whole_and_in_order; do
        check "lane.long_way_among_threads.$case" lane_job 2 "$bin/long_way" --multiple never --only "$case"
        check "lane.long_way_on_a_crowded_node.$case" lane_job 2 --mca mpi_yield_when_idle 1 taskset -c "$(first_cpu)" "$bin/long_way" \
            never --only "$case"
        check "lane.long_way_where_a_limit_is_given.$case" lane_job 2 --mca pml_coop_lane_max 131072 "$bin/long_way" never --only "$case"
        check "lane.long_way_through_the_smallest_ring.$case" lane_job 2 --mca pml_coop_lane_memory 16384 "$bin/long_way" --only "$case"
    done
}

# Messages that the receiver reads from the memory of a sender that waits.
part_lane_offers() {
    local fault topic
    local -x OMPI_MCA_pml_coop_lane_read_min=0
    if [ "$(nproc)" -lt 2 ]; then
        report_skip lane.offers "two processes share one core"
        return
    fi
    check lane.cases_of_offers lane_job 2 "$bin/lane"
    check lane.an_offer_is_read_and_reported offers_are_reported 2 --mca pml_coop_lane_read_min 2048
    check lane.an_offer_is_read_if_one_of_several_threads_calls at_level funneled offers_are_reported 2
    check lane.an_offer_is_read_if_threads_call_in_turn at_level serialized offers_are_reported 2
    check lane.an_offer_is_not_made_where_threads_meet at_level multiple no_offers_are_reported 2
    [ -n "$san" ] || check lane.an_offer_is_not_made_where_copies_are_denied no_offers_are_reported 2 "$bin/deny_copies" all
    check lane.an_offer_is_not_made_among_more_ranks_than_cores no_offers_are_reported 4 --mca mpi_yield_when_idle 1 \
        taskset -c "$(first_cpu)"
    check lane.offers_that_cross_and_are_refused lane_job 2 --mca pml_coop_fault offer:1 "$bin/lane" refused --only both_send_at_once_and_wait
    for fault in offer:3 offer:8; do check "lane.cases_of_offers_that_the_kernel_refuses.$fault" lane_job 2 --mca pml_coop_fault "$fault" "$bin/lane" refused; done
    check lane.cases_of_offers_through_the_smallest_ring lane_job 2 --mca pml_coop_lane_memory 16384 "$bin/lane" small_ring
    check lane.a_send_ends_while_its_receiver_computes lane_job 2 "$bin/lane" offers --only a_send_ends_while_its_receiver_computes
    for topic in modes ordering truncation unexpected sendrecv datatypes probing; do
        check "lane.offers.$topic" lane_job 2 "$bin/$topic"
    done
    lane_storm of_offers 2 3000 -- --seed 17
    lane_storm of_offers_some_of_which_the_kernel_refuses 2 3000 --mca pml_coop_fault offer:40 -- --seed 18
}
job_of_offers() { launch_and_keep vader "$1" "${laned[@]}" --mca pml_coop_report 1 "${@:2}" "$bin/lane" refused ${thread_level:+"--$thread_level"}; }
at_level() { # LEVEL COMMAND…: the program asks for this thread level
    local thread_level=$1
    "${@:2}"
}
reports_offers() { grep -aq 'the sender waits, and one copy by the' "$log.job"; }
offers_are_reported() { job_of_offers "$@" && reports_offers; }
no_offers_are_reported() { job_of_offers "$@" && ! reports_offers; }

# The notice is printed, and data is correct.
lane_is_missed() { # WORDS NP ARGUMENT…
    local words=$1
    launch_and_keep vader "$2" "${laned[@]}" --mca pml_coop_report 1 "${@:3}" || return 1
    grep -aq "$words" "$log.job"
}

limit_is_reported() { # LANE-MAX PATTERN
    launch_and_keep vader 2 "${laned[@]}" --mca pml_coop_report 1 --mca pml_coop_lane_max "$1" "$bin/lane" found \
        --only every_length_around_each_switch_by_every_call_both_ways || return 1
    grep -a "pml/coop: lane of rank 0: pml_coop_lane_max $1$2" "$log.job"
}

# The first MESSAGES messages of so many BYTES to the other process go another way, and no more.
opens_after() { # MESSAGES BYTES
    local others
    launch_and_keep vader 2 --mca pml_coop_lane 1 --mca pml_coop_lane_after "$1" --mca pml_coop_report 1 \
        --mca pml_coop_lane_max 1073741824 "$prefix/libexec/ompi-coop/coop_latency" -m "$2:$2" -i 50 -b 1 -x 0 ||
        return 1
    others=$(awk '/^pml\/coop: messages sent/ { table = 1 } /^  [a-z]/ { other = $1 !~ /^(protocol|lane|total)$/ }
        table && other { sub(/^ *[a-z]* *(0 B|<= [0-9]+ [KMG]?i?B) */, ""); sum += $1 }
        END { print sum + 0 }' "$log.job")
    echo "2 processes have sent $others messages another way"
    [ "$others" -eq $((2 * $1)) ]
}

# Each message needs the CPU of the other process. A thread that yields after each look reaches some hundred thousand a second. One
# that yields after 256 looks reaches more than a 256th of that, here a fifth; one that keeps its CPU for its time slice a thousandth.
rate_on_one_cpu() {
    local yield rates=()
    for yield in 1 0; do
        launch_and_keep vader 2 "${laned[@]}" --mca mpi_yield_when_idle $yield taskset -c "$(first_cpu)" \
            "$prefix/libexec/ompi-coop/coop_mr" -L multiple -m 8:8 -w 1 -T 0.1 -b 3 || return 1
        rates+=("$(awk '/^8 / { print $2 }' "$log.job")")
    done
    echo "${rates[0]} messages a second if a thread yields after each look, otherwise ${rates[1]}"
    [ $((256 * rates[1])) -gt "${rates[0]}" ]
}

# Messages of this length: five to each process are not enough for a longer ring, 35 are. Before enough of them are
# timed, which takes a lap of the ring of 1 or 2 MiB and 15 messages, no cost of the kernel's copies keeps 16 KiB out.
lane_on_crowded_node() { # BYTES
    alltoall_on_crowded_node "$1" 5 || return 1
    ! lane_row_of 16 || return 1
    alltoall_on_crowded_node "$1" 35 && lane_row_of 16
}
ring_is_long_at_once() { alltoall_on_crowded_node 8192 1 && lane_row_of 16; }
packets_on_crowded_node() { # BYTES
    alltoall_on_crowded_node "$1" 200 && lane_row_of 64
}
# Short messages show that the lane is open.
too_long_for_lane_on_crowded_node() {
    alltoall_on_crowded_node 32769 200 && lane_is_reported && ! lane_row_of 64
}
# Three eighths of a ring of 32 KiB are less than a message.
longer_than_a_packet_on_crowded_node() {
    OMPI_MCA_pml_coop_lane_memory=393216 alltoall_on_crowded_node 16384 200 && lane_is_reported && ! lane_row_of 16
}
lane_is_reported() { grep -aq '^  lane ' "$log.job"; }
# The report tells the limit once it is found.
limit_on_crowded_node() {
    local found
    alltoall_on_crowded_node 16384 300 || return 1
    found=$(sed -nE 's/.*lane of rank 0: pml_coop_lane_max -1: up to ([0-9]+) bytes in one packet, on a crowded node.*/\1/p' "$log.job")
    [ "${found:-0}" -ge 8192 ] && [ "$found" -le 32768 ]
}
# Without copies by the kernel longer messages use the lane, too.
limit_without_kernel() { # PROGRAM ARGUMENT…
    alltoall_on_crowded_node 65536 100 "$@" && lane_row_of 64 &&
        grep -aq 'lane of rank 0: pml_coop_lane_max -1: up to 131072 bytes (measured: .*no copies by the kernel' "$log.job"
}
alltoall_on_crowded_node() { # BYTES CALLS PROGRAM…
    launch_and_keep vader 4 --mca pml_coop_lane_max -1 --mca mpi_yield_when_idle 1 --mca pml_coop_report 1 \
        taskset -c "$(first_cpu)" "${@:3}" "$prefix/libexec/ompi-coop/coop_alltoall" -m "$1:$1" -d -b 1 -x 0 -i "$2"
}
lane_row_of() { sed -n '/^  lane /,/^  [^ ]/p' "$log.job" | grep -aq "<= $1 KiB"; } # KIB

lane_is_used() { # NP ARGUMENT…
    launch_and_keep both "$1" "${laned[@]}" --mca pml_coop_report 1 "${@:2}" && lane_is_reported
}

# Another way was found, and data is correct.
lane_is_avoided() { # NP ARGUMENT…
    launch_and_keep both "$1" "${laned[@]}" --mca pml_coop_report 1 "${@:2}" || return 1
    grep -aq '^  send ' "$log.job" && ! lane_is_reported
}

part_lane_apart() {
    local name
    # The program would have to be started by a shell that is not instrumented.
    [ -z "$san" ] || return 0
    check lane.without_shared_memory lane_is_missed 'cannot create memory' 2 -x LD_PRELOAD="$bin/no_memfd.so" -x NO_MEMFD=none "$bin/lane" refused
    check lane.more_ranks_than_rings lane_is_missed 'no free ring' 4 --mca pml_coop_lane_memory 16384 --mca mpi_yield_when_idle 1 "$bin/lane" refused
    if unshare --pid --fork true 2>/dev/null; then
        check lane.another_pid_namespace lane_is_missed 'cannot open a lane' 2 "$here/lib/own_pid_namespace" 1 "$bin/lane" refused
    else
        report_skip lane.another_pid_namespace "no PID namespaces here (not root?)"
    fi
    if unshare --pid --ipc --mount --mount-proc --fork true 2>/dev/null; then
        check lane.another_ipc_namespace lane_is_used 2 unshare --ipc "$bin/lane" refused
        check lane.another_container lane_is_avoided 2 "$here/lib/own_container" 1 "$bin/lane" refused
        check lane.shared_memory_is_full launch full 2 "${laned[@]}" "$bin/lane" refused
        storm lane.storm_when_shared_memory_is_full full 3 1000 "${laned[@]}" -- --seed 13
    else
        for name in another_ipc_namespace another_container shared_memory_is_full storm_when_shared_memory_is_full; do
            if asked "lane.$name"; then report_skip "lane.$name" "no namespaces of mounts and processes here (not root?)"; fi
        done
    fi
}

killed_on_lane() {
    local laned_job=(OMPI_MCA_pml_coop_lane=1 OMPI_MCA_pml_coop_lane_after=0)
    export "${laned_job[@]}"
    killed_in_a_copy 1 exchange hybrid
    local status=$?
    unset "${laned_job[@]%%=*}"
    return $status
}
