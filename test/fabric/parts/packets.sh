# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Blocking messages of 16 to 64 KiB between nodes that go in one packet, through a ring of btl/coopib: the trials send some of them so, whatever is
# faster. Every byte is checked, and the report has to name the reason; where such packets are impossible, it must not.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

reason="one packet is quicker, or is being tried"

# packets_job GROUND BENCHMARK [ARGUMENT…] [-- MPIRUN ARGUMENT…]
packets_job() {
    local program=$2 ground=() arguments=()
    read -ra ground <<<"$1"
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do arguments+=("$1") && shift; done
    [ $# -eq 0 ] || shift
    limit=60 on_subnet --hosts 2 "${ground[@]}" --virtual-hosts -- mpirun -np 2 --mca pml coop --mca btl coopib,self \
        --mca pml_coop_report 1 --mca mpi_yield_when_idle 1 "$@" "$prefix/libexec/ompi-coop/$program" -d -m 20000:40000 "${arguments[@]}" 2>&1
}

go_in_packets() {
    local output
    output=$(packets_job "$@") || { echo "$output"; return 1; }
    echo "$output"
    grep -q "$reason\$" <<<"$output"
}

go_otherwise() {
    local output
    output=$(packets_job "$@") || { echo "$output"; return 1; }
    echo "$output"
    ! grep -q "$reason\$" <<<"$output"
}

part_packets() {
    local blocking="coop_latency -i 20 -b 11" streams="coop_bw --blocking -i 20 -b 3" nonblocking="coop_bw -i 20 -b 3"
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # shellcheck disable=SC2086 # the words of a benchmark
    {
        check blocking.one_rail go_in_packets "" $blocking
        check blocking.two_rails go_in_packets "--hcas 2" $blocking
        check blocking.threads go_in_packets "" $blocking -L multiple
        check blocking.slow_rails go_in_packets "--hcas 2 --rate 250MB/s" $blocking
        check streams.one_rail go_in_packets "" $streams
        check streams.without_srq go_in_packets "--hcas 2 --profile nosrq" $streams
        check streams.few_requests go_in_packets "--hcas 2" $streams -- --mca btl_coopib_send_depth 4
        check streams.small_ring go_in_packets "" $streams -- --mca btl_coopib_ring_slots 3
        check otherwise.failover go_otherwise "--hcas 2" $blocking -- --mca btl_coopib_failover 1
        check otherwise.eager_limit go_otherwise "" $blocking -- --mca btl_coopib_eager_limit 8192
        check otherwise.short_ring go_otherwise "" $blocking -- --mca btl_coopib_ring_bytes 16576
        check otherwise.no_ring go_otherwise "" $blocking -- --mca btl_coopib_ring_threshold 0
        check otherwise.any_order go_otherwise "" $blocking -- --mca btl_coopib_ring_in_order no
        check otherwise.given_protocol go_otherwise "" $blocking -- --mca pml_coop_protocol rget
        check otherwise.nobody_waits go_otherwise "" $nonblocking
    }
}
