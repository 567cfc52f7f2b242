# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# One program per topic, many cases each. Test names are ground.topic.case.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# run_cases GROUND NP TOPIC ARGUMENT…: runs the cases of a topic.
run_cases() {
    local ground=$1 np=$2 topic=$3 arguments=("${@:4}")
    run_topic "$ground.$topic" "$bin/$topic" run_on_ground
}
run_on_ground() { launch "$ground" "$np" "$bin/$topic" "$@" "${arguments[@]}"; }

part_semantics() {
    local topic
    local pairwise="modes persistent probing cancel ordering truncation message_sizes to_self datatypes completion
        sendrecv tags_and_assertions"
    local grouped="intercomm communicators threads finalizing serialized"
    for topic in $pairwise unexpected; do run_cases vader 2 "$topic"; done
    for topic in $grouped; do run_cases vader 3 "$topic"; done
    if everywhere; then
        for topic in modes ordering truncation message_sizes datatypes; do run_cases tcp 2 "$topic"; done
        run_cases tcp 3 threads
        for topic in persistent probing cancel to_self completion sendrecv tags_and_assertions dynamic; do rarely run_cases tcp 2 "$topic"; done
        for topic in intercomm communicators finalizing serialized; do rarely run_cases tcp 3 "$topic"; done
    fi
    run_cases both 2 dynamic
    run_cases vader 2 ground 1 2
    semantics_lifetimes
    semantics_big
    cluster_possible || { report_skip cluster "$no_cluster" 122; return; }
    run_cases cluster 6 ground 3 2
    check cluster.vader_inside_a_host_and_tcp_between transports_are_right
    for topic in intercomm threads dynamic; do run_cases cluster 6 "$topic"; done
    ! everywhere || for topic in ordering unexpected; do run_cases cluster 6 "$topic"; done
    ! everywhere || for topic in finalizing communicators ${pairwise/ordering/}; do rarely run_cases cluster 6 "$topic"; done
}

# lifetimes CASE [MPIRUN-ARGUMENT…]: with several threads, some of them delayed.
lifetimes() {
    slowly locks
    launch vader 2 "${@:2}" "${slow[@]}" "$bin/lifetimes" --multiple --only "$1"
}

semantics_lifetimes() {
    check site_09.the_last_send_takes_its_communicator_with_it launch vader 2 "$bin/lifetimes" --only the_last_send_takes_its_communicator_with_it
    check site_09.a_communicator_is_freed_while_a_thread_sends_what_waited lifetimes a_communicator_is_freed_while_a_thread_sends_what_waited \
        --mca btl_vader_free_list_max 16
    [ "$pml" != coop ] || check site_09.a_parameter_is_written_while_messages_start lifetimes a_parameter_is_written_while_messages_start
    check site_12.a_message_comes_right_after_its_communicator lifetimes a_message_comes_right_after_its_communicator
}

# Needs two buffers of 2.2 GiB, and memory for the rest of the machine.
semantics_big() {
    local available
    available=$(awk '$1 == "MemAvailable:" { print int($2 / 1048576) }' /proc/meminfo)
    if [ "$available" -lt 7 ]; then
        report_skip vader.big "needs 7 GiB of memory, $available are available"
        return
    fi
    [ -z "$san" ] || return 0
    [ "$long" = no ] || run_cases tcp 2 big
    rarely run_cases vader 2 big
}

# Checks the virtual cluster: bml/r2 names the transport to each peer, and the peer's host.
transports_are_right() {
    launch cluster 6 --mca btl_base_verbose 10 "$bin/ground" --only everyone_talks_to_everyone 3 2 || return 1
    # [v0:123] mca: bml: Using tcp btl for send to [[1,1],3] on node v1
    sed -n 's/^\[\(v[0-9]\):.*Using \([a-z]*\) btl for send to .* on node \(v[0-9]\)$/\1 \2 \3/p' "$log" |
        sort | uniq -c >"$log.pairs"
    cat "$log.pairs"
    awk '{ ok = $2 == $4 ? ($3 == "vader" || $3 == "self") : $3 == "tcp"; if (!ok) { print "wrong: " $0; bad = 1 }
           ++seen[$3] } END { exit bad || !seen["vader"] || !seen["tcp"] }' "$log.pairs"
}
