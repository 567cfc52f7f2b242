# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# btl/coopib moves queue pairs to alternate paths (APM). The program checks the number and every byte of each message.
# shellcheck disable=SC2154,SC2016 # variables of run and lib/launch.sh; expanded by the shell on the subnet

# shellcheck source=test/fabric/parts/failover.sh
. "$here/parts/failover.sh"

# The subnets. One HCA per host, except where software has to take over; LIDs of the first host begin at 2, of the second one
# at 4 (lmc) or 6 (two ports with LMC 1).
lids=(--hosts 2 --lmc 1) ports=(--hosts 2 --ports 2) both_kinds=(--hosts 2 --ports 2 --lmc 1)
sizes='16 200 4096 12000 65536'

moved() { grep -q '^btl/coopib: .* has moved to ' "$log.job"; }
ended_well() { grep -q '^failover: all right' "$log.job"; }
lost_a_rail() { grep -q '^btl/coopib: .* is lost: ' "$log.job"; }

# The number of migrations in the reports of both processes.
migrations() { awk '/^  rail [0-9]+ moved / { n += $4 } END { print n + 0 }' "$log.job"; }

# shows CONDITION FAULTS…: the job ends well, no rail was lost, so that nothing was sent again by software, and CONDITION holds. If the
# faults came too late for that, it is tried again.
shows() {
    local condition=$1 status _
    shift
    for _ in 1 2 3; do
        status=0
        failing "$@" || status=$?
        cat "$log.job"
        [ $status = 0 ] && ended_well && ! lost_a_rail || return 1
        $condition && return
        [ -e "$log.job.late" ] || return 1
        echo "The job has ended before the faults had shown."
    done
    return 1
}

moves() { shows moved "$@"; }

# moves_often LEAST FAULTS…: the same, with at least so many migrations at both sides together.
moves_often() {
    local least=$1
    shift
    shows enough_moves "$@"
}
enough_moves() { echo "$(migrations) migrations" && [ "$(migrations)" -ge "$least" ]; }

# The subnet's own trace, written at the end of FAULTS, has the migration.
trace_shows_it() {
    moves "$@" && grep 'path migrated' "$log.job.trace"
}

# falls_back REASON FAULTS…: rails do not move; each process says so once, and failover saves the job.
falls_back() {
    local reason=$1
    shift
    survives "$@" && ! moved && grep -q "^  Reason: $reason" "$log.job" &&
        [ "$(grep -c '^A rail has no alternate path' "$log.job")" = 2 ]
}

# After a migration the first path is still down, so that nothing is loaded; then the second one fails.
software_takes_over() {
    local status=0
    failing "$@" || status=$?
    cat "$log.job"
    [ $status = 0 ] && ended_well && moved && lost_a_rail
}

# Without failover, the queue pair goes on over the path that it has, and the process says so once.
goes_on_after_an_error() {
    local status=0 preload=$results/bin-mpi/fail_migrations.so
    ${CC:-gcc} -O1 -Wall -Wextra -Werror -shared -fPIC -o "$preload" "$here/programs/fail_migrations.c" -ldl || return 1
    failing "$@" sh -c 'LD_PRELOAD=$0:$LD_PRELOAD exec "$@"' "$preload" -- both 2 16 200 4096 || status=$?
    cat "$log.job"
    [ $status = 0 ] && ended_well && grep -q '^  Reason: its HCA reports a path migration error' "$log.job" &&
        [ "$(grep -c '^A rail has no alternate path' "$log.job")" -le 2 ]
}

# shellcheck disable=SC2086 # lengths are words
apm_alone() {
    local pml on=0 quick
    for pml in ob1 coop; do
        quick=(--mca pml "$pml" --mca btl_coopib_timeout 11)
        check "lid.$pml" moves 'sleep 0.5; f lid 4 down' "${lids[@]}" -- "${quick[@]}" --mca btl_coopib_max_paths 1 --mca btl_coopib_apm lmc \
            -- both 3 $sizes
        check "lid_of_two_rails.$pml" moves 'sleep 0.5; f lid 5 down' "${lids[@]}" -- "${quick[@]}" --mca btl_coopib_apm auto -- both 3 $sizes
        check "port.$pml" moves 'sleep 0.5; f port h0/coop0/1 down' "${ports[@]}" -- --mca pml "$pml" --mca btl_coopib_apm port -- both 2 $sizes
        check "standby_port.$pml" moves 'sleep 0.5; f port h0/coop0/1 down' "${ports[@]}" -- --mca pml "$pml" --mca btl_coopib_num_rails 1 \
            --mca btl_coopib_apm port -- both 2 $sizes
        check "remote_port.$pml" moves 'sleep 0.5; f port h1/coop0/2 down' "${ports[@]}" -- "${quick[@]}" --mca btl_coopib_apm auto -- both 2 $sizes
        check "auto_takes_the_port.$pml" moves 'sleep 0.5; f port h0/coop0/1 down' "${both_kinds[@]}" -- --mca pml "$pml" --mca btl_coopib_apm auto \
            -- both 2 $sizes
        check "ping_pong.$pml" moves 'sleep 0.5; f port h0/coop0/1 down' "${ports[@]}" -- --mca pml "$pml" --mca btl_coopib_apm auto -- one 2 16 200 4096
        check "without_srq.$pml" moves 'sleep 0.5; f port h0/coop0/1 down' "${ports[@]}" --profile nosrq -- --mca pml "$pml" \
            --mca btl_coopib_apm auto -- both 2 $sizes
    done
    check "migration_error" goes_on_after_an_error 'sleep 0.5; f port h0/coop0/1 down' "${ports[@]}" -- --mca pml ob1 --mca btl_coopib_apm port
    check "off" ends_saying 'A rail of btl/coopib has failed' 'sleep 0.5; f lid 4 down' "${lids[@]}" -- --mca pml ob1 --mca btl_coopib_timeout 11 \
        --mca btl_coopib_max_paths 1 -- both 4 $sizes
    check "alternate_fails_too" ends_saying 'A rail of btl/coopib has failed' 'sleep 0.5; f lid 4 down; f lid 5 down' "${lids[@]}" -- --mca pml ob1 \
        --mca btl_coopib_timeout 11 --mca btl_coopib_max_paths 1 --mca btl_coopib_apm lmc -- both 4 $sizes
    check "trace_shows_it" trace_shows_it 'sleep 0.5; f port h0/coop0/1 down; sleep 1; f trace >"$output.trace"' "${ports[@]}" -- --mca pml coop \
        --mca btl_coopib_apm port -- both 3 $sizes
}

