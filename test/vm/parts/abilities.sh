# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Properties of Soft-RoCE that differ from hardware, and how jobs cope with them.
# shellcheck disable=SC2154 # variables of tests

# storm_and_then SECONDS [MPIRUN ARGUMENT…]: starts a storm of that duration in the background and returns when it has begun. Sets `job`; output in $log.job.
storm_and_then() {
    local seconds=$1
    shift
    limit=90 job ob1 "$@" -- "$bin/storm" --seed 11 --time "$seconds" --max-size 100000 >"$log.job" 2>&1 &
    job=$!
    local before
    before=$(arrived_at b1)
    until [ $(($(arrived_at b1) - before)) -gt 100000 ]; do
        kill -0 $job 2>/dev/null || { cat "$log.job"; return 1; }
        sleep 0.1
    done
}

# A cable that is down for less time than the retries take (timer 18 and six retries: some seconds) must not disturb the job.
short_cut() {
    storm_and_then 6 --mca btl_coopib_timeout 18 || return 1
    lose_all a1 b1 && sleep 1 && lose_nothing a1 b1
    ended_with
}

# If it stays down, the job ends and says which rail failed and why.
lasting_cut() {
    storm_and_then 60 --mca btl_coopib_timeout 14 || return 1
    lose_all a1 b1
    local status=0
    ended_with || status=$?
    lose_nothing a1 b1
    is_status_of_an_error $status || return 1
    grep -q '^A rail of btl/coopib has failed' "$log.job" && grep -qE '^  HCA: +[ab]1$' "$log.job" &&
        grep -qE '^  Status: +transport retry counter exceeded' "$log.job"
}

# With the default timer and retries a rail lasts as long as one of btl/openib (about half a minute).
default_patience() {
    storm_and_then 8 || return 1
    lose_all a1 b1 && sleep 5 && lose_nothing a1 b1
    ended_with
}

# A rail that is dead from the start (its port is active, but the peer's Ethernet address cannot be resolved) is left out, and the job
# uses the other rail.
dead_from_the_start() {
    local status=0
    lose_all a1 b1
    for end in a1 b1; do ip neigh flush dev "$end"; done
    limit=90 storm_of 60 ob1 || status=$?
    lose_nothing a1 b1
    return $status
}

# The read depth of the device, and that of the queue pairs: 128 reads at once.
as_many_reads() {
    ibv_devinfo -v -d a0 | grep -E 'max_qp_(init_)?rd_atom|AUTO_PATH_MIG|atomic_cap|max_srq:'
    PRELOAD_INTO_RANKS=$bin/watch_reads.so storm_and_then 4 --mca btl_coopib_flags send,get || return 1
    rdma resource show qp | grep 'type RC'
    ended_with && grep -q '^reads: at most [0-9]* at once; given 128 to begin, 128 to answer$' "$log.job"
}

part_abilities() {
    check abilities.short_cut_is_retried short_cut
    check abilities.lasting_cut_ends_the_job lasting_cut
    check site_20.default_patience_outlasts_a_cut_of_five_seconds default_patience
    check abilities.rail_that_is_dead_from_the_start dead_from_the_start
    check site_36.128_reads_at_once as_many_reads
}
