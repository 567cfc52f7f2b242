# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Long messages with RDMA write alone and with RDMA read alone, selected by the transport's flags. One-sided communication: put, get,
# fetch and add, compare and swap.
# shellcheck disable=SC2154 # variables of tests

long_messages() { # PML FLAGS
    on_every_wire 80000 storm_of 60 "$1" --mca btl_coopib_flags "$2" --mca btl_coopib_large_policy even_striping
}

one_sided_is_right() { # PML
    on_every_wire 500000 one_sided "$1" | tee "$log.job" && grep -qx 'one-sided: all right' "$log.job"
}

part_transfers() {
    check transfers.ob1.reads long_messages ob1 send,get
    check transfers.coop.writes long_messages coop send,put
    check transfers.coop.one_sided one_sided_is_right coop
    # test/fabric runs all of them under both.
    [ "$long" = yes ] || return 0
    check transfers.ob1.writes long_messages ob1 send,put
    check transfers.coop.reads long_messages coop send,get
    check transfers.ob1.one_sided one_sided_is_right ob1
}
