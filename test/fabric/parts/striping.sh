# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# How messages are spread over the rails of btl/coopib. Only shares and ratios are asserted. Where they depend on the rates
# (pairs_of_ranks), the links are so slow that the machine's speed does not matter; elsewhere the rates are unlimited.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

striping_build() {
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    bench=$prefix/libexec/ompi-coop
    mkdir -p "$results/bin-mpi"
    rail_pairs=$results/bin-mpi/rail_pairs
    storm=$(mpi_program storm) || return 1
    [ -x "$bench/coop_bw" ] && mpicc -O1 -Wall -Wextra -Werror -o "$rail_pairs" "$here/programs/rail_pairs.c"
}

# --- site_03: pairing of ports -----------------------------------------------------------------------------------------------

# links_allow RATE0 RATE1: reads the counters of the subnet and prints which fraction of RATE0 + RATE1 (MB/s) this distribution of bytes
# allows: all bytes, divided by the time of the link that takes longest. The result does not depend on the machine's speed.
links_allow() {
    awk -v rate0="$1" -v rate1="$2" '$1 ~ "^h[01]/coop[01]/1$" && $2 == "active" {
            rate = substr($1, 8, 1) == 0 ? rate0 : rate1
            for (i = 5; i <= 6; ++i) if ($i / rate > longest) longest = $i / rate
            if ($1 ~ "^h0") all += $5
        }
        END { if (longest > 0) print all / longest / (rate0 + rate1); else print 0 }'
}

# pairs_of_ranks LEAST PML RANKS BINDING MESSAGES [MPIRUN ARGUMENT…]: RANKS ranks on each of two hosts, whose HCAs have 50 and 20 MB/s.
# Each rank of the first host sends to each rank of the second, one pair after the other. links_allow must be at least LEAST.
pairs_of_ranks() {
    local output reached least=$1 pml=$2 ranks=$3 binding=$4 messages=$5
    shift 5
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --rate 50MB/s,20MB/s --virtual-hosts --slots "$ranks" --counters -- mpirun -np $((2 * ranks)) \
        --bind-to "$binding" --mca pml "$pml" --mca btl coopib,self --mca mpi_yield_when_idle 1 "$@" "$rail_pairs" "$messages" 2>&1) ||
        { local status=$?; echo "$output"; return $status; }
    echo "$output"
    reached=$(links_allow 50 20 <<<"$output")
    echo "the distribution of bytes allows $reached of the sum of both rates"
    [ "$(grep -c '^local ranks .* MB/s$' <<<"$output")" = $((ranks * ranks)) ] && awk -v x="$reached" -v least="$least" 'BEGIN { exit !(x >= least && x <= 1) }'
}

# Each leaf has one HCA of each of three hosts. Traffic between HCAs with the same index stays below its leaf: no byte may be counted
# between a leaf and a spine.
crosses_no_spine() { # PML [MPIRUN ARGUMENT…]
    local output pml=$1
    shift
    output=$(limit=60 on_subnet --hosts 3 --hcas 2 --rail-optimised 2 --virtual-hosts --slots 2 --counters -- mpirun -np 6 --mca pml "$pml" \
        --mca btl coopib,self --mca mpi_yield_when_idle 1 "$@" "$storm" --seed 3 --messages 300 2>&1) || { local status=$?; echo "$output"; return $status; }
    echo "$output"
    awk '/ -> spine|^spine/ { ++cables; crossed += $(NF - 2) } $1 ~ "^h[012]/coop[01]/1$" && $2 == "active" && $5 > 0 { ++used }
        END { print cables " links to and from spines, " crossed " bytes, " used " ports used"; exit !(cables == 8 && crossed == 0 && used == 6) }' <<<"$output"
}

# The two ranks assign their HCAs to planes in opposite order, and the weights are 9 and 1: bytes must pass only between the first HCA
# of one host and the second of the other, and one of these two pairs must carry most of them.
pairs_planes() {
    local output
    # shellcheck disable=SC2016 # expanded where a rank starts
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --virtual-hosts --counters -- mpirun -np 2 --map-by node --mca pml coop --mca btl coopib,self \
        --mca mpi_yield_when_idle 1 --mca btl_coopib_large_policy weighted_striping --mca btl_coopib_weights 9,1 sh -c '
            [ "$OMPI_COMM_WORLD_RANK" = 0 ] && planes=coop0=1,coop1=2 || planes=coop0=2,coop1:1=1
            OMPI_MCA_btl_coopib_pairing=$planes exec "$@"' sh "$rail_pairs" 4 2>&1) || { local status=$?; echo "$output"; return $status; }
    echo "$output"
    awk '$1 ~ "^h[01]/coop[01]/1$" && $2 == "active" { sent[$1] = $5; received[$1] = $6 } END {
            same = sent["h0/coop0/1"] - received["h1/coop1/1"]; other = sent["h0/coop1/1"] - received["h1/coop0/1"]
            ratio = sent["h0/coop0/1"] / sent["h0/coop1/1"]
            exit !(same < 10000 && same > -10000 && other < 10000 && other > -10000 && (ratio > 8 || ratio < 1 / 8)) }' <<<"$output"
}

