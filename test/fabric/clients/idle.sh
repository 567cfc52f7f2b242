#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Run on a subnet: two processes with connected queue pairs have nothing to do for a second. Prints how often their engines
# woke up meanwhile.
#
#     idle.sh PAIR       PAIR: pair.sh
set -uo pipefail
tool=${COOP_FABRIC_TOOL:-coop-fabric}

# The wake-ups of both processes' engines; prints nothing unless both run.
wakeups() {
    "$tool" counters --json | grep -o '"state": "running", .*"engine_wakeups": [0-9]*' |
        awk '{sum += $NF; ++n} END {if (n == 2) print sum}'
}

"$1" ib_send_bw -s 65536 -n 50 --wait_destroy=3 >/dev/null 2>&1 &
pair=$!
# The pair is idle when nothing has been sent or received for half a second.
still=0 before=''
while [ $still -lt 5 ]; do
    kill -0 $pair || exit 1
    sleep 0.1
    now=$("$tool" counters --json | grep -o '"received_messages": [0-9]*' | sort -u | paste -s -d ' ')
    if [ "$now" = "$before" ] && [[ $now == *" 50" ]]; then still=$((still + 1)); else still=0; fi
    before=$now
done
first=$(wakeups)
sleep 1
second=$(wakeups)
if [ -z "$first" ] || [ -z "$second" ]; then
    echo "the programs have ended already"
    exit 1
fi
echo "wake-ups so far: $first, a second later: $second"
echo "figure $((second - first))"
wait $pair