# Windows of two nodes, because one node would share their memory. Atomic operations are never repeated by software; the HCAs execute them once.
# A rank also needs a port for those on its own memory.
apm_of_one_sided() {
    local flaps='for i in 1 2 3; do sleep 0.4; f port h0/coop0/1 down; sleep 0.3; f port h0/coop0/1 up; done'
    local apart=("${ports[@]}" --virtual-hosts) osc=(--map-by node --mca pml ob1 --mca osc rdma --mca btl_coopib_apm port) on=0
    check "atomics_there_and_back" moves "$flaps" "${apart[@]}" -- "${osc[@]}" -- add 4 16
    check "puts" moves "$flaps" "${apart[@]}" -- "${osc[@]}" -- put 4 16 4096 65536 1048576
    check "gets" moves "$flaps" "${apart[@]}" -- "${osc[@]}" -- get 4 16 4096 65536 1048576
    check "epochs" moves "$flaps" "${apart[@]}" -- --map-by node --mca pml coop --mca osc multirail --mca btl_coopib_apm port \
        -- epoch 4 16 200 4096 65536
}

# shellcheck disable=SC2086 # lengths are words
apm_and_failover() {
    local pml
    local there_and_back='for i in 1 2 3; do for p in 1 2; do sleep 0.4; f port h0/coop0/$p down; sleep 0.4; f port h0/coop0/$p up; done; done'
    for pml in ob1 coop; do
        check "there_and_back.$pml" moves_often 8 "$there_and_back" "${ports[@]}" -- --mca pml "$pml" --mca btl_coopib_apm port -- both 6 $sizes
        check "returns_to_its_port.$pml" moves_often 4 'sleep 0.5; f port h0/coop0/1 down; sleep 0.5; f port h0/coop0/1 up' "${ports[@]}" -- \
            --mca pml "$pml" --mca btl_coopib_num_rails 1 --mca btl_coopib_interleave 0 --mca btl_coopib_apm port -- both 3 $sizes
        check "lid.failover.$pml" moves 'sleep 0.5; f lid 5 down' "${lids[@]}" -- --mca pml "$pml" --mca btl_coopib_timeout 11 \
            --mca btl_coopib_apm lmc -- both 3 $sizes
        # The second port of coop0 fails while the first one is still down; the rails of coop1 go on.
        check "cut_before_armed.$pml" software_takes_over 'sleep 0.5; f port h0/coop0/1 down; sleep 0.4; f port h0/coop0/2 down' "${ports[@]}" --hcas 2 -- \
            --mca pml "$pml" --mca btl_coopib_apm port -- both 3 $sizes
        # Both LIDs of coop0 at once, without an event: the HCA moves, and gives up there, too.
        check "alternate_fails_too.$pml" software_takes_over 'sleep 0.5; f lid 6 down; f lid 7 down' "${lids[@]}" --hcas 2 -- --mca pml "$pml" \
            --mca btl_coopib_timeout 11 --mca btl_coopib_max_paths 1 --mca btl_coopib_apm lmc -- both 4 $sizes
        check "noapm.$pml" falls_back 'the HCA of this process has no path migration' 'sleep 0.5; f port h0/coop0/1 down; sleep 0.5; f port h0/coop0/1 up' \
            "${ports[@]}" --profile noapm -- --mca pml "$pml" --mca btl_coopib_apm auto -- both 3 $sizes
        check "roce.$pml" falls_back 'RoCE has no path migration' 'sleep 0.5; f port h0/coop0/1 down; sleep 0.5; f port h0/coop0/1 up' \
            "${ports[@]}" --link-layer roce -- --mca pml "$pml" --mca btl_coopib_apm auto -- both 3 $sizes
    done
    check "no_other_path" falls_back 'one of the ports has only one LID' 'sleep 0.5; f port h0/coop1/1 down; sleep 0.5; f port h0/coop1/1 up' \
        --hosts 2 --hcas 2 -- --mca pml coop --mca btl_coopib_apm lmc -- both 3 $sizes
}

