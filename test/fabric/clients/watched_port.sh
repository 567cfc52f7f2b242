#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run on a subnet: takes a port down and up again while ibv_asyncwatch waits for events of its device. Prints the events.
set -uo pipefail
tool=${COOP_FABRIC_TOOL:-coop-fabric}
said=$(mktemp)
trap 'rm -f "$said"' EXIT

COOP_FABRIC_HOST=h0 stdbuf -oL ibv_asyncwatch -d coop1 >"$said" 2>&1 &
watcher=$!
await() { # WORDS
    for _ in {1..200}; do
        ! grep -q "$1" "$said" || return 0
        sleep 0.02
    done
    return 1
}
await 'async event FD' &&
    "$tool" port h0/coop0 down && "$tool" port h0/coop0 up && # of the other device: ibv_asyncwatch must not see these
    "$tool" port h0/coop1 down && await PORT_ERR &&
    "$tool" port h0/coop1 up && await PORT_ACTIVE
status=$?
kill $watcher
wait $watcher 2>/dev/null
cat "$said"
[ "$(grep -c event_type "$said")" = 2 ] || status=1
exit $status
