# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Random traffic over vader, tcp and the cluster, with the default protocol, rget, rput and send (coop.sh has the others), with and
# without threads.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# storm NAME GROUND NP MESSAGES ARGUMENT…: arguments before -- are for mpirun, those after it for the storm.
storm() {
    local name=$1 ground=$2 np=$3 messages=$4 for_mpirun=()
    shift 4
    while [ $# -gt 0 ] && [ "$1" != -- ]; do for_mpirun+=("$1") && shift; done
    [ $# = 0 ] || shift
    # With sanitizers every byte costs several times as much.
    [ -z "$san" ] || messages=$((messages / 8))
    check "$name" launch "$ground" "$np" "${for_mpirun[@]}" "$bin/storm" --messages "$messages" "$@"
}

# A sabotaged storm must fail with the given words.
storm_notices() {
    local how=$1 words=$2
    ends_with_an_error launch_and_keep vader 2 -x LD_PRELOAD="$bin/saboteur.so" -x SABOTAGE="$how" -x SABOTAGE_AT=40 \
        "$bin/storm" --messages 2000 --stall 3 || return 1
    grep -a "$words" "$log.job"
}

part_storm() {
    local seed protocol ground grounds=(vader)
    if everywhere || ! cluster_possible; then grounds+=(tcp); fi
    if cluster_possible; then grounds+=(cluster); else report_skip storm.cluster "$no_cluster" "$(if everywhere; then echo 8; else echo 1; fi)"; fi
    local -A ranks=([vader]=4 [tcp]=3 [cluster]=6)

    storm storm.pair_over_vader vader 2 4000 -- --seed 1
    for ground in "${grounds[@]}"; do
        storm "storm.threads_over_$ground" "$ground" "${ranks[$ground]}" 2000 -- --seed 3 --threads 3
        everywhere || [ "$ground" != cluster ] || continue # the code of both transports, which the threads have taken
        storm "storm.group_over_$ground" "$ground" "${ranks[$ground]}" 3000 -- --seed 2
        # Only short messages, but many more of them.
        storm "storm.short_messages_over_$ground" "$ground" "${ranks[$ground]}" 12000 -- --seed 4 --max-size 3000
    done
    storm storm.five_ranks_with_more_threads_than_cores vader 5 2000 -- --seed 5 --threads 4 --max-size 100000
    if [ "$pml" = coop ]; then
        [ "$long" = yes ] || grounds=(vader)
        for ground in "${grounds[@]}"; do
            for protocol in rget rput send; do
                [ "$protocol $ground" != "rget tcp" ] || continue # tcp has no get: rput
                storm "storm.protocol_${protocol}_over_$ground" "$ground" "${ranks[$ground]}" 1500 \
                    --mca pml_coop_protocol $protocol -- --seed 6
            done
            storm "storm.threads_by_rput_over_$ground" "$ground" "${ranks[$ground]}" 1500 --mca pml_coop_protocol rput -- --seed 7 --threads 3
            # Many short operations per message, with limits below those of any transport.
            storm "storm.small_chunks_over_$ground" "$ground" 3 1000 --mca pml_coop_rdma_chunk 4096 --mca pml_coop_rdma_depth 1 \
                --mca pml_coop_eager_limit 64 --mca pml_coop_send_depth 1 -- --seed 8
        done
    fi
    if [ -z "$san" ] && [ "$pml" = coop ]; then
        check storm.notices_a_flipped_bit storm_notices flip 'FAILED: .* byte .* is wrong'
        check storm.notices_a_lost_message storm_notices drop 'NO PROGRESS'
        check storm.notices_a_doubled_message storm_notices double 'FAILED\|NO PROGRESS'
    fi
    [ "$long" = yes ] || return 0
    for seed in 101 102 103 104 105 106; do
        for ground in "${grounds[@]}"; do
            storm "storm.long_${seed}_over_$ground" "$ground" "${ranks[$ground]}" 20000 -- --seed $seed
            storm "storm.long_threads_${seed}_over_$ground" "$ground" "${ranks[$ground]}" 10000 -- --seed $seed --threads 3
        done
    done
}
