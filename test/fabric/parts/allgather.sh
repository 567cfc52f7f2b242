# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# MPI_Allgather by coll/rdmaag over HCAs: the programs of test/mpi/coll, which check every byte and the steps, over btl/coopib and
# btl/openib, on two, four and eight hosts, on several kinds of HCAs, with losses, with refused registrations.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

allgather_build() {
    local program
    for program in data together threads; do mpi_program allgather_$program || return 1; done
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
        --mca mpi_yield_when_idle 1 --mca coll_rdmaag_priority 40 --mca coll_rdmaag_short_max 4096 --mca coll_rdmaag_ring_min 65536 "$@"
}

# sizes NAME BTL PML HOSTS [OPTION of the subnet…] -- [ARGUMENT of mpirun…]: all sizes by writes, with one registration in each call.
sizes() { check "$1" gathers "${@:2}" "$data" puts registers --only blocks_of_every_size; }

# Packets and acknowledgements are lost, so that HCAs send again.
despite_losses() { # PML
    local kind at=0
    for kind in drop lose-ack corrupt drop lose-ack rnr; do echo "after $((at += 100)) messages fault all $kind --count 3"; done >"$log.scenario"
    gathers coopib "$1" 4 --hcas 2 --scenario "$log.scenario" --trace-to "$log.trace" -- --mca btl_coopib_timeout 10 "$data" puts registers \
        --only blocks_of_every_size || return 1
    at=$(grep -c '  retry QP' "$log.trace")
    rm -f "$log.trace"
    echo "sent again: $at times"
    [ "$at" -ge 5 ]
}

# shellcheck disable=SC2016 # expanded where a rank starts
of_one_rank=(sh -c '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || export "OMPI_MCA_coll_rdmaag_$1=$2"; shift 2; exec "$@"' sh)

# Several processes on each host: SLOTS NP MAPPING [ARGUMENT of mpirun…].
by_hierarchy() {
    local slots=$1 np=$2 mapping=$3
    shift 3
    limit=100 on_subnet --hosts 4 --virtual-hosts --slots "$slots" -- mpirun -np "$np" --bind-to none --map-by "$mapping" --mca pml coop --mca btl coopib,vader,self \
        --mca mpi_yield_when_idle 1 --mca coll_rdmaag_priority 40 --mca coll_rdmaag_short_max 4096 --mca coll_rdmaag_ring_min 65536 --mca coll_rdmaag_node 2 --mca coll_rdmaag_node_slot 3000 "$@"
}

part_allgather() {
    local profile fault algorithm programs=$PWD/_results/mpi/bin
    local openib=(--mca btl_openib_allow_ib 1 --mca btl_openib_warn_default_gid_prefix 0)
    log=$results/log/allgather.build.log
    allgather_build >"$log" 2>&1 || { report_fail allgather.build; return; }
    sizes two_hosts.coop coopib coop 2 --
    sizes four_hosts.two_hcas.ob1 coopib ob1 4 --hcas 2 --
    sizes eight_hosts.two_hcas.coop coopib coop 8 --hcas 2 --
    sizes eight_hosts.ob1 coopib ob1 8 --
    sizes openib.two_hosts openib ob1 2 -- "${openib[@]}"
    sizes openib.four_hosts.two_hcas openib ob1 4 --hcas 2 -- "${openib[@]}"
    for algorithm in bruck ring neighbour; do
        sizes "by_$algorithm" coopib coop 4 --hcas 2 -- --mca coll_rdmaag_algorithm $algorithm
    done
    for profile in unordered nosrq; do
        sizes "$profile" coopib coop 4 --hcas 2 --profile $profile --
    done
    sizes roce coopib ob1 4 --hcas 2 --link-layer roce --
    sizes unequal coopib coop 4 --hcas 3 --rate 250MB/s,100MB/s,50MB/s --
    check losses.coop despite_losses coop
    check losses.ob1 despite_losses ob1
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
    check one_rank_late gathers coopib ob1 4 --hcas 2 -- "$programs/allgather_together" puts registers --only calls_in_a_row_with_one_rank_late
    check beside_messages gathers coopib coop 3 --hcas 2 -- "$programs/allgather_together" puts registers --only messages_of_the_same_communicator_go_on
    check threads gathers coopib coop 2 --hcas 2 -- "$programs/allgather_threads"
    check threads.with_interrupts gathers coopib coop 2 --hcas 2 -- --mca pml_coop_async interrupt "$programs/allgather_threads"
}
