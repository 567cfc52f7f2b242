# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Functions for the parts: jobs on the two nodes, and the byte counters of the rails' wires.
# shellcheck disable=SC2154 # variables of tests

# job PML [MPIRUN ARGUMENT…] -- PROGRAM…: two ranks, one on each node. A waiting rank yields: the machine has two cores, and the
# kernel processes the packets on them.
job() {
    local pml=$1 arguments=()
    shift
    while [ "$1" != -- ]; do arguments+=("$1"); shift; done
    shift
    time_limit "${limit:-120}" mpirun -np "${np:-2}" --oversubscribe --bind-to none --mca pml "$pml" --mca btl coopib,self \
        --mca mpi_yield_when_idle 1 "${arguments[@]}" "$here/guest/node" "$@" </dev/null
}

# storm_of MESSAGES PML [MPIRUN ARGUMENT…]: checks every byte.
storm_of() {
    local messages=$1 pml=$2
    shift 2
    job "$pml" "$@" -- "$bin/storm" --seed 11 --messages "$messages" --max-size 1000000
}

# one_sided PML: two ranks with different host names, because osc/rdma uses the transport only between hosts.
one_sided() {
    time_limit 120 mpirun --host v0:1,v1:1 --mca plm_rsh_agent "$here/../mpi/vcluster/agent" -np 2 --map-by node --bind-to none \
        --mca pml "$1" --mca btl coopib,self --mca osc rdma --mca osc_rdma_btls coopib --mca btl_coopib_large_policy even_striping \
        --mca mpi_yield_when_idle 1 "$here/guest/node" "$bin/one_sided" 18 </dev/null
}

# The number of bytes that have arrived at the end of a rail.
arrived_at() { cat "/sys/class/net/$1/statistics/rx_bytes"; }

ends=(a0 b0 a1 b1)

# on_every_wire BYTES COMMAND…: runs the command; meanwhile at least BYTES bytes must arrive at each end of each rail.
on_every_wire() {
    local least=$1 end before=() i
    shift
    for end in "${ends[@]}"; do before+=("$(arrived_at "$end")"); done
    "$@" || return
    for i in "${!ends[@]}"; do
        end=$(($(arrived_at "${ends[i]}") - before[i]))
        echo "${ends[i]}: $end bytes have arrived"
        [ $end -ge "$least" ] || { echo "too few: the rail has not been used"; return 1; }
    done
}

# lose_all END…: everything that is sent at these ends of rails is lost. lose_nothing END…: they work again.
lose_all() { for end in "$@"; do tc qdisc add dev "$end" root netem loss 100%; done; }
lose_nothing() { for end in "$@"; do tc qdisc del dev "$end" root; done; }

# Waits for the job whose process is $job and whose output is in $log.job; prints its output, returns its status.
ended_with() {
    local status=0
    wait "$job" || status=$?
    cat "$log.job"
    return $status
}
