#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program that wants a server and a client (those of ibverbs-utils, perftest and ucx-utils do) on a subnet: the server
# on host h0, then, when it listens, the client on h1.
#
#     pair.sh PROGRAM ARGUMENT…        PROGRAM -p PORT ARGUMENT… on h0, PROGRAM -p PORT ARGUMENT… localhost on h1
#
# Prints what the client says, then what the server said. Exit status 0 if both have it. When one of them fails, the other has
# two seconds to find out.
set -uo pipefail

is_listened_to() { # PORT
    grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)) && is_listened_to "$port"; do :; done
    echo "$port"
}

program=$1
shift
port=$(free_port)
said=$(mktemp)
trap 'rm -f "$said"' EXIT
COOP_FABRIC_HOST=h0 "$program" -p "$port" "$@" >"$said" 2>&1 &
server=$!
while ! is_listened_to "$port" && kill -0 $server 2>/dev/null; do sleep 0.01; done
COOP_FABRIC_HOST=h1 "$program" -p "$port" "$@" localhost &
client=$!

declare -A status=()
wait -n -p first
status[$first]=$?
if [ "${status[$first]}" != 0 ]; then
    for _ in {1..40}; do
        [ -n "$(jobs -r)" ] || break
        sleep 0.05
    done
    # shellcheck disable=SC2046 # words
    kill -9 $(jobs -rp) 2>/dev/null
fi
second=$((server + client - first))
wait $second
status[$second]=$?
sed 's/^/server: /' "$said"
echo "client ended with ${status[$client]}, server with ${status[$server]}"
[ "${status[$client]}${status[$server]}" = 00 ]