# num_rails 1: each process uses one HCA for all its peers, and the two processes of a node use different ones.
one_rail_of_two() {
    local output
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --virtual-hosts --slots 2 -- mpirun -np 4 --mca pml coop --mca btl coopib,self \
        --mca btl_coopib_num_rails 1 --mca btl_coopib_report 1 --mca mpi_yield_when_idle 1 "$rail_pairs" 2 2>&1) || { local status=$?; echo "$output"; return $status; }
    echo "$output"
    awk '/^btl.coopib: rank/ { rank = $3 }
        / coop[01] / { ++lines; if (rank in hca && hca[rank] != $2) exit 1; hca[rank] = $2 }
        END { exit !(lines >= 8 && length(hca) == 4 && hca[0] != hca[1] && hca[2] != hca[3]) }' <<<"$output"
}

striping_pairs() {
    local ranks pml
    for pml in ob1 coop; do check "site_03.no_byte_crosses_a_spine.$pml" crosses_no_spine "$pml"; done
    check site_03.no_byte_crosses_a_spine.bound crosses_no_spine coop --bind-to core:overload-allowed
    check site_03.planes_are_paired_as_each_host_says pairs_planes
    check site_03.with_one_rail_each_process_keeps_its_hca one_rail_of_two
    # The weights match the rates exactly, so a single pair (of sixteen) with crossed ports would lower the result below 0.92. All pairs
    # number their rails alike, so one list of weights fits them all.
    local weights=(--mca btl_coopib_large_policy weighted_striping --mca btl_coopib_weights "5,2")
    check site_03.each_pair_of_local_ranks_has_the_sum.ob1.2 pairs_of_ranks 0.95 ob1 2 none 3 "${weights[@]}"
    for ranks in 1 2 4; do
        check "site_03.each_pair_of_local_ranks_has_the_sum.$ranks" pairs_of_ranks 0.95 coop $ranks none 3 "${weights[@]}"
        check "site_03.each_pair_of_local_ranks_has_the_sum.bound.$ranks" pairs_of_ranks 0.95 coop $ranks core:overload-allowed 3 "${weights[@]}"
    done
    # Without given weights, all pairs start with equal ones, because HCAs as slow as these all report 250 MB/s. Each pair then learns
    # its own.
    check site_03.each_pair_learns_its_weights pairs_of_ranks 0.8 coop 2 none 24
}

# --- site_27: messages too short for striping --------------------------------------------------------------------------------

# striped_whole PML ARGUMENT…: two hosts with two rails, and btl_coopib_min_stripe above the message size of coop_bw, so that messages
# are not striped. The messages must still be spread over both rails.
striped_whole() {
    local pml=$1 output
    shift
    output=$(limit=30 on_subnet --hosts 2 --hcas 2 --virtual-hosts -- mpirun -np 2 --map-by node --mca pml "$pml" --mca btl coopib,self \
        --mca btl_coopib_min_stripe 1m --mca btl_coopib_report 1 --mca mpi_yield_when_idle 1 "$bench/coop_bw" -w 8 -i 5 -b 2 "$@" 2>&1) ||
        { local status=$?; echo "$output"; return $status; }
    echo "$output"
    # Column 8 of the report is the number of RDMA operations posted on the rail; an unstriped message is one of them. Only the
    # side that reads or writes posts any.
    awk '/^btl.coopib: rank/ { rank = $3 } / coop[01] / { if ($8 > 0) ++used[rank] } END { exit !(used[0] == 2 || used[1] == 2) }' <<<"$output" ||
        { echo "a rail was not used"; return 1; }
}

striping_waits() {
    local pml
    for pml in ob1 coop; do
        check "site_27.blocking_messages_below_the_shortest_stripe.$pml" striped_whole "$pml" --blocking -m 64K:64K
        check "site_27.many_messages_below_the_shortest_stripe.$pml" striped_whole "$pml" -m 256K:256K
    done
}

# --- short messages for which nobody waits -----------------------------------------------------------------------------------

# stream_of REASON SUBNET-OPTION… -- MPIRUN-ARGUMENT…: 192 nonblocking messages of 32 KiB, too few for an attempt of the other way. The
# report must give REASON, the beginning of its text, for all of them (the bandwidth test also sends short ones).
stream_of() {
    local output reason=$1 subnet=()
    shift
    while [ "$1" != -- ]; do subnet+=("$1") && shift; done
    shift
    output=$(limit=60 on_subnet --hosts 2 --hcas 1 "${subnet[@]}" --virtual-hosts -- mpirun -np 2 --map-by node --mca pml coop --mca btl coopib,self \
        --mca mpi_yield_when_idle 1 --mca pml_coop_report 1 "$@" "$bench/coop_bw" -w 16 -x 2 -i 5 -b 2 -m 32K:32K 2>&1) ||
        { local status=$?; echo "$output"; return $status; }
    echo "$output"
    grep -q "192 .*$reason" <<<"$output" || { echo "not 192 messages because: $reason"; return 1; }
}

