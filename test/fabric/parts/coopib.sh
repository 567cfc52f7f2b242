# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# btl/coopib under both point-to-point components: the storm of test/mpi, every byte checked, over one rail and many, by every
# policy. Test names are ground.pml.policy; bad_input.what, report.what for the rest.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

prepare_storm() {
    mpi=$(cd "$here/../mpi" && pwd)
    storm=$results/bin-mpi/storm
    make -s -j"$jobs" -f "$mpi/build.mk" SRC="$mpi" OUT="$results/bin-mpi" "$storm" || return 1
    ring=$results/bin-mpi/ring
    mpicc -O1 -o "$ring" "$here/../../docs/examples/ring.c" || return 1
    pvars=$results/bin-mpi/coopib_pvars
    mpicc -O1 -Wall -Wextra -Werror -o "$pvars" "$here/programs/coopib_pvars.c" || return 1
    one_sided=$results/bin-mpi/one_sided
    mpicc -O1 -Wall -Wextra -Werror -o "$one_sided" "$here/programs/one_sided.c" || return 1
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

# --- bad input --------------------------------------------------------------------------------------------------------

two_by_two() { on_subnet --hosts 2 --hcas 2 -- "$@"; }

# Exactly so many lines of OUTPUT are LINE.
has_line() { # OUTPUT TIMES LINE
    local found
    found=$(grep -cFx -- "$3" <<<"$1")
    [ "$found" = "$2" ] || { echo "expected $2 times, found $found times: $3"; return 1; }
}

# The job ends, and one message names parameter, value and what is allowed.
says_what_is_wrong() { # PARAMETER VALUE ALLOWED [MPIRUN ARGUMENT…]
    local name=$1 value=$2 allowed=$3 output
    shift 3
    output=$(limit=60 two_by_two mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,self --mca "btl_coopib_$name" "$value" "$@" \
        "$ring" 2>&1) && { echo "the job went on"; return 1; }
    echo "$output"
    has_line "$output" 1 "  Parameter: btl_coopib_$name" && has_line "$output" 1 "  Value:     $value" && has_line "$output" 1 "  Allowed:   $allowed"
}

# What depends on the rails is known when they are: by then each process may say it.
says_what_does_not_fit() { # PARAMETER VALUE ALLOWED
    local output
    output=$(limit=60 two_by_two mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,self --mca "btl_coopib_$1" "$2" \
        "$ring" 2>&1) && { echo "the job went on"; return 1; }
    echo "$output"
    grep -qFx "  Parameter: btl_coopib_$1" <<<"$output" && grep -qFx "  Value:     $2" <<<"$output" && grep -qFx "  Allowed:   $3" <<<"$output"
}

named_without_hca() {
    local output
    output=$(timeout 60 mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,vader,self "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "  Reason: there is no HCA" && has_line "$output" 1 "done"
}

not_named_without_hca() {
    local output
    output=$(timeout 60 mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl "$1" "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    [ "$output" = "done" ]
}

# The number that the message asks for is enough, with what the large messages of ring need: 2 MiB on each HCA.
says_how_much_memory() {
    local output needed
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --memlock 1048576 -- mpirun -np 2 --oversubscribe --mca pml ob1 --mca btl coopib,self \
        "$ring" 2>&1) && { echo "the job went on"; return 1; }
    echo "$output"
    needed=$(sed -n 's/^  Needed:    \([0-9]*\) bytes .*/\1/p' <<<"$output")
    [[ $needed =~ ^[0-9]+$ ]] || { echo "not one number: '$needed'"; return 1; }
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --memlock $((needed + (4 << 20))) -- mpirun -np 2 --oversubscribe --mca pml ob1 \
        --mca btl coopib,self "$ring" 2>&1)
    echo "$output"
    [ "$output" = "done" ]
}

coopib_bad_input() {
    local all='binding, round_robin, window_round_robin, weighted_round_robin'
    check bad_input.interface_that_is_not_there says_what_is_wrong if_include nosuch0 "coop0, coop1"
    check bad_input.port_that_is_not_there says_what_is_wrong if_exclude coop1:7 "coop0, coop1"
    check bad_input.include_and_exclude says_what_is_wrong if_exclude coop1 "empty where if_include is given" --mca btl_coopib_if_include coop0
    check bad_input.unknown_policy says_what_is_wrong large_policy fastest \
        "$all, even_striping, weighted_striping, adaptive_striping, bss, epc"
    check bad_input.small_messages_are_not_striped says_what_is_wrong small_policy even_striping "$all"
    check bad_input.alpha says_what_is_wrong alpha 101 "1..100 percent"
    check bad_input.batch_above_paths says_what_is_wrong bss_batch 3 "0..2 (btl_coopib_bss_paths)" --mca btl_coopib_bss_paths 2
    check bad_input.weights_that_are_no_numbers says_what_is_wrong weights 1,x "whole numbers 1..1000000, one for each rail, with commas between"
    check bad_input.max_send_size says_what_is_wrong max_send_size 100 "256..1048576 bytes"
    check bad_input.eager_limit_above_max_send_size says_what_is_wrong eager_limit 16384 "at most btl_coopib_max_send_size, 12288 bytes"
    check bad_input.weights_for_other_rails says_what_does_not_fit weights 1,2,3 "2 weights, one for each rail"
    check bad_input.more_paths_than_rails says_what_does_not_fit bss_paths 3 "0..2 (the rails that there are)"
    check bad_input.batch_above_rails says_what_does_not_fit bss_batch 3 "0..2 (the rails that there are)"
    check bad_input.named_without_hca named_without_hca
    check bad_input.silent_when_not_named not_named_without_hca vader,self
    check bad_input.silent_when_excluded not_named_without_hca ^coopib,openib
    check bad_input.too_little_locked_memory says_how_much_memory
}

# --- report and performance variables ---------------------------------------------------------------------------------

coopib_pair() { # PML PROGRAM [ARGUMENT…]: two ranks with four rails
    local pml=$1
    shift
    limit=60 on_subnet --hosts 2 --hcas 2 --lmc 1 -- mpirun -np 2 --oversubscribe --mca pml "$pml" --mca btl coopib,self \
        --mca mpi_yield_when_idle 1 "$@"
}

# Four lines to each of the two peers, with an HCA, a port, path bits, and more than nothing carried; then what was decided last.
report_has_each_rail() { # PML
    local output rail
    output=$(coopib_pair "$1" --mca btl_coopib_report 1 "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "btl/coopib: rank 0 to rank 1" && has_line "$output" 1 "btl/coopib: rank 1 to rank 0" || return 1
    for rail in 0 1 2 3; do
        [ "$(grep -cE "^  $rail     coop[01]  +1 +[01] +0 +[1-9][0-9]* +[0-9]+ +[1-9][0-9]* +[0-9]+ +[0-9]+\.[0-9] %\$" <<<"$output")" = 2 ] ||
            { echo "rail $rail is not there twice"; return 1; }
    done
    [ "$(grep -cE '^  arrived ahead of an earlier one: [0-9]+$' <<<"$output")" = 2 ] &&
        [ "$(grep -cE '^  last decision: [0-9]+ bytes go ' <<<"$output")" = 2 ]
}

# The weights of the rails to a peer are 100 % together, but for rounding.
report_weights_are_shares() {
    local output
    output=$(coopib_pair ob1 --mca btl_coopib_report 1 "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    awk '/^  [0-3]     coop/ { sum += $(NF - 1) } END { exit !(sum > 199 && sum < 201) }' <<<"$output"
}

report_is_silent_by_default() {
    local output
    output=$(coopib_pair ob1 "$ring" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    [ "$output" = "done" ]
}

coopib_report() {
    check report.each_rail.ob1 report_has_each_rail ob1
    check report.each_rail.coop report_has_each_rail coop
    check report.weights_are_shares report_weights_are_shares
    check report.silent_by_default report_is_silent_by_default
    check report.pvars.ob1 coopib_pair ob1 "$pvars" 2 4
    check report.pvars.coop coopib_pair coop "$pvars" 2 4
}

# --- one-sided communication ------------------------------------------------------------------------------------------

# Two hosts of one rank each: Open MPI's osc/rdma leaves put, get and atomic operations to the transport, also those on a rank's own window.
one_sided_says() { # PML [MPIRUN ARGUMENT…]
    local pml=$1 output
    shift
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --virtual-hosts -- mpirun -np 2 --mca pml "$pml" --mca btl coopib,self --mca osc rdma \
        --mca osc_rdma_btls coopib --mca btl_coopib_report 1 "$@" "$one_sided" 2>&1) || { echo "$output"; return 1; }
    echo "$output"
    has_line "$output" 1 "one-sided: all right" && has_line "$output" 1 "btl/coopib: rank 0 to rank 0" &&
        has_line "$output" 1 "btl/coopib: rank 0 to rank 1"
}

coopib_one_sided() {
    check one_sided.ob1 one_sided_says ob1
    check one_sided.coop one_sided_says coop
}

part_coopib() {
    local pml policy ground
    log=$results/log/coopib.build.log
    prepare_storm >"$log" 2>&1 || { report_fail coopib.build; return; }
    coopib_bad_input
    coopib_report
    coopib_one_sided
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
