# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Jobs that outlive the failure of rails (btl_coopib_failover). The program of test/fabric checks the number and every byte of each message.
# shellcheck disable=SC2154 # variables of tests

# outlives PML SECONDS FAULT: the fault comes when the job has begun, takes a rail away, and gives it back. Messages flow for SECONDS.
outlives() {
    local -x COOP_TEST_STARTED=$log.started
    rm -f "$COOP_TEST_STARTED"
    limit=150 job "$1" --mca btl_coopib_failover 1 --mca btl_coopib_report 1 -- "$bin/failover" both "$2" 16 4096 65536 >"$log.job" 2>&1 &
    job=$!
    until [ -e "$COOP_TEST_STARTED" ]; do
        kill -0 $job 2>/dev/null || { ended_with; return 1; }
        sleep 0.1
    done
    sleep 1
    "$3"
    ended_with && grep -q '^failover: all right' "$log.job" && grep -q '^btl/coopib: .* is lost: ' "$log.job" &&
        grep -q '^btl/coopib: .* is back after ' "$log.job"
}

packets_are_lost() { lose_all a1 b1 && sleep 3 && lose_nothing a1 b1; }
all_packets_are_lost() { lose_all a0 b0 a1 b1 && sleep 3 && lose_nothing a0 b0 a1 b1; }
# The kernel forgets the route of a1 (guest/rails.sh) with its link and with its address.
restore_route() { ip route replace 10.0.1.2/32 dev a1 src 10.0.1.1 table 103; }
link_is_down() { ip link set a1 down && sleep 2 && ip link set a1 up && restore_route; }
address_is_deleted() {
    ip addr del 10.0.1.1/24 dev a1 && sleep 2 && ip addr add 10.0.1.1/24 dev a1 noprefixroute && restore_route
}

part_failover() {
    check failover.packets_of_a_rail_are_lost.coop outlives coop 12 packets_are_lost
    check failover.packets_of_a_rail_are_lost.ob1 outlives ob1 12 packets_are_lost
    check failover.link_is_down.coop outlives coop 12 link_is_down
    check failover.address_is_deleted.coop outlives coop 14 address_is_deleted
    check failover.all_packets_are_lost.ob1 outlives ob1 15 all_packets_are_lost
}
