# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# How btl/coopib connects: peers that compute or are stopped, rails that are silent, events that HCAs report meanwhile.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

prepare_contact() {
    local program
    mkdir -p "$results/bin-mpi"
    for program in first_contact idle_thread late_credits; do
        mpicc -O1 -Wall -Wextra -Werror -o "$results/bin-mpi/$program" "$here/programs/$program.c" || return 1
    done
    storm=$(mpi_program storm) || return 1
    ${CC:-gcc} -O1 -Wall -Wextra -Werror -shared -fPIC -o "$results/bin-mpi/no_resize.so" "$here/programs/no_resize.c" -ldl || return 1
    ring=$results/bin-mpi/ring
    mpicc -O1 -o "$ring" "$here/../../docs/examples/ring.c" || return 1
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# contact_job PML RANKS [MPIRUN ARGUMENT…] -- ARGUMENT…: runs first_contact FILE ARGUMENT… with a new FILE.
contact_job() {
    local pml=$1 ranks=$2 extra=() shared
    shift 2
    while [ "$1" != -- ]; do extra+=("$1"); shift; done
    shift
    shared=$(mktemp -u "/dev/shm/contact-t$COOP_TEST_RUN-XXXXXX")
    limit=${limit:-60} on_subnet --hosts 2 --hcas 2 -- mpirun -np "$ranks" --oversubscribe --mca pml "$pml" --mca btl coopib,self \
        --mca mpi_yield_when_idle 1 "${extra[@]}" "$results/bin-mpi/first_contact" "$shared" "$@"
}

# A rank that waits for a stopped peer warns once, and goes on when the peer continues.
stopped_peer_is_waited_for() { # SECONDS
    local output
    output=$(limit=$(($1 + 60)) contact_job ob1 2 --mca btl_coopib_connect_timeout 1 -- single stop "$1" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    grep -q '^first contact: all right$' <<<"$output" && [ "$(grep -c 'its peer has not answered yet' <<<"$output")" = 1 ]
}

# Messages to coop1 of host h1, from it, or both, are lost, depending on TARGET. The job uses only the other rail, and a process names
# the silent one.
silent_rail_is_left_out() { # TARGET of coop-fabric fault
    local output
    # shellcheck disable=SC2016 # expanded by that shell
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 -- sh -c '"$COOP_FABRIC_TOOL" fault $1 drop --for 1000s && exec mpirun -np 2 --oversubscribe \
        --mca pml ob1 --mca btl coopib,self --mca btl_coopib_report 1 --mca mpi_yield_when_idle 1 "$2"' sh "$1" "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    grep -qx "done" <<<"$output" && grep -q '^  Silent: 1 rails to this peer$' <<<"$output" &&
        grep -qE '^  Rail:   coop[01] port 1 to hca [01] port 1, LID ' <<<"$output" && [ "$(grep -cE '^  [0-9] +coop[01] ' <<<"$output")" = 2 ]
}

# Without a shared receive queue. The first messages arrive while their receiver is connecting. Once connected, it returns the credits
# of each rail.
credits_come_after_the_connection() { # HCAS, MILLISECONDS inside MPI meanwhile
    limit=60 on_subnet --hosts 2 --hcas "$1" --profile nosrq --latency 50ms -- mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,self \
        --mca btl_coopib_ring_threshold 0 --mca mpi_yield_when_idle 1 "$results/bin-mpi/late_credits" "$2" 1000
}

# The driver does not let completion queues grow: each of 12 processes connects more rails than its first queue has room for.
queues_that_do_not_grow_serve() { # [MPIRUN ARGUMENT…]
    # shellcheck disable=SC2016 # expanded where a rank starts
    limit=100 on_subnet --hosts 4 --hcas 1 -- mpirun -np 12 --oversubscribe --mca pml ob1 --mca btl coopib,self --mca mpi_yield_when_idle 1 "$@" \
        sh -c 'LD_PRELOAD=$1:$LD_PRELOAD exec "$2" --messages 100 --seed 5' sh "$results/bin-mpi/no_resize.so" "$storm"
}

# events_of_a_job COMMAND: runs the shell command on the subnet of a job with two HCAs per host, in which one rank waits for the other.
# Writes the job's output to $log.job and returns its status.
events_of_a_job() {
    # shellcheck disable=SC2016 # expanded by that shell
    limit=60 on_subnet --hosts 2 --hcas 2 -- sh -c 'mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,self --mca mpi_yield_when_idle 1 \
        "$2" 0 3 >"$3" 2>&1 & job=$!; until grep -q "^started" "$3"; do sleep 0.1; done; eval "$1"; wait $job' \
        sh "$1" "$results/bin-mpi/idle_thread" "$log.job"
}

port_that_goes_down_and_up_is_reported() {
    local port="$COOP_FABRIC_TOOL port h0/coop1/1"
    events_of_a_job "$port down && sleep 0.3 && $port up" || { cat "$log.job"; return 1; }
    cat "$log.job"
    [ "$(grep -cE '^  Event: (port error|port active)$' "$log.job")" = 2 ] && [ "$(grep -cx '  HCA:   coop1' "$log.job")" = 2 ]
}

hca_that_fails_ends_the_job() {
    local status=0
    events_of_a_job "$COOP_FABRIC_TOOL hca h0/coop1 down" || status=$?
    cat "$log.job"
    echo "status $status"
    [ $status != 0 ] && [ $status != 124 ] && grep -q '^An HCA that btl/coopib uses has failed' "$log.job" && grep -qx '  HCA:   coop1' "$log.job"
}

# With twelve HCAs a process uses eight, and one process of the node names the others.
eight_hcas_serve() { # [COMMAND that starts its arguments…]
    local output
    output=$(limit=60 on_subnet --hosts 2 --hcas 12 -- mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,self \
        --mca btl_coopib_report 1 --mca mpi_yield_when_idle 1 "$@" "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    [ "$(grep -cx '  HCAs:     12, of which a process uses at most 8' <<<"$output")" = 1 ] &&
        grep -qx '  Left out: coop8, coop9, coop10, coop11' <<<"$output" && [ "$(grep -cE '^  [0-7] +coop[0-7] ' <<<"$output")" = 16 ]
}

part_contact() {
    # shellcheck disable=SC2034 # by_turns is for lib/report.sh
    local pml level hcas inside by_turns=yes
    log=$results/log/contact.build.log
    prepare_contact >"$log" 2>&1 || { report_fail contact.build; return; }
    for pml in ob1 coop; do
        for level in single funneled serialized multiple; do
            check "site_01.peer_that_computes_is_connected.$pml.$level" contact_job "$pml" 2 -- "$level" spin
        done
        check "site_01.many_peers_outside_of_mpi_are_connected.$pml" contact_job "$pml" 21 -- single sleep
    done
    check site_01.stopped_peer_is_waited_for stopped_peer_is_waited_for "$([ "$long" = no ] && echo 3 || echo 60)"
    check site_16.rail_that_hears_nothing_is_left_out silent_rail_is_left_out 'link sw0-h1/coop1/1'
    check site_16.rail_that_is_not_heard_is_left_out silent_rail_is_left_out 'link h1/coop1/1-sw0'
    check site_16.dead_hca_is_left_out silent_rail_is_left_out h1/coop1
    for hcas in 1 2; do
        for inside in 60 120; do
            check "site_01.credits_come_after_the_connection.$hcas.$inside" credits_come_after_the_connection $hcas $inside
        done
    done
    check site_18.queues_that_do_not_grow_serve queues_that_do_not_grow_serve -x MOST_CQE=65536
    check site_18.small_queues_that_do_not_grow_serve queues_that_do_not_grow_serve -x MOST_CQE=1100
    check site_23.eight_of_twelve_hcas_serve eight_hcas_serve
    check site_23.local_rank_is_known_without_its_variable eight_hcas_serve env -u OMPI_COMM_WORLD_LOCAL_RANK
    check site_18.port_that_goes_down_and_up_is_reported port_that_goes_down_and_up_is_reported
    check site_18.hca_that_fails_ends_the_job hca_that_fails_ends_the_job
    check site_01.thread_sleeps_while_nobody_connects on_subnet --hosts 2 --hcas 2 -- mpirun -np 2 --oversubscribe --mca pml ob1 \
        --mca btl coopib,self --mca mpi_yield_when_idle 1 "$results/bin-mpi/idle_thread"
}
