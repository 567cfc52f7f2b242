# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The weights that btl/coopib gives to equal rails without a limit of their rates (site_31). They follow what each transfer takes, so
# nothing else may run on the machine.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# One message at a time goes back and forth over two equal rails, so that latency dominates. At the end each rail must have about half
# of the weight, on both sides. LEAST: the least number of RDMA operations, or parts of them, on each rail.
keeps_equal_weights() { # PML SIZE LEAST [ARGUMENT of mpirun…]
    local output least=$3
    output=$(limit=60 on_subnet --hosts 2 --hcas 2 --virtual-hosts -- mpirun -np 2 --map-by node --mca pml "$1" --mca btl coopib,self \
        --mca btl_coopib_report 1 --mca mpi_yield_when_idle 1 "${@:4}" "$prefix/libexec/ompi-coop/coop_latency" -m "$2:$2" -i 400 -b 3 2>&1) ||
        { local status=$?; echo "$output"; return $status; }
    echo "$output"
    awk -v least="$least" '/ coop[01] / { ++rails; if ($8 < least || $(NF - 1) < 42 || $(NF - 1) > 58) wrong = 1 } END { exit !(rails == 4 && !wrong) }' <<<"$output"
}

part_weights() {
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    local pml striped=(--mca btl_coopib_striping_threshold 16k)  # given, so that no message goes whole
    for pml in ob1 coop; do check "site_31.equal_rails_keep_equal_weights.$pml" keeps_equal_weights "$pml" 256K 1000 "${striped[@]}"; done
    check site_31.equal_rails_keep_equal_weights.where_messages_go_whole keeps_equal_weights coop 256K 400
}
