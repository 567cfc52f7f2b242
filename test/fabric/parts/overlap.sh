# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# One-sided operations over HCAs go on while the origin computes. The software HCAs need processor time to go on, so nothing else may run
# on the machine.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# HCAs go on with 64 long operations while the origin computes, because all of them have been posted. Other programs may take the
# processors, so one of five runs suffices; without early posts no run hides more than a quarter.
hcas_go_on() { # put|get
    local hidden
    for _ in 1 2 3 4 5; do
        hidden=$(limit=60 on_subnet --hosts 2 --hcas 2 --rate 250MB/s --virtual-hosts -- mpirun -np 2 --bind-to none --mca pml coop \
            --mca btl coopib,self --mca mpi_yield_when_idle 1 --mca osc multirail "$prefix/libexec/ompi-coop/coop_rma_overlap" --op "$1" -m 128K -b 3 |
            awk '$1 == 131072 { print int($2) }')
        echo "hidden: ${hidden:-none} %"
        [ "${hidden:-0}" -lt 60 ] || return 0
    done
    return 1
}

part_overlap() {
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    check hcas_go_on.put hcas_go_on put
    check hcas_go_on.get hcas_go_on get
}
