# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# HPC Challenge, from Debian's package hpcc: its own checks must pass, and coll/rdmaag must have done allgathers.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# run_hpcc GROUND ORDER ROWS COLUMNS
run_hpcc() {
    local folder=$results/hpcc/$1 example=/usr/share/doc/hpcc/examples/_hpccinf.txt
    rm -rf "$folder" && mkdir -p "$folder" || return 1
    if [ -f "$example.gz" ]; then zcat "$example.gz"; else cat "$example"; fi |
        awk -f "$here/foreign/hpccinf.awk" -v n="$2" -v nb=40 -v p="$3" -v q="$4" >"$folder/hpccinf.txt" || return 1
    with_rdmaag "$pml"
    # Ranks that wait yield to other jobs: beside a busy job, six ranks took fifteen times as long as alone.
    (cd "$folder" && limit=900 OPENBLAS_NUM_THREADS=1 launch_and_keep "$1" $(($3 * $4)) "${rdmaag[@]}" -x OPENBLAS_NUM_THREADS hpcc) || return 1
    rdmaag_was_used "$log.job" || return 1
    /usr/bin/python3 "$here/foreign/hpcc_check.py" "$folder/hpccoutf.txt"
}

part_hpcc() {
    # shellcheck source=test/mpi/lib/rdmaag.sh
    . "$here/lib/rdmaag.sh"
    need_debian hpcc || return
    check hpcc.over_vader run_hpcc vader 600 2 2
    check hpcc.over_tcp run_hpcc tcp 300 2 1
    rarely check_on_cluster hpcc.over_cluster run_hpcc cluster 300 2 2
    if [ "$long" = yes ]; then check hpcc.larger_over_both run_hpcc both 3000 2 2; fi
}
