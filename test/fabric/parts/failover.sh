# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# btl/coopib goes on without rails that fail, and takes them back. The program checks the number and every byte of each message.
# shellcheck disable=SC2154,SC2016 # variables of run and lib/launch.sh; expanded by the shell on the subnet

prepare_failover() {
    mkdir -p "$results/bin-mpi"
    failover=$results/bin-mpi/failover
    # Two runs may go on at the same time: one must not see the other's program half written.
    local program
    for program in failover leaving; do
        mpicc -O1 -Wall -Wextra -Werror -o "$failover.$$" "$here/programs/$program.c" && mv -f "$failover.$$" "${failover%/*}/$program" || return 1
    done
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# failing FAULTS [SUBNET OPTION…] -- [MPIRUN ARGUMENT…] -- ARGUMENT…: runs the program on a subnet, and the shell commands FAULTS when it
# has started, those of $at_first earlier: 'f' stands for coop-fabric. Writes the job's output to $log.job and returns its status.
# Makes the file $log.job.late if the job ended before the last of FAULTS could show, as it may on a busy machine. Without the lane,
# because both ranks are in one node.
failing() {
    local faults=$1 options=() extra=()
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    while [ "$1" != -- ]; do extra+=("$1"); shift; done
    shift
    # mpirun may pass on what the program prints only seconds later.
    local -x COOP_TEST_STARTED=$log.started
    limit=${limit:-60} on_subnet "${options[@]}" -- sh -c 'at_first=$1 faults=$2 output=$3; shift 3
        f() { "$COOP_FABRIC_TOOL" "$@"; }
        eval "$at_first"
        rm -f "$COOP_TEST_STARTED" "$output.late" # of the last job of this name
        "$@" >"$output" 2>&1 & job=$!
        until [ -e "$COOP_TEST_STARTED" ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
        eval "$faults"
        { kill -0 $job && sleep 0.2 && kill -0 $job; } 2>/dev/null || : >"$output.late"
        wait $job' \
        sh "${at_first:-}" "$faults" "$log.job" mpirun -np 2 --oversubscribe -x COOP_TEST_STARTED --mca btl coopib,self --mca btl_coopib_failover "${on:-1}" --mca btl_coopib_report 1 \
        --mca mpi_yield_when_idle 1 --mca pml_coop_lane 0 "${extra[@]}" "$failover" "$@"
}

# survives FAULTS …: the job ends well, and a rail was lost and is back where that is expected ($back, default: yes). On a busy machine a job
# may end before the faults come or a rail is back; then it is tried again.
survives() {
    local _ status
    for _ in 1 2 3; do
        status=0
        failing "$@" || status=$?
        cat "$log.job"
        [ $status = 0 ] && grep -q '^failover: all right' "$log.job" || return 1
        grep -q '^btl/coopib: .* is lost: ' "$log.job" && { [ "${back:-yes}" = no ] || grep -q '^btl/coopib: .* is back after ' "$log.job"; } &&
            return 0
        echo "The job has ended before all faults had shown."
    done
    return 1
}

loses_no_rail() {
    failing "$@" && cat "$log.job" && grep -q '^failover: all right' "$log.job" && ! grep -q ' is lost: ' "$log.job"
}

# ends_saying LINE FAULTS …: the job ends with this message, not by the time limit.
ends_saying() {
    local line=$1 status=0
    shift
    failing "$@" || status=$?
    cat "$log.job"
    echo "status $status"
    [ $status != 0 ] && [ $status != 124 ] && grep -q "^$line" "$log.job"
}

# Messages that were executed, but whose acknowledgements were lost, are sent again and must be dropped. Messages that the peer's process has
# acknowledged meanwhile are not sent again, so that one of several jobs has to show it.
repetitions_are_dropped() { # PML
    local attempt
    for attempt in 1 2 3 4 5 6 7 8; do
        survives 'for i in 1 2 3 4; do sleep 0.3; f fault h1/coop1/1 cut --count $i; sleep 0.3; f port h1/coop1/1 up; done' --hosts 2 --hcas 2 -- \
            --mca pml "$1" --mca btl_coopib_ring_threshold 0 -- both 3 16 200 4096 12000 || return 1
        echo "job $attempt"
        awk '/arrived twice and dropped/ { split($0, w, /[:;]/); n += w[2] } END { print n " dropped"; exit !(n > 0) }' "$log.job" && return
    done
    return 1
}

# A process that starts another one, and outlives it, finds no rail lost.
outlives() {
    limit=60 on_subnet --hosts 2 --hcas 2 -- mpirun -np 1 --oversubscribe --mca btl coopib,self --mca btl_coopib_failover 1 \
        --mca btl_coopib_partition_timeout 1 --mca mpi_yield_when_idle 1 --mca pml_coop_lane 0 "$@" "${failover%/*}/leaving" 4 >"$log.job" 2>&1 ||
        { cat "$log.job" && return 1; }
    cat "$log.job"
    grep -q '^leaving: all right' "$log.job" && ! grep -q ' is lost: ' "$log.job"
}
needs_the_goodbye() { # PML
    ! outlives --mca pml "$1" -x COOP_TEST_FAILOVER_WITHOUT=left && grep -q ' is lost: ' "$log.job" &&
        grep -q '^leaving: all right\|^No rail between two processes has worked for too long' "$log.job"
}

# The other process waits for longer than btl_coopib_partition_timeout.
computes() {
    survives 'for i in 1 2; do sleep 0.5; f port h0/coop0/1 down; f port h0/coop1/1 down; sleep 0.5; f port h0/coop0/1 up; f port h0/coop1/1 up
        sleep 4; done' --hosts 2 --hcas 2 -- --mca btl_coopib_partition_timeout 2 "$@" -- compute 4.5 262144
}
needs_the_answer() { # PML
    ! computes --mca pml "$1" -x COOP_TEST_FAILOVER_WITHOUT=busy && grep -q '^No rail between two processes has worked for too long' "$log.job"
}

# Processes that do not call MPI.
failover_of_the_absent() {
    local pml
    # The other process has used up the buffers of the one that computes, and then acknowledges what it receives.
    check "a_process_computes.acknowledgements_wait" loses_no_rail true --hosts 2 --hcas 2 --profile nosrq -- --mca pml ob1 \
        --mca btl_coopib_ring_peers 0 --mca btl_coopib_eager_limit 16384 -- crowd 4 16000
    for pml in ob1 coop; do
        check "a_process_leaves.$pml" outlives --mca pml "$pml"
        check "a_process_leaves_without_a_word.$pml" needs_the_goodbye "$pml"
        check "a_process_computes.$pml" computes --mca pml "$pml"
        check "a_process_computes_without_an_answer.$pml" needs_the_answer "$pml"
    done
}

failover_of_kinds() {
    local pml flaps='for i in 1 2 3; do sleep 0.4; f port h0/coop1/1 down; sleep 0.3; f port h0/coop1/1 up; done'
    local rails=(--hosts 2 --hcas 2) apart=(--hosts 2 --virtual-hosts --hcas 2) rdma=(--map-by node --mca osc rdma)
    for pml in ob1 coop; do
        check "messages.$pml" survives "$flaps" "${rails[@]}" -- --mca pml "$pml" -- both 3 16 200 4096 12000 65536 1048576
        check "ping_pong.$pml" survives "$flaps" "${rails[@]}" -- --mca pml "$pml" -- one 3 16 200 4096
        check "without_rings.$pml" survives "$flaps" "${rails[@]}" -- --mca pml "$pml" --mca btl_coopib_ring_threshold 0 -- both 3 16 200 4096 12000
        check "without_srq.$pml" survives "$flaps" "${rails[@]}" --profile nosrq -- --mca pml "$pml" -- both 3 16 200 4096 12000 65536
        check "without_srq_and_rings.$pml" survives "$flaps" "${rails[@]}" --profile nosrq -- --mca pml "$pml" \
            --mca btl_coopib_ring_threshold 0 -- both 3 16 200 4096 12000
        # The messages behind the ones that are lost would hold all buffers of the rail that is left. The rail does not come back.
        back=no check "without_srq_and_rings.many_at_once.$pml" survives 'sleep 0.5; f port h1/coop1/1 down' "${rails[@]}" --profile nosrq -- \
            --mca pml "$pml" --mca btl_coopib_ring_peers 0 -- wide 2 1024
        check "roce.$pml" survives "$flaps" "${rails[@]}" --link-layer roce -- --mca pml "$pml" -- both 3 16 200 4096 65536
    done
    check "puts.rdma" survives_or_atomic "$flaps" "${apart[@]}" -- --mca pml coop "${rdma[@]}" -- put 3 16 4096 65536 1048576
    check "gets.rdma" survives_or_atomic "$flaps" "${apart[@]}" -- --mca pml coop "${rdma[@]}" -- get 3 16 4096 65536 1048576
    check "atomics_are_never_repeated" survives_or_atomic "$flaps" "${apart[@]}" -- --mca pml ob1 "${rdma[@]}" -- add 3 16
}

# The target has time to change its memory: it learns of the end of the only rail after that. On a busy machine, a cut may come later than
# the `up` of its round; so the rules that are left are removed at the end.
failover_of_windows_over_one_rail() {
    check "windows.epoch.one_rail.cut" survives 'for i in 1 2 3 4 5 6 7 8; do sleep 0.2; f fault h1/coop0/1 cut --count $i; sleep 0.2
        f port h1/coop0/1 up; done; f fault clear; f port h1/coop0/1 up' --hosts 2 --virtual-hosts -- "${osc[@]}" -- epoch 5 16 200 4096 65536
}

# Windows of two nodes, because one node would map them. The names of kinds are those of programs/failover.c. 'cut': the last requests are
# executed, and their acknowledgements are lost. The target has seen the signal behind them, and has changed its memory.
failover_of_windows() {
    local kind flaps='for i in 1 2 3; do sleep 0.4; f port h0/coop1/1 down; sleep 0.3; f port h0/coop1/1 up; done'
    local cuts='for i in 1 2 3 4; do sleep 0.3; f fault h1/coop1/1 cut --count $i; sleep 0.3; f port h1/coop1/1 up; done'
    local apart=(--hosts 2 --virtual-hosts --hcas 2) osc=(--map-by node --mca pml coop --mca osc multirail)
    for kind in put get epoch fence; do
        check "windows.$kind" survives "$flaps" "${apart[@]}" -- "${osc[@]}" -- $kind 3 16 200 4096 65536 1048576
        check "windows.$kind.cut" survives "$cuts" "${apart[@]}" -- "${osc[@]}" -- $kind 4 16 200 4096 65536
    done
    check "windows.epoch.four_rails" survives 'for i in 0 1 2; do sleep 0.3; f fault h1/coop$i/1 cut --count 2; done; sleep 0.3
        for i in 1 2 0; do f port h1/coop$i/1 up; sleep 0.2; done' --hosts 2 --virtual-hosts --hcas 4 -- "${osc[@]}" -- epoch 4 16 200 4096 65536
    check "windows.epoch.one_rail" survives "${flaps//coop1/coop0}" --hosts 2 --virtual-hosts -- "${osc[@]}" -- epoch 4 16 200 4096 65536
    # A known fault: about one job in ten waits for longer than the outage.
    [ "$long" = no ] || failover_of_windows_over_one_rail
    check "signals_are_used" signals_are_used "${apart[@]}" -- "${osc[@]}" -- epoch 1 16 4096
}

# Also with failover on.
signals_are_used() {
    failing true "$@" && cat "$log.job" && grep -q 'signals behind writes: [1-9]' "$log.job"
}

# Operations of one-sided communication may use atomic operations of HCAs, which end the job if they are in doubt.
survives_or_atomic() {
    survives "$@" || grep -q '^A rail of btl/coopib failed while an atomic operation was under way' "$log.job"
}

# shellcheck disable=SC2086 # lengths are words
failover_of_faults() {
    local pml sizes='16 200 4096 12000 65536' goes_on='until grep -q " works again after " "$output"; do sleep 0.1; done'
    local rails=(--hosts 2 --hcas 2) four=(--hosts 2 --hcas 4)
    for pml in ob1 coop; do
        local quick=(--mca pml "$pml" --mca btl_coopib_timeout 11)
        check "remote_port.$pml" survives 'sleep 0.5; f port h1/coop0/1 down; sleep 0.5; f port h1/coop0/1 up' "${rails[@]}" -- --mca pml "$pml" -- both 2 $sizes
        check "hca.$pml" survives 'sleep 0.5; f hca h0/coop1 down; sleep 0.5; f hca h0/coop1 up' "${rails[@]}" -- --mca pml "$pml" -- both 3 $sizes
        check "link_without_an_event.$pml" survives 'sleep 0.5; f fault h0/coop1/1 drop --for 1s; sleep 1' "${rails[@]}" -- "${quick[@]}" -- both 4 $sizes
        # The responses of reads are on their way when later requests fail.
        check "acknowledgements_lost.$pml" survives 'sleep 0.5; f link h1/coop1/1-sw0 loss 100% --one-way; sleep 0.5
            f link h1/coop1/1-sw0 loss 0 --one-way' "${rails[@]}" --rate 50MB/s -- "${quick[@]}" -- stream 3 262144
        check "killed_queue_pair_of_the_receiver.$pml" survives 'for i in 1 2 3; do sleep 0.5; f fault h1/coop1 kill-qp; done' "${rails[@]}" --rate 50MB/s -- \
            --mca pml "$pml" -- stream 2.5 262144
        # One message at a time: a later one would reveal the loss before the timer expires.
        check "timeout_of_two_rails.$pml" survives 'sleep 0.5; f fault h0/coop1/1 drop --for 2s; sleep 2' "${rails[@]}" -- --mca pml "$pml" -- one 4 16 200
        check "timeout_of_one_rail.$pml" loses_no_rail 'sleep 0.5; f fault h0/coop0/1 drop --for 2s' --hosts 2 -- --mca pml "$pml" -- one 2 16 200
        check "timeout_of_the_user.$pml" loses_no_rail 'sleep 0.5; f fault h0/coop1/1 drop --for 2s' "${rails[@]}" -- --mca pml "$pml" \
            --mca btl_coopib_timeout 20 -- one 2 16 200
        check "killed_queue_pairs.$pml" survives 'for i in 1 2 3; do sleep 0.5; f fault h0/coop1 kill-qp; done' "${rails[@]}" -- --mca pml "$pml" -- both 2.5 $sizes
        check "repetitions_are_dropped.$pml" repetitions_are_dropped "$pml"
        check "rails_lost_one_by_one.$pml" survives 'for i in 0 1 2; do sleep 0.3; f port h0/coop$i/1 down; done; sleep 0.3
            for i in 1 2 0; do f port h0/coop$i/1 up; sleep 0.2; done; sleep 0.3; f port h1/coop3/1 down' "${four[@]}" -- --mca pml "$pml" -- both 3 $sizes
        check "failure_during_a_repair.$pml" survives 'for i in 1 2 3; do sleep 0.4; f port h0/coop0/1 down; f port h0/coop1/1 down; f port h1/coop2/1 down
            sleep 0.2; f port h1/coop2/1 up; f port h0/coop0/1 up; f port h0/coop1/1 up; done' "${four[@]}" -- --mca pml "$pml" -- both 3 $sizes
        check "all_rails.$pml" survives 'sleep 0.5; f port h0/coop1/1 down; f port h1/coop0/1 down; sleep 5; f port h1/coop0/1 up; sleep 0.3; f port h0/coop1/1 up' \
            "${rails[@]}" -- --mca pml "$pml" -- both 7 $sizes
        # A port of either side works again first. The other rail does not help.
        check "all_rails.remote_first.$pml" survives "f port h0/coop0/1 down; f port h1/coop1/1 down; sleep 1; f port h1/coop1/1 up; $goes_on; f port h0/coop0/1 up" \
            "${rails[@]}" -- --mca pml "$pml" -- both 4 $sizes
        check "all_rails.local_first.$pml" survives "f port h1/coop0/1 down; f port h0/coop1/1 down; sleep 1; f port h0/coop1/1 up; $goes_on; f port h1/coop0/1 up" \
            "${rails[@]}" -- --mca pml "$pml" -- both 4 $sizes
        check "all_rails_for_too_long.$pml" ends_saying 'No rail between two processes has worked for too long' 'sleep 0.5; f port h0/coop1/1 down; f port h1/coop0/1 down' \
            "${rails[@]}" -- --mca pml "$pml" --mca btl_coopib_partition_timeout 1 -- both 7 $sizes
        # Datagrams still pass, between the ports of different rails, and both processes call MPI.
        check "all_rails_for_too_long.crossed.$pml" ends_saying 'No rail between two processes has worked for too long' 'sleep 0.5; f port h0/coop0/1 down; f port h1/coop1/1 down' \
            "${rails[@]}" -- --mca pml "$pml" --mca btl_coopib_partition_timeout 6 -- both 20 $sizes
        back=no check "end_of_job_without_a_rail.$pml" survives 'sleep 0.5; f port h0/coop1/1 down' "${rails[@]}" -- --mca pml "$pml" -- both 1.5 $sizes
        on=0 check "off.$pml" ends_saying 'A rail of btl/coopib has failed' 'sleep 0.5; f fault h0/coop1/1 drop --for 10s' "${rails[@]}" -- "${quick[@]}" \
            -- both 4 $sizes
    done
}

part_failover() {
    # shellcheck disable=SC2034 # for lib/report.sh
    local by_turns=yes log_prefix=failover.
    log=$results/log/failover.build.log
    prepare_failover >"$log" 2>&1 || { report_fail failover.build; return; }
    failover_of_kinds
    failover_of_windows
    failover_of_faults
    failover_of_the_absent
}
