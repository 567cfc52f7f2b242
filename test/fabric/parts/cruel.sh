# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# btl/coopib with failover, on a subnet that does what networks do rarely: queue pairs become mute, messages are executed but not
# acknowledged, acknowledged but not delivered, late or repeated, and ports come back with other addresses. The program checks the
# number and every byte of each message; after each fault the rail is used again.
# shellcheck disable=SC2154,SC2016 # variables of run and lib/launch.sh; expanded by the shell on the subnet

# shellcheck source=test/fabric/parts/failover.sh
. "$here/parts/failover.sh"

# The rail does not work when the processes connect, and works later. It was never lost.
opens_later() {
    at_first='f fault h1/coop1/1 drop --for 100s' failing "$@" || { cat "$log.job"; return 1; }
    cat "$log.job"
    grep -q '^failover: all right' "$log.job" && grep -q '^btl/coopib: .* rail 1 .* is back after ' "$log.job" && ! grep -q ' is lost: ' "$log.job"
}

# A port is down, and comes back with another address. The peer has to learn it.
moves() { # UP-OPTION
    echo "for i in 1 2; do sleep 0.5; f port h0/coop1/1 down; sleep 0.3; f port h0/coop1/1 up --$1 new; done"
}

# Faults after which nothing has to be repaired by hand, or which repair themselves. HCA 1 of each host.
declare -A cruelties=(
    [mute]='for i in 1 2; do sleep 0.5; f fault h0/coop1 mute-qp; sleep 1.5; done'
    [mute_for_good]='sleep 0.5; f fault h0/coop1 mute-qp-for-good; sleep 3'
    [executed_but_not_acknowledged]='for i in 1 2 3 4; do sleep 0.3; f fault h1/coop1/1 cut --count $i; sleep 0.3; f port h1/coop1/1 up; done; f fault clear
        f port h1/coop1/1 up'
    [late]='for i in 1 2 3; do sleep 0.4; f fault h0/coop1/1 late 50ms --count 20; sleep 0.1; f port h0/coop1/1 down; sleep 0.1; f port h0/coop1/1 up; done; f fault clear'
    [datagrams_come_twice]='f fault all double --for 10s; for i in 1 2 3; do sleep 0.4; f port h0/coop1/1 down; sleep 0.3; f port h0/coop1/1 up; done'
    [other_lid]=$(moves lid)
    [other_gid]=$(moves gid)
)

# The HCA goes down even if fewer messages have come than the rule counts: no real one loses acknowledged messages and works
# on, and nobody could notice the loss.
acknowledged_but_not_delivered='for i in 1 3 9; do sleep 0.5; f fault h1/coop1 ack-and-die --count $i; sleep 0.5; f hca h1/coop1 down; f fault clear
        f hca h1/coop1 up; done'
first_port='sleep 0.5; f port h0/coop0/1 down'

