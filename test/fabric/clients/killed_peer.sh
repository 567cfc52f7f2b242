#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run on a subnet: kills the server of a long transfer. The client must see retries exceeded, nothing of the dead process may
# remain, and a new pair must find the subnet in order.
#
#     killed_peer.sh PAIR       PAIR: pair.sh
set -uo pipefail
tool=${COOP_FABRIC_TOOL:-coop-fabric}
pair=$1

"$pair" ib_write_bw -D 20 -s 65536 &
running=$!
kill_server() {
    local pid
    # The process on host h0 is the server. The transfer is under way when the client on h1 has sent something.
    until "$tool" counters | awk '$1 ~ /^h1/ && $5 > 1000000 {found = 1} END {exit !found}'; do
        kill -0 $running || return 1
        sleep 0.02
    done
    pid=$("$tool" counters | awk '$2 == "ib_write_bw" && $3 == "h0" {print $1}')
    echo "killing $pid"
    kill -9 "$pid"
}
kill_server || exit 1
wait $running && { echo "the client has not noticed"; exit 1; }

"$pair" ibv_rc_pingpong -c || exit 1
"$tool" show --memory
"$tool" show --memory | awk '/^(processes|open devices|memory regions|completion queues|queue pairs) / && $(NF - 2) != 0 {left = 1} END {exit left}'
