# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# MPI_Allgather by coll/rdmaag over HCAs: the programs of test/mpi/coll, which check every byte and the steps, over btl/coopib and
# btl/openib, on two, four and eight hosts, on several kinds of HCAs, with losses, with refused registrations.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

allgather_build() {
    local program
    for program in data together threads nonblocking overlap tuning soak; do mpi_program allgather_$program || return 1; done
    data=$PWD/_results/mpi/bin/allgather_data
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# gathers BTL PML HOSTS [OPTION of the subnet…] -- [ARGUMENT of mpirun…]: one process on each host.
gathers() {
    local btl=$1 pml=$2 hosts=$3 options=()
    shift 3
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    limit=100 on_subnet --hosts "$hosts" "${options[@]}" --virtual-hosts -- mpirun -np "$hosts" --bind-to none --mca pml "$pml" --mca btl "$btl,self" \
        --mca mpi_yield_when_idle 1 --mca coll_rdmaag_priority 40 --mca coll_rdmaag_short_max "${short:-4096}" --mca coll_rdmaag_ring_min 65536 --mca coll_rdmaag_tune "${tune:-0}" "$@"
}

# sizes NAME BTL PML HOSTS [OPTION of the subnet…] -- [ARGUMENT of mpirun…]: all sizes by writes, with one registration in each call.
sizes() { check "$1" gathers "${@:2}" "$data" puts registers --only blocks_of_every_size; }

# overlaps HOSTS [OPTION of the subnet…] -- [ARGUMENT…]: a rank computes, and interrupts continue its calls.
overlaps() {
    local file status=0
    file=$(mktemp) || return 1
    gathers coopib coop "$@" "file=$file" || status=$?
    rm -f "$file"
    return $status
}

# Packets and acknowledgements are lost, so that HCAs send again.
despite_losses() { # PML [ARGUMENT of mpirun…]
    local kind at=0
    for kind in drop lose-ack corrupt drop lose-ack rnr; do echo "after $((at += 100)) messages fault all $kind --count 3"; done >"$log.scenario"
    gathers coopib "$1" 4 --hcas 2 --scenario "$log.scenario" --trace-to "$log.trace" -- --mca btl_coopib_timeout 10 "${@:2}" "$data" puts registers \
        --only blocks_of_every_size || return 1
    at=$(grep -c '  retry QP' "$log.trace")
    rm -f "$log.trace"
    echo "sent again: $at times"
    [ "$at" -ge 5 ]
}

# shellcheck disable=SC2016 # expanded where a rank starts
of_one_rank=(sh -c '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || export "OMPI_MCA_coll_rdmaag_$1=$2"; shift 2; exec "$@"' sh)

# A bit of a tail flips. The job must end by itself and say so.
damaged_tail_is_diagnosed() { # FAULT
    local said=$log.said
    ends_with_an_error gathers coopib coop 3 -- --mca coll_rdmaag_row buffer --mca coll_rdmaag_fault "$1" "$data" --only blocks_of_every_size >"$said" 2>&1 ||
        { cat "$said" && return 1; }
    ! grep -aE 'Signal:|signal [0-9]+ \(|HANG|CHECK failed|AddressSanitizer|runtime error' "$said" || return 1
    grep -aE "$2" "$said"
}

allgather_buffers() {
    local row=(--mca coll_rdmaag_row buffer) fault hosts
    local few=("$data" puts registers --only blocks_of_every_size)
    for hosts in 2 8; do # with 8 hosts, all numbers of processes from 2 to 8
        check "buffers.hosts_$hosts" gathers coopib coop $hosts --hcas 2 -- "${row[@]}" "${few[@]}" buffers
    done
    check buffers.by_bruck gathers coopib ob1 4 -- "${row[@]}" --mca coll_rdmaag_algorithm bruck "${few[@]}" buffers
    rarely check buffers.of_unequal_length gathers coopib coop 4 --hcas 2 -- "${row[@]}" "$data" puts registers buffers --only blocks_of_unequal_length
    rarely check buffers.nosrq gathers coopib ob1 4 --profile nosrq -- "${row[@]}" "${few[@]}" buffers
    check buffers.of_calls_back_to_back gathers coopib coop 4 -- "${row[@]}" "$programs/allgather_together" puts buffers --only calls_back_to_back
    check buffers.one_rank_late gathers coopib ob1 4 -- "${row[@]}" "$programs/allgather_together" buffers --only calls_in_a_row_with_one_rank_late
    check buffers.come_and_go gathers coopib coop 3 -- "${row[@]}" "$programs/allgather_together" buffers --only communicators_come_and_go_without_a_trace
    check buffers.threads gathers coopib coop 2 -- "${row[@]}" "$programs/allgather_threads"
    check buffers.losses despite_losses coop "${row[@]}"

    short=32768 check buffers.beyond_packets gathers coopib coop 5 -- "${row[@]}" "${few[@]}" buffers beyond_packets
    short=65536 rarely check buffers.beyond_packets.unequal_length gathers coopib ob1 4 --hcas 2 -- "${row[@]}" "$data" puts registers --only blocks_of_unequal_length
    short=32768 check buffers.beyond_packets.nonblocking gathers coopib coop 3 -- "${row[@]}" "$programs/allgather_nonblocking"
    short=32768 check buffers.beyond_packets.not_if_one_rank_has_none gathers coopib coop 4 -- "${of_one_rank[@]}" memory_max 0 "${few[@]}"
    short=32768 check buffers.beyond_packets.not_with_a_low_put_limit gathers coopib coop 4 -- "${row[@]}" --mca btl_coopib_put_limit 16384 "${few[@]}"
    short=32768 rarely check buffers.beyond_packets.faults gathers coopib coop 3 -- "${row[@]}" --mca coll_rdmaag_fault put:2,put_busy:3 "$data" --only blocks_of_every_size
    check buffers.auto gathers coopib coop 5 -- "${few[@]}" buffers_auto
    check buffers.not_in_order gathers coopib coop 4 --profile unordered -- "${row[@]}" "${few[@]}" no_buffers because=not_in_order
    check buffers.not_of_openib gathers openib ob1 2 -- "${openib[@]}" "${row[@]}" "${few[@]}" no_buffers because=not_in_order
    check buffers.not_if_one_rank_says_am gathers coopib coop 3 -- "${row[@]}" "${of_one_rank[@]}" row am "${few[@]}" no_buffers
    check buffers.not_with_little_memory gathers coopib coop 3 -- "${row[@]}" --mca coll_rdmaag_memory_max 1000 "${few[@]}" no_buffers because=memory_budget
    check buffers.of_one_rank_with_little_memory gathers coopib ob1 3 -- "${row[@]}" "${of_one_rank[@]}" memory_max 0 "${few[@]}"
    for fault in register:1 put:1 put:3 put_busy:2; do
        check "buffers.faults.of_one_rank.$fault" gathers coopib coop 3 -- "${row[@]}" "${of_one_rank[@]}" fault $fault "$data" --only blocks_of_every_size
    done
    for fault in corrupt_match@2 corrupt_match@7=7; do
        check "buffers.damaged.$fault" damaged_tail_is_diagnosed $fault 'coll/rdmaag: a collective buffer'
    done
    check buffers.damaged.offer damaged_tail_is_diagnosed corrupt_rts@2 'coll/rdmaag: a packet of an allgather is damaged'
}

# Several processes on each host: SLOTS NP MAPPING [ARGUMENT of mpirun…].
by_hierarchy() {
    local slots=$1 np=$2 mapping=$3
    shift 3
    limit=100 on_subnet --hosts 4 --virtual-hosts --slots "$slots" -- mpirun -np "$np" --bind-to none --map-by "$mapping" --mca pml coop --mca btl coopib,vader,self \
        --mca mpi_yield_when_idle 1 --mca coll_rdmaag_priority 40 --mca coll_rdmaag_short_max 4096 --mca coll_rdmaag_ring_min 65536 --mca coll_rdmaag_node 2 --mca coll_rdmaag_node_slot 3000 "$@"
}

# Ranks are placed by node, so each process of a ring in the order of ranks sends to another host, but only one process of
# each host in a ring that goes node by node.
ring_by_node_halves_the_traffic() {
    local order sent=() said=$log.counters
    for order in 1 2; do # node 1: the processes do not know which of them share nodes
        limit=100 on_subnet --hosts 3 --virtual-hosts --slots 2 --counters -- mpirun -np 6 --bind-to none --map-by node --mca pml coop --mca btl coopib,vader,self \
            --mca mpi_yield_when_idle 1 --mca coll_rdmaag_priority 40 --mca coll_rdmaag_algorithm ring --mca coll_rdmaag_node $order \
            "$prefix/libexec/ompi-coop/coop_allgather" -m 64K -i 20 -b 1 -x 2 >"$said" 2>&1 || { cat "$said" && return 1; }
        sent+=("$(awk '$1 == "h0/coop0/1" && $2 == "active" { print $5; exit }' "$said")")
    done
    echo "bytes that host 0 sent: ${sent[0]}, node by node ${sent[1]}"
    [ $((sent[1] * 100)) -le $((sent[0] * 60)) ] && [ "${sent[1]}" -gt 1000000 ]
}

part_allgather() {
    local profile fault algorithm programs=$PWD/_results/mpi/bin
    local openib=(--mca btl_openib_allow_ib 1 --mca btl_openib_warn_default_gid_prefix 0)
    log=$results/log/allgather.build.log
    allgather_build >"$log" 2>&1 || { report_fail allgather.build; return; }
    sizes two_hosts.coop coopib coop 2 --
    sizes four_hosts.two_hcas.ob1 coopib ob1 4 --hcas 2 --
    sizes eight_hosts.two_hcas.coop coopib coop 8 --hcas 2 --
    rarely sizes eight_hosts.ob1 coopib ob1 8 --
    sizes openib.two_hosts openib ob1 2 -- "${openib[@]}"
    rarely sizes openib.four_hosts.two_hcas openib ob1 4 --hcas 2 -- "${openib[@]}"
    for algorithm in bruck ring neighbour; do
        sizes "by_$algorithm" coopib coop 4 --hcas 2 -- --mca coll_rdmaag_algorithm $algorithm
    done
    for profile in unordered nosrq; do
        sizes "$profile" coopib coop 4 --hcas 2 --profile $profile --
    done
    rarely sizes roce coopib ob1 4 --hcas 2 --link-layer roce --
    rarely sizes unequal coopib coop 4 --hcas 3 --rate 250MB/s,100MB/s,50MB/s --
    check losses.coop despite_losses coop
    rarely check losses.ob1 despite_losses ob1
    for fault in register:1 put:1; do
        check "faults.$fault" gathers coopib coop 3 -- --mca coll_rdmaag_fault $fault "$data" packets --only blocks_of_every_size
    done
    for fault in register:1 register:3 put:3,put_busy:2; do
        check "faults.of_one_rank.$fault" gathers coopib ob1 4 -- "${of_one_rank[@]}" fault $fault "$data" --only blocks_of_every_size
    done
    check left_to_others_under_pml_ucx gathers ^openib,tcp,vader ucx 2 -- -x UCX_TLS=rc_v,self "$data" left=no_bml --only blocks_of_unequal_length
    check types gathers coopib coop 4 --hcas 2 -- "$data" puts registers --from blocks_in_place
    check hierarchy.by_slot by_hierarchy 2 8 slot "$data" node --only blocks_of_every_size
    check hierarchy.by_node by_hierarchy 3 9 node "$data" node --only blocks_of_unequal_length
    check hierarchy.shuffled by_hierarchy 2 7 slot "$data" node shuffled --only blocks_in_place
    check hierarchy.ring_by_node.traffic ring_by_node_halves_the_traffic
    check hierarchy.ring_by_node by_hierarchy 2 8 node --mca coll_rdmaag_algorithm ring "$data" --only blocks_of_unequal_length
    rarely check hierarchy.ring_shuffled by_hierarchy 3 7 slot --mca coll_rdmaag_algorithm ring "$data" shuffled --only blocks_in_place
    tune=5 check tuning gathers coopib coop 4 --hcas 2 -- "$programs/allgather_tuning"
    tune=5 rarely check tuning.four_rails gathers coopib coop 3 --hcas 4 -- "$programs/allgather_tuning"
    tune=3 check soak gathers coopib coop 4 --hcas 2 -- "$programs/allgather_soak"
    tune=3 short=32768 rarely check soak.with_interrupts gathers coopib coop 3 --hcas 2 -- --mca pml_coop_async interrupt "$programs/allgather_soak" seed=4 calls=500
    check one_rank_late gathers coopib ob1 4 --hcas 2 -- "$programs/allgather_together" puts registers --only calls_in_a_row_with_one_rank_late
    check beside_messages gathers coopib coop 3 --hcas 2 -- "$programs/allgather_together" puts registers --only messages_of_the_same_communicator_go_on
    check nonblocking.coop gathers coopib coop 4 --hcas 2 -- "$programs/allgather_nonblocking"
    rarely check nonblocking.ob1 gathers coopib ob1 3 -- "$programs/allgather_nonblocking"
    rarely check nonblocking.openib gathers openib ob1 3 -- "${openib[@]}" "$programs/allgather_nonblocking"
    check nonblocking.with_interrupts gathers coopib coop 3 -- --mca pml_coop_async interrupt "$programs/allgather_nonblocking"
    for fault in register:1 put:1 put:3,put_busy:2,busy:3,alloc:2,sendi:3; do
        check "nonblocking.faults.$fault" gathers coopib coop 3 -- --mca coll_rdmaag_fault "$fault" "$programs/allgather_nonblocking"
        rarely check "nonblocking.faults.of_one_rank.$fault" gathers coopib ob1 3 -- "${of_one_rank[@]}" fault "$fault" "$programs/allgather_nonblocking"
    done
    for algorithm in auto ring; do
        check "overlap.by_$algorithm" overlaps 4 -- --mca pml_coop_async interrupt --mca coll_rdmaag_algorithm $algorithm "$programs/allgather_overlap"
    done
    rarely check nonblocking.with_interrupts.funneled gathers coopib coop 3 -- --mca pml_coop_async interrupt "$programs/allgather_nonblocking" --funneled
    rarely check overlap.serialized overlaps 3 --hcas 2 -- --mca pml_coop_async interrupt "$programs/allgather_overlap" --serialized
    check overlap.multiple overlaps 3 --hcas 2 -- --mca pml_coop_async interrupt "$programs/allgather_overlap" --multiple
    check threads gathers coopib coop 2 --hcas 2 -- "$programs/allgather_threads"
    allgather_buffers
    rarely check threads.with_interrupts gathers coopib coop 2 --hcas 2 -- --mca pml_coop_async interrupt "$programs/allgather_threads"
}