# shellcheck disable=SC2086 # lengths are words
cruel_to_messages() {
    local pml name sizes='16 200 4096 12000 65536'
    local rails=(--hosts 2 --hcas 2)
    for pml in ob1 coop; do
        for name in "${!cruelties[@]}"; do
            check "$name.$pml" survives "${cruelties[$name]}" "${rails[@]}" -- --mca pml "$pml" -- both 5 $sizes
        done
        # One side sends, so that the other one does not notice it first.
        check "mute.stream.$pml" survives "${cruelties[mute]}" "${rails[@]}" -- --mca pml "$pml" -- stream 5 $sizes
        check "mute.inline.$pml" survives "${cruelties[mute]}" "${rails[@]}" -- --mca pml "$pml" -- one 5 16
        check "mute.one_rail.$pml" survives 'sleep 0.5; f fault h0/coop0 mute-qp; sleep 1.5' --hosts 2 -- --mca pml "$pml" --mca btl_coopib_timeout 11 \
            -- both 4 $sizes
        # The silence of its own queue pair is all that a process learns of the end of its only rail.
        check "mute.one_rail.stream.$pml" survives 'sleep 0.5; f fault h0/coop0 mute-qp; sleep 1.5' --hosts 2 -- --mca pml "$pml" \
            --mca btl_coopib_timeout 11 -- stream 4 16
        # The first datagram of each queue pair arrives, and no other one.
        check "mute.datagrams.$pml" survives 'sleep 0.5; for q in $(f counters --qp | awk "/ UD /{ print \$1 }"); do f fault qp:$q mute-qp; done
            f port h0/coop0/1 down; sleep 0.3; f port h0/coop0/1 up; sleep 1' --hosts 2 -- --mca pml "$pml" -- both 4 $sizes
        check "acknowledged_but_not_delivered.$pml" survives "$acknowledged_but_not_delivered" "${rails[@]}" -- --mca pml "$pml" -- both 5 $sizes
        # A known fault: one job in several ends with an error, although all is well.
        [ "$long" = no ] || check "roce.other_gid.$pml" survives "${cruelties[other_gid]}" "${rails[@]}" --link-layer roce -- --mca pml "$pml" -- both 4 $sizes
        check "other_lid.one_rail.$pml" survives 'sleep 0.5; f port h0/coop0/1 down; sleep 0.3; f port h0/coop0/1 up --lid new' --hosts 2 -- \
            --mca pml "$pml" -- both 4 $sizes
        check "first_port_of_an_hca_is_dead.$pml" survives 'sleep 0.5; f port h0/coop0/1 down; sleep 0.5; f port h1/coop0/2 down; sleep 0.5
            f port h1/coop0/2 up; sleep 0.5; f port h0/coop0/1 up' --hosts 2 --ports 2 -- --mca pml "$pml" -- both 5 $sizes
        check "the_only_hca_comes_back.$pml" survives 'sleep 0.5; f hca h1/coop0 down; sleep 0.5; f hca h1/coop0 up' --hosts 2 -- --mca pml "$pml" \
            --mca btl_coopib_timeout 11 -- both 4 $sizes
        # Its peer learns it over the second port.
        back=no check "first_port_of_an_hca_is_dead_for_good.$pml" survives "$first_port" --hosts 2 --ports 2 -- --mca pml "$pml" -- both 4 $sizes
        check "rail_opens_later.$pml" opens_later 'sleep 1; f fault clear' "${rails[@]}" -- --mca pml "$pml" -- both 6 $sizes
    done
}

# Windows of two nodes, because one node would map them.
cruel_to_windows() {
    local name kind faults apart=(--hosts 2 --virtual-hosts --hcas 2) osc=(--map-by node --mca pml coop --mca osc multirail)
    for name in mute mute_for_good late acknowledged_but_not_delivered other_lid; do
        faults=${cruelties[$name]:-$acknowledged_but_not_delivered}
        for kind in put get epoch; do
            check "windows.$kind.$name" survives "$faults" "${apart[@]}" -- "${osc[@]}" -- $kind 5 16 200 4096 65536
        done
    done
}

# Without a rule of failover, a test fails, in one of several jobs (btl/coopib/rules.h). $wrong: the line that such a job has to write;
# empty: it may also hang.
fails_without() { # RULE, then as survives
    local rule=$1 faults=$2 options=() attempt
    shift 2
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    for attempt in 1 2 3 4 5 6; do
        limit=25 ${judge:-survives} "$faults" "${options[@]}" -- -x "COOP_TEST_FAILOVER_WITHOUT=$rule" "$@" && continue
        echo "job $attempt fails"
        grep -q "switched off the rule '$rule'" "$log.job" && grep -q '^started' "$log.job" && grep -q "${wrong:-}" "$log.job"
        return
    done
    return 1
}

# The job does not fail with the rule.
notices_the_rule() { # RULE, then as survives
    ${judge:-survives} "${@:2}" && fails_without "$@"
}

# All queue pairs for datagrams lose what they send, so that the peer does not learn of a failure for some time.
datagrams_are_lost='for q in $(f counters --qp | awk "/ UD /{ print \$1 }"); do f fault qp:$q drop --for 900ms; done'

