# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Messages inside a node of which HCAs copy a part by loopback (pml_coop_hca): checks of every byte, counters, refusals, a node
# without loopback, four pairs at once, threads. The CPU's copies are slowed down (pml_coop_copy_rate), because simulated HCAs
# have no processor of their own and would get no share next to two CPUs that copy.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

offload_build() {
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mkdir -p "$results/bin-mpi"
    offload=$results/bin-mpi/offload
    mpicc -O1 -Wall -Wextra -Werror -o "$offload" "$here/programs/offload.c" || return 1
    turns=$(mpi_program turns)
}

# An RTS arrives from another host, over the HCAs, during a copy between ranks 0 and 1 of one host. Rank 2 does not yield while it
# waits: a rank that shares its core would keep the core for some milliseconds.
turns_over_hcas() {
    # shellcheck disable=SC2016 # expanded where a rank starts
    limit=240 check "turns_over_hcas${1:+.$1}" on_subnet --hosts 2 --virtual-hosts --slots 2 -- mpirun -np 3 --map-by slot --mca pml coop \
        --mca btl coopib,vader,self --mca mpi_yield_when_idle 1 --mca pml_coop_protocol coop --mca pml_coop_copy_rate 100m "${@:2}" \
        sh -c '[ "$OMPI_COMM_WORLD_RANK" != 2 ] || export OMPI_MCA_mpi_yield_when_idle=0; exec "$1"' sh "$turns"
}

# offload_by NAME EXPECTED RANKS [OPTION-OF-COOP-FABRIC…] -- [ARGUMENT-OF-MPIRUN…]: EXPECTED is WHAT of programs/offload.c.
offload_by() {
    local name=$1 expected=$2 np=$3 options=()
    shift 3
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    limit=240 check "$name" on_subnet --hosts 1 "${options[@]}" -- mpirun -np "$np" --oversubscribe --mca pml coop --mca btl coopib,vader,self \
        --mca mpi_yield_when_idle 1 --mca pml_coop_copy_rate 200m "$@" "$offload" "$expected" 2
}

# A sender must not wait for a receiver that has stopped polling, whatever the HCAs were to copy.
left_by_its_receiver() { # WISH
    limit=60 on_subnet --hosts 1 --loopback-rate 100MB/s -- mpirun -np 2 --oversubscribe --mca pml coop --mca btl coopib,vader,self \
        --mca pml_coop_overlap no --mca pml_coop_copy_rate 100m --mca pml_coop_hca on --mca pml_coop_protocol "$1" "$offload" leave 12
}

# Prints the total rate of four pairs, with or without HCAs.
four_pairs_rate() { # MODE
    limit=240 on_subnet --hosts 1 --loopback-rate 100MB/s -- mpirun -np 8 --oversubscribe --mca pml coop --mca btl coopib,vader,self \
        --mca mpi_yield_when_idle 1 --mca pml_coop_copy_rate 10m --mca pml_coop_hca "$1" --mca pml_coop_hca_load 8 "$offload" rate 2 |
        awk '/MB\/s by/ { print int($1) }'
}

# HCAs should gain a half; the test requires a fifth, in two comparisons of three.
four_pairs_gain() {
    local alone striped good=0 bad=0
    while [ $good -lt 2 ] && [ $bad -lt 2 ]; do
        alone=$(four_pairs_rate off) && striped=$(four_pairs_rate on) || return 1
        echo "four pairs: $alone MB/s by the CPUs alone, $striped MB/s with HCAs"
        if [ "${alone:-0}" -gt 0 ] && [ $((10 * ${striped:-0})) -ge $((12 * alone)) ]; then good=$((good + 1)); else bad=$((bad + 1)); fi
    done
    [ $good = 2 ]
}

# Offload is on, but no HCA can do it: each process must say so once, and the CPUs copy.
without_a_way() {
    limit=60 on_subnet --hosts 1 -- mpirun -np 2 --oversubscribe --mca pml coop --mca btl vader,self --mca pml_coop_hca on "$offload" none 2 \
        >"$log.job" 2>&1 || { cat "$log.job"; return 1; }
    cat "$log.job"
    [ "$(grep -ac 'no HCA loopback' "$log.job")" = 2 ]
}

part_offload() {
    local fault wish on=(--mca pml_coop_hca on)
    log=$results/log/offload.build.log
    offload_build >"$log" 2>&1 || { report_fail offload.build; return; }
    offload_by one_hca some 2 -- "${on[@]}"
    offload_by two_hcas some 2 --hcas 2 -- "${on[@]}"
    offload_by slow_hca some 2 --loopback-rate 50MB/s -- "${on[@]}"
    offload_by off none 2 --
    check without_a_way without_a_way
    offload_by without_a_copy_of_both none 2 -- "${on[@]}" --mca pml_coop_protocol rget
    offload_by halves none 2 -- "${on[@]}" --mca pml_coop_protocol coop_fixed
    offload_by short_ones none 2 -- "${on[@]}" --mca pml_coop_hca_min 64m
    for wish in coop coop_coll; do offload_by "by_$wish" some 2 -- "${on[@]}" --mca pml_coop_protocol "$wish"; done
    # With coop_load one of the two CPUs copies a whole message.
    offload_by by_coop_load none 2 -- "${on[@]}" --mca pml_coop_protocol coop_load
    for fault in hca_get:2 hca_get:1 hca_busy:3 hca_lost:2 hca_lost:1; do
        offload_by "under_$fault" refused 2 -- "${on[@]}" --mca pml_coop_fault "$fault"
    done
    offload_by "under_hca_key:1" none 2 -- "${on[@]}" --mca pml_coop_fault hca_key:1
    for fault in get:3,put:5,hca_lost:2 get:1,hca_lost:3 put:1,hca_busy:2 get:2,put:1,hca_lost:3 get_busy:2,put_busy:3,hca_get:5; do
        offload_by "under_$fault" used 2 -- "${on[@]}" --mca pml_coop_fault "$fault"
    done
    offload_by load.none_allowed none 2 -- "${on[@]}" --mca pml_coop_hca_load 0
    offload_by load.one_allowed held 2 -- "${on[@]}" --mca pml_coop_hca_load 1
    offload_by auto.on_a_crowded_node none 8 -- --mca pml_coop_hca auto
    offload_by four_pairs used 8 -- "${on[@]}" --mca pml_coop_hca_load 8
    for wish in coop hybrid; do check "site_32.a_sender_by_${wish}_does_not_wait_for_a_receiver_that_stops_polling" left_by_its_receiver "$wish"; done
    offload_by threads some 2 -- "${on[@]}" -x OFFLOAD_THREADS=1
    offload_by interrupts some 2 -- "${on[@]}" --mca pml_coop_async interrupt
    turns_over_hcas ""
    # With HCAs a copy is cut into pieces of 256 KiB; make the CPUs' chunks as long.
    turns_over_hcas with_hcas --mca pml_coop_hca on --mca pml_coop_copy_chunk 256k
    check site_36.hcas_make_four_pairs_faster four_pairs_gain
}
