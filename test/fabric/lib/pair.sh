#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the server and the client of a program (of ibverbs-utils, perftest, ucx-utils) on a subnet: the server on host h0 and,
# when it listens, the client on h1.
#
#     pair.sh PROGRAM ARGUMENT…        PROGRAM -p PORT ARGUMENT… on h0, PROGRAM -p PORT ARGUMENT… localhost on h1
#
# Prints the output of the client, then that of the server. Exit status 0 if both succeed. When one of them fails, the other
# has two seconds to end. perftest measures one clock by another, as it starts or before it reports. If they disagree, as happens
# on a busy machine, it fails, or ends with 0 and reports 'inf'. Then both are started again, and the test's result mentions that
# (lib/report.sh).
set -uo pipefail

is_listened_to() { # PORT
    grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)) && is_listened_to "$port"; do :; done
    echo "$port"
}

said=$(mktemp)
trap 'rm -f "$said" "$said.client" "$said.ends"' EXIT

# run_both PROGRAM ARGUMENT...: returns 0 if both server and client do.
run_both() {
    local program=$1 port server client first second
    local -A status=()
    shift
    port=$(free_port)
    COOP_FABRIC_HOST=h0 "$program" -p "$port" "$@" >"$said" 2>&1 &
    server=$!
    while ! is_listened_to "$port" && kill -0 $server 2>/dev/null; do sleep 0.01; done
    COOP_FABRIC_HOST=h1 "$program" -p "$port" "$@" localhost >"$said.client" 2>&1 &
    client=$!

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
    echo "client ended with ${status[$client]}, server with ${status[$server]}" >"$said.ends"
    [ "${status[$client]}${status[$server]}" = 00 ]
}

clocks_disagreed() { cat "$said" "$said.client" | grep -q 'Correlation coefficient r^2'; }

failed=1
for _ in {1..5}; do
    run_both "$@"
    failed=$?
    clocks_disagreed || break
    [ -z "${COOP_TEST_RETRIES:-}" ] || echo "perftest's two clocks did not agree" >>"$COOP_TEST_RETRIES"
done
cat "$said.client"
sed 's/^/server: /' "$said"
cat "$said.ends"
exit $failed
