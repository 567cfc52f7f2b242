# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The preconditions of the tests: four devices, and packets that really cross the wires.
# shellcheck disable=SC2154 # variables of tests

devinfo_sees_four() {
    local said
    said=$(ibv_devinfo) || return 1
    echo "$said"
    [ "$(grep -cE '^hca_id:[[:space:]]+[ab][01]$' <<<"$said")" = 4 ] && [ "$(grep -c 'PORT_ACTIVE' <<<"$said")" = 4 ] &&
        [ "$(grep -c 'active_mtu:.*4096' <<<"$said")" = 4 ] && [ "$(grep -c 'link_layer:.*Ethernet' <<<"$said")" = 4 ]
}

# A server on node a and a client on node b, over one rail; GID 1 is RoCE v2 with the IPv4 address.
pingpong() { # PROGRAM RAIL
    local server status=0
    "$1" -d "a$2" -g 1 -n 50 -c -p 18515 &
    server=$!
    until ss -Hltn 'sport = :18515' | grep -q .; do
        kill -0 $server 2>/dev/null || return 1
        sleep 0.1
    done
    "$1" -d "b$2" -g 1 -n 50 -c -p 18515 localhost || status=$?
    wait $server && [ $status = 0 ]
}

# 50 messages go back and forth: their bytes must arrive at both ends of this rail, and not on the other rail.
pingpong_crosses() { # PROGRAM RAIL BYTES
    local ends=("a$2" "b$2") other before
    other=a$((1 - $2))
    before=$(arrived_at "$other")
    on_every_wire $((50 * $3)) timeout 60 bash -c "$(declare -f pingpong); pingpong $1 $2" || return 1
    [ $(($(arrived_at "$other") - before)) -lt 10000 ] || { echo "the other rail has been used"; return 1; }
}

# rxe's own packet counters, on both sides.
rxe_counts() {
    local device
    for device in "${ends[@]}"; do
        [ "$(cat "/sys/class/infiniband/$device/ports/1/hw_counters/rcvd_pkts")" -gt 100 ] || { echo "$device has received nothing"; return 1; }
    done
}

part_sanity() {
    check sanity.devinfo_sees_four_devices devinfo_sees_four
    check sanity.rc_pingpong_crosses_rail_0 pingpong_crosses ibv_rc_pingpong 0 4096
    check sanity.rc_pingpong_crosses_rail_1 pingpong_crosses ibv_rc_pingpong 1 4096
    check sanity.srq_pingpong_crosses pingpong_crosses ibv_srq_pingpong 0 4096
    [ "$long" = no ] || {
        check sanity.uc_pingpong_crosses pingpong_crosses ibv_uc_pingpong 1 4096
        check sanity.ud_pingpong_crosses pingpong_crosses ibv_ud_pingpong 1 1024
    }
    [[ $pattern != '*' ]] || check sanity.devices_have_counted rxe_counts
}