# Ports of a link without a rate say 12 GB/s; the slowest speed that ports can say is 250 MB/s.
striping_streams() {
    check streams.a_fast_link_is_read stream_of 'the link is faster than' --
    check streams.a_slow_link_gets_fragments stream_of 'the link is slower than' --rate 50MB/s --
    check streams.a_limit_of_the_user_decides.rdma stream_of 'the receiver reads the send buffer' --rate 50MB/s -- --mca pml_coop_isend_rdma_min 1
    check streams.a_limit_of_the_user_decides.fragments stream_of 'nobody waits, and it is below' -- --mca pml_coop_isend_rdma_min 40k
    check streams.interrupts_read stream_of 'the receiver reads the send buffer' --rate 50MB/s -- --mca pml_coop_async interrupt
}

# --- thresholds that follow the rails -----------------------------------------------------------------------------------------

# said_of SIZE SUBNET-OPTION… -- MPIRUN-ARGUMENT…: messages of one size go back and forth over two rails, one at a time, 600 each
# way, none of them in one packet above 16 KiB. Leaves the report of rank 0 in the variable `said`.
said_of() {
    local size=$1 subnet=()
    shift
    while [ "$1" != -- ]; do subnet+=("$1") && shift; done
    shift
    said=$(limit=60 on_subnet --hosts 2 --hcas 2 "${subnet[@]}" --virtual-hosts -- mpirun -np 2 --map-by node --mca pml coop --mca btl coopib,self \
        --mca mpi_yield_when_idle 1 --mca btl_coopib_report 1 --mca pml_coop_report 1 --mca btl_coopib_ring_bytes 16576 "$@" \
        "$bench/coop_latency" -x 0 -i 150 -b 4 -m "$size:$size" 2>&1) ||
        { local status=$?; echo "$said"; return $status; }
    echo "$said"
    said=$(sed -n '/^btl.coopib: rank 0 to rank 1/,/last large message/p' <<<"$said")
}

# operations REASON: prints how many RDMA operations of rank 0 went whole, and how many in stripes, for this reason.
operations() { awk -v reason="$1" '/RDMA operations: / && substr($0, length($0) - length(reason) + 1) == reason { print $3, $5; found = 1 } END { if (!found) print 0, 0 }' <<<"$said"; }

# Stripes are compared with whole messages where one rail could be faster, that is, where the links have no limit. At least the
# first four messages after the striped ones go whole; how many more depends on the machine.
compares() {
    said_of 64K -- "$@" || return
    local whole
    whole=$(operations 'stripes have taken longer')
    [ "${whole% *}" -ge 4 ]
}

# stripes LEAST SIZE SUBNET-OPTION… -- MPIRUN-ARGUMENT…: at least LEAST of the 600 messages are striped.
stripes() {
    said_of "${@:2}" || return
    local counts
    counts=$(operations 'the call is blocking')
    [ "${counts#* }" -ge "$1" ]
}

# says TEXT SUBNET-OPTION… -- MPIRUN-ARGUMENT…
says() {
    said_of 64K "${@:2}" || return
    grep -qF "$1" <<<"$said" || { echo "the report does not say: $1"; return 1; }
}

striping_thresholds() {
    check thresholds.stripes_are_compared_on_fast_links compares
    check thresholds.slow_links_stripe stripes 570 64K --rate 250MB/s --
    # On a busy machine some of these stripes take longer than the link explains, and then some messages go whole to compare. Messages
    # that count as short would all go whole.
    check thresholds.messages_of_two_shortest_stripes_are_striped stripes 301 16K --rate 50MB/s --
    check thresholds.a_threshold_of_the_user_decides stripes 570 64K -- --mca btl_coopib_striping_threshold 16k
    check thresholds.shortest_stripe_of_slow_rails says 'shortest stripe: 4096 bytes (the fastest rail has 250 MB/s)' --rate 250MB/s --
    check thresholds.shortest_stripe_of_the_user says 'shortest stripe: 8192 bytes (btl_coopib_min_stripe)' --rate 250MB/s -- --mca btl_coopib_min_stripe 8k
    check thresholds.packets_of_slow_rails says 'if the sender waits: of up to 12288 bytes (longer ones are faster in stripes on ports this slow)' --rate 250MB/s --
    check thresholds.packets_of_fast_rails says 'packets of up to 16512 bytes go without a handshake (what a packet can carry)' --
    check thresholds.packets_of_the_user says 'packets of up to 16000 bytes go without a handshake (btl_coopib_eager_limit)' --rate 250MB/s -- --mca btl_coopib_eager_limit 16000
}

part_striping() {
    log=$results/log/striping.build.log
    striping_build >"$log" 2>&1 || { report_fail striping.build; return; }
    striping_pairs
    striping_waits
    striping_streams
    striping_thresholds
}
