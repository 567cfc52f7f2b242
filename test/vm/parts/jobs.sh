# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Jobs over both rails: the storm of test/mpi, which checks every byte, with every policy.
# shellcheck disable=SC2154 # variables of tests

policies=(binding round_robin window_round_robin weighted_round_robin shortest_queue even_striping weighted_striping adaptive_striping bss epc)

# With every policy the rails take turns for short messages, so both rails must have been used.
storm_by() { # PML POLICY
    on_every_wire 40000 storm_of 120 "$1" --mca btl_coopib_large_policy "$2"
}

# During a job each rank has a shared receive queue on each of its two devices; before and after it there are none.
queues_are_shared() {
    local job most=0 now
    [ "$(rdma resource show srq | wc -l)" = 0 ] || { echo "there are some before the job"; return 1; }
    # The default policy, epc, as in storm_by.
    on_every_wire 40000 storm_of 120 ob1 &
    job=$!
    while kill -0 $job 2>/dev/null; do
        now=$(rdma resource show srq | wc -l)
        [ "$now" -le "$most" ] || { most=$now && rdma resource show srq; }
        sleep 0.1
    done
    wait $job || return 1
    echo "$most shared receive queues at most"
    [ "$most" = 4 ] && [ "$(rdma resource show srq | wc -l)" = 0 ]
}

part_jobs() {
    local i pml other
    # test/fabric covers all of them. The first job has the default, epc.
    [ "$long" = yes ] || policies=(adaptive_striping bss)
    check jobs.queues_are_shared queues_are_shared
    for i in "${!policies[@]}"; do
        pml=ob1 other=coop
        [ $((i % 2)) = 0 ] || pml=coop other=ob1
        check "jobs.$pml.${policies[i]}" storm_by $pml "${policies[i]}"
        [ "$long" = no ] || check "jobs.$other.${policies[i]}" storm_by $other "${policies[i]}"
    done
    [ "$long" = yes ] || check jobs.coop.epc storm_by coop epc
    [ "$long" = no ] || np=4 check jobs.ob1.four_ranks storm_of 120 ob1
}