# Faults under which a rule about repeated requests matters each time.
declare -A doubts=(
    # Writes wait until the peer has closed its end. Their message is lost with them.
    [followers]="for i in 1 2 3; do sleep 0.4; $datagrams_are_lost; f port h0/coop1/1 down; sleep 1; f port h0/coop1/1 up; done"
    # What was under way is executed after the sender has repeated it.
    [closed]="for i in 1 2 3; do sleep 0.4; $datagrams_are_lost; f fault h0/coop1/1 late 20ms --count 20; sleep 0.045; f port h0/coop1/1 down
        sleep 1; f port h0/coop1/1 up; done"
    # All is executed, and no acknowledgement comes. When the timer expires, the peer's process has gone on. (The count is never reached.)
    [arrived]='for i in 1 2 3; do sleep 0.4; f fault h0/coop1/1 cut --count 1000000 --for 300ms; sleep 0.6; done'
)

rules_about_repetition() {
    local quick=(--mca btl_coopib_timeout 11) apart=(--hosts 2 --virtual-hosts --hcas 2) osc=(--map-by node --mca pml coop --mca osc multirail) name kind
    for name in followers closed arrived; do
        kind=epoch
        [ $name != closed ] || kind=watch
        wrong='^failover: FAILED: rank 1' check "without.$name" notices_the_rule $name "${doubts[$name]}" "${apart[@]}" -- "${osc[@]}" "${quick[@]}" \
            -- $kind 5 65536
    done
}

# shellcheck disable=SC2086 # lengths are words
rules_that_are_off() {
    local sizes='16 200 4096 12000 65536' two=(--hosts 2 --hcas 2) coop=(--mca pml coop)
    local flaps='for i in 1 2 3; do sleep 0.4; f port h0/coop1/1 down; sleep 0.3; f port h0/coop1/1 up; done'
    local cuts='for i in 1 2 3 4; do sleep 0.3; f fault h1/coop1/1 cut --count $i; sleep 0.3; f port h1/coop1/1 up; done'
    check without.duplicates fails_without duplicates "$cuts" "${two[@]}" -- "${coop[@]}" --mca btl_coopib_ring_threshold 0 -- both 4 $sizes
    check without.flushed fails_without flushed "$flaps" "${two[@]}" -- "${coop[@]}" -- both 4 $sizes
    check without.held fails_without held "$acknowledged_but_not_delivered" "${two[@]}" -- "${coop[@]}" -- both 5 $sizes
    check without.mute fails_without mute "${cruelties[mute]}" "${two[@]}" -- "${coop[@]}" -- both 5 $sizes
    check without.destroy fails_without destroy "${cruelties[mute_for_good]}" "${two[@]}" -- "${coop[@]}" -- both 5 $sizes
    check without.address fails_without address 'sleep 0.5; f port h0/coop0/1 down; sleep 0.3; f port h0/coop0/1 up --lid new' --hosts 2 -- "${coop[@]}" \
        -- both 4 $sizes
    back=no check without.ports fails_without ports "$first_port" --hosts 2 --ports 2 -- "${coop[@]}" -- both 4 $sizes
    # osc/rdma takes a lock by a compare-and-swap. When it is repeated, the process waits for the lock that it has.
    judge=survives_or_atomic check without.atomics notices_the_rule atomics "${cuts//coop1/coop0}" --hosts 2 --virtual-hosts --hcas 2 -- \
        --map-by node --mca pml ob1 --mca osc rdma -- add 3 16
    judge=opens_later check without.unopened fails_without unopened 'sleep 1; f fault clear' "${two[@]}" -- "${coop[@]}" -- both 6 $sizes
}

part_cruel() {
    # shellcheck disable=SC2034 # by_turns is for lib/report.sh
    local by_turns=yes
    log=$results/log/cruel.build.log
    prepare_failover >"$log" 2>&1 || { report_fail cruel.build; return; }
    cruel_to_messages
    [ "$long" = no ] && return
    cruel_to_windows
    rules_about_repetition
    rules_that_are_off
}
