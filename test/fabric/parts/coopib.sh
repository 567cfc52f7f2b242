# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# btl/coopib under both point-to-point components: the storm of test/mpi, every byte checked, over one rail and many, by every
# policy. Test names are ground.pml.policy.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

prepare_storm() {
    mpi=$(cd "$here/../mpi" && pwd)
    storm=$results/bin-mpi/storm
    make -s -j"$jobs" -f "$mpi/build.mk" SRC="$mpi" OUT="$results/bin-mpi" "$storm" || return 1
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

coopib_ground() { # GROUND: sets `options`, and `np`
    np=2
    case $1 in
    one_rail) options=(--hosts 2) ;;
    two_hcas) options=(--hosts 2 --hcas 2) ;;
    lmc1) options=(--hosts 2 --lmc 1) ;;
    lmc2) options=(--hosts 2 --lmc 2) ;;
    four_rails) options=(--hosts 2 --hcas 2 --lmc 1) ;;
    unequal) options=(--hosts 2 --hcas 3 --rate "250MB/s,100MB/s,50MB/s") ;;
    slow) options=(--hosts 2 --hcas 2 --rate 500MB/s --latency 5us) ;;
    roce) options=(--hosts 2 --hcas 2 --link-layer roce) ;;
    nosrq | small | noapm) options=(--hosts 2 --hcas 2 --profile "$1") ;;
    ports) options=(--hosts 2 --ports 2) ;;
    four_hosts) options=(--hosts 4 --hcas 2 --virtual-hosts --slots 2) np=8 ;;
    strict) options=(--hosts 2 --hcas 2 --strict-mr) ;;
    *) echo "coopib: no ground '$1'" >&2; exit 2 ;;
    esac
}

# coopib_storm GROUND PML POLICY [MPIRUN ARGUMENT…] -- [STORM ARGUMENT…]
coopib_storm() {
    local ground=$1 pml=$2 policy=$3 options np btl=coopib,self
    shift 3
    local extra=()
    while [ "$1" != -- ]; do extra+=("$1"); shift; done
    shift
    coopib_ground "$ground"
    [ "$ground" != four_hosts ] || btl=coopib,vader,self
    check "$ground.$pml.$policy" on_subnet "${options[@]}" -- mpirun -np "$np" --oversubscribe --mca pml "$pml" --mca btl "$btl" \
        --mca btl_coopib_large_policy "$policy" --mca mpi_yield_when_idle 1 "${extra[@]}" "$storm" --seed 11 --messages 600 "$@"
}

part_coopib() {
    local pml policy ground
    prepare_storm || { asked coopib.build && report_fail coopib.build; return; }
    for pml in ob1 coop; do
        for policy in binding round_robin window_round_robin weighted_round_robin even_striping weighted_striping adaptive_striping bss epc; do
            coopib_storm four_rails "$pml" "$policy" --
        done
        for ground in one_rail two_hcas lmc1 lmc2 unequal slow roce nosrq small noapm ports four_hosts; do
            coopib_storm "$ground" "$pml" epc --
            [ "$long" = no ] || for policy in even_striping adaptive_striping bss round_robin; do coopib_storm "$ground" "$pml" "$policy" --; done
        done
    done
}
