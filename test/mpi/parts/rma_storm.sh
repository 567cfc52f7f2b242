# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Random one-sided communication over vader, tcp and the cluster, under both PMLs, with and without threads. Every byte of every
# window is compared with a model (program: rma_storm/).
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# rma_launch LAUNCH GROUND NP PML OPERATIONS ARGUMENT…: the storm, started by LAUNCH (launch, launch_and_keep).
rma_launch() {
    local how=$1 ground=$2 np=$3 operations=$5 of_osc=(--mca osc "$osc") common=(--mca pml "$4" "${common[@]:3}")
    shift 5
    [ "$osc" != stock ] || of_osc=()
    rma_storm_requires_less
    # With sanitizers every byte costs several times as much.
    [ -z "$san" ] || operations=$((operations / 4))
    # There are more ranks than cores, and they wait for each other. (In the environment: some grounds set it, too.)
    OMPI_MCA_mpi_yield_when_idle=1 $how "$ground" "$np" "${of_osc[@]}" "$bin/rma_storm" "${less[@]}" --operations "$operations" "$@"
}

# Where stock components of Open MPI 4.1.4 are wrong (README.md), less is required of them.
rma_storm_requires_less() {
    case $osc in
    *multirail*) less=() ;;
    *pt2pt*) less=(--without "nested,flush_local,sequences,asserts,hints,derived,requests") ;;
    *) less=(--without "unsigned,races,flushed,asserts,hints,derived,subsets" --max-bytes 4000) ;;
    esac
}

# rma_storm NAME GROUND PML OPERATIONS ARGUMENT…
rma_storm() {
    local -A ranks=([vader]=4 [tcp]=3 [cluster]=6)
    check "rma_storm.$1" rma_launch launch "$2" "${ranks[$2]}" "${@:3}"
}

# A sabotaged storm must fail, and say what differs. The storm with the same seed and without sabotage passes.
rma_storm_notices() { # HOW SEED
    ends_with_an_error rma_launch launch_and_keep vader 3 "$pml" 8000 --seed "$2" --watchdog 20 --sabotage "$1" || return 1
    grep -a 'rma_storm: sabotage of ' "$log.job" && grep -a 'rma_storm: FAILED: ' "$log.job"
}

# All grounds that this run has, each with both PMLs.
rma_storm_everywhere() {
    local of_pml ground seed
    for ground in "${grounds[@]}"; do
        # Over tcp without CMA, so that operations on created windows are messages there.
        if [ "$ground" = tcp ]; then export OMPI_MCA_osc_multirail_cma=0; else unset OMPI_MCA_osc_multirail_cma; fi
        for seed in "${seeds[@]}"; do
            for of_pml in "${pmls[@]}"; do
                # By default one PML for each seed.
                ! is_brief || [ "$of_pml" = "${pmls[seed % ${#pmls[@]}]}" ] || continue
                rma_storm "seed_${seed}_over_${ground}_by_$of_pml" "$ground" "$of_pml" 1500 --seed "$seed"
            done
        done
        # osc/pt2pt refuses threads.
        case $osc in *pt2pt*) ;; *) rma_storm "threads_over_$ground" "$ground" "$pml" 1500 --seed 5 --threads 3 ;; esac
        # Nearly all blocks of created windows travel as messages of the PML.
        [ "$osc" != multirail ] || for of_pml in "${pmls[@]}"; do
            OMPI_MCA_osc_multirail_cma=0 OMPI_MCA_osc_multirail_rendezvous_min=16 rma_storm "messages_over_${ground}_by_$of_pml" "$ground" "$of_pml" 1500 --seed 7
        done
        # The kernel refuses some copies, also of accumulates.
        [ "$osc/$ground" != multirail/vader ] || OMPI_MCA_osc_multirail_fault=put:3,get:4 rma_storm "refused_copies_over_$ground" "$ground" "$pml" 3000 --seed 8
        # Only short operations, but many more of them.
        rma_storm "short_operations_over_$ground" "$ground" "$pml" 6000 --seed 6 --max-bytes 200
    done
}

# A million operations in all. Every other storm has threads.
rma_storm_long() {
    local seed ground of_pml threads
    for seed in {101..120}; do
        ground=${grounds[seed % ${#grounds[@]}]} of_pml=${pmls[seed / 2 % ${#pmls[@]}]} threads=$((seed % 2 * 2 + 1))
        rma_storm "long_${seed}_with_${threads}_threads_over_${ground}_by_$of_pml" "$ground" "$of_pml" 50000 --seed "$seed" --threads "$threads"
    done
}

part_rma_storm() {
    local how grounds=(vader) pmls=("$pml") seeds=(1 2)
    [ "$pml" = ob1 ] || ! everywhere || pmls+=(ob1)
    ! everywhere || seeds+=(3 4)
    if everywhere || ! cluster_possible; then grounds+=(tcp); fi
    if cluster_possible; then grounds+=(cluster); else report_skip rma_storm.cluster "$no_cluster" $(((${#seeds[@]} + 1) * ${#pmls[@]} + 2)); fi
    # Other components of Open MPI need atomic operations of the transport.
    case $osc in *multirail* | *pt2pt*) ;; *) grounds=(vader) ;; esac
    rma_storm_everywhere
    if [ -z "$san" ]; then
        for how in lose double misplace; do
            check "rma_storm.notices_a_sabotage_by_$how" rma_storm_notices $how 1
        done
    fi
    [ "$long" = no ] || rma_storm_long
}
