# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Two virtual nodes, a and b, in one kernel. Rail i is a pair of virtual Ethernet devices a<i> and b<i>, each with a Soft-RoCE device of
# the same name, in its own network: 10.0.<i>.1 and 10.0.<i>.2.
#
#     node a   a0 ======== b0   node b        all four are rdma_rxe: packets are UDP, port 4791
#              a1 ======== b1
#
# A kernel delivers packets to its own addresses directly, without using a device. Therefore the table of its own addresses is consulted
# last, and only for packets that come in at a device; a rule for each end of a rail sends packets to the other end through its device.
# Network namespaces would be simpler, but rdma_rxe of Linux 6.1 does not work in them.
rails=2

set_all() { # FILE VALUE
    local file
    for file in /proc/sys/net/ipv4/conf/*/"$1"; do echo "$2" >"$file"; done
}

one_end() { # RAIL DEVICE OWN OTHER
    local table=$((100 + $1 * 2 + $3))
    ip addr add "10.0.$1.$3/24" dev "$2" noprefixroute &&
        ip link set "$2" up &&
        ip rule add pref 10 iif "$2" lookup local &&
        ip rule add pref 20 from "10.0.$1.$3" to "10.0.$1.$4" lookup $table &&
        ip route add "10.0.$1.$4/32" dev "$2" src "10.0.$1.$3" table $table
}

make_rails() {
    local i end
    ip link set lo up
    ip rule add pref 100 lookup local && ip rule del pref 0 || return 1
    # 9000 bytes are enough for the largest MTU of InfiniBand, 4096.
    for ((i = 0; i < rails; ++i)); do ip link add "a$i" mtu 9000 type veth peer name "b$i" mtu 9000 || return 1; done
    set_all accept_local 1
    set_all rp_filter 0
    set_all arp_ignore 1
    set_all arp_announce 2
    for ((i = 0; i < rails; ++i)); do
        one_end "$i" "a$i" 1 2 && one_end "$i" "b$i" 2 1 || return 1
        for end in a b; do rdma link add "$end$i" type rxe netdev "$end$i" || return 1; done
    done
}