# Each LID of a port leads over a spine of its own. Other traffic fills cables between switches.
balances() { # CONDITION LOADED… -- MPIRUN ARGUMENT… -- PROGRAM ARGUMENT…
    local condition=$1 loads='sleep 0.7;'
    shift
    while [ "$1" != -- ]; do loads+=" f link $1 load 220MB/s --one-way;"; shift; done
    shift
    shows "$condition" "$loads" --topology "$two_spines" -- --mca btl_coopib_max_paths 1 --mca btl_coopib_apm lmc "$@"
}
balance_says() { grep -q "^  rail 0: .* go over path [12] of 2; measured: $1 MB/s\$" "$log.job"; }
slow='[1-9][0-9]*' fast='[12][0-9][0-9]'
leaves_loaded_cable() { grep -q '^btl/coopib: .* has moved to .*: congestion$' "$log.job" && balance_says "$slow, $fast"; }
stays_on_free_path() { ! moved && balance_says "$fast, -"; }
returns() { [ "$(migrations)" -ge 2 ] && [ "$(migrations)" -le 16 ] && balance_says "$slow, $slow"; }
# Without balance, nothing is measured: the bandwidth shows the load.
stays_on_loaded_path() { ! moved && awk '/^MB\/s:/ { for (i = NF - 9; i <= NF; ++i) sum += $i } END { exit !(sum > 0 && sum < 1000) }' "$log.job"; }

# The alternate path is dead, which nothing tells. The queue pair is lost there once. It returns, and does not try again.
gives_up_a_dead_path() { # MPIRUN ARGUMENT…
    local status=0
    failing 'f link leaf0-spine1 down; sleep 0.5; f link leaf0-spine0 load 220MB/s --one-way' --topology "$two_spines" -- \
        --mca btl_coopib_max_paths 1 --mca btl_coopib_apm lmc --mca btl_coopib_apm_balance 1 "$@" -- stream 6 1048576 || status=$?
    cat "$log.job"
    [ $status = 0 ] && ended_well && grep -q ': congestion$' "$log.job" &&
        [ "$(awk '/ failed [0-9]+ times, / { n += $4 } END { print n + 0 }' "$log.job")" = 2 ]
}

apm_for_balance() {
    local pml apart two_spines=$prefix/share/openmpi-coop/fabric/two-spines.topology
    for pml in ob1 coop; do
        apart=(--mca pml "$pml" --mca btl_coopib_apm_balance 1)
        check "balance.leaves_a_loaded_cable.$pml" balances leaves_loaded_cable leaf0-spine0 -- "${apart[@]}" -- stream 4 1048576
        check "balance.both_ways.$pml" balances leaves_loaded_cable leaf0-spine0 leaf1-spine0 -- "${apart[@]}" -- both 4 1048576 200 65536
        check "balance.stays_on_a_free_path.$pml" balances stays_on_free_path -- "${apart[@]}" -- stream 3 1048576
        check "balance.returns_if_both_are_loaded.$pml" balances returns leaf0-spine0 leaf0-spine1 -- "${apart[@]}" -- stream 5 1048576
        check "balance.off.$pml" balances stays_on_loaded_path leaf0-spine0 -- --mca pml "$pml" -- stream 4 1048576
        check "balance.dead_alternate.$pml" gives_up_a_dead_path --mca pml "$pml"
    done
}

# coop_apm moves queue pairs with plain verbs: a line for 1, 2 and 4 of them, and no time is 0.
benchmark_moves() { # PATH SUBNET OPTION…
    local path=$1
    shift
    on_subnet "$@" -- mpirun -np 2 --oversubscribe --mca btl tcp,self --mca pml ob1 --mca mpi_yield_when_idle 1 \
        "$prefix/libexec/ompi-coop/coop_apm" -q 4 -n 1 >"$log.apm" 2>&1 || { cat "$log.apm"; return 1; }
    cat "$log.apm"
    grep -q "^# coop_apm: alternate path: $path;" "$log.apm" &&
        awk '/^ / { ++lines; for (i = 1; i <= NF; ++i) wrong += $i <= 0 } END { exit lines != 3 || wrong }' "$log.apm"
}

part_apm() {
    # shellcheck disable=SC2034 # by_turns is for lib/report.sh
    local by_turns=yes
    log=$results/log/apm.build.log
    prepare_failover >"$log" 2>&1 || { report_fail apm.build; return; }
    apm_alone
    apm_of_one_sided
    apm_and_failover
    apm_for_balance
    check "benchmark.port" benchmark_moves 'port 2' "${ports[@]}"
    check "benchmark.lid" benchmark_moves 'second LID' "${lids[@]}"
}
