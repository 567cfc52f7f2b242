# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The rate of a stream of messages while a rail is lost and comes back. Nothing else may run on the machine.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# shellcheck source=test/fabric/parts/failover.sh
. "$here/parts/failover.sh"

# The mean of the tenths of a second FROM..TO, in MB/s.
rate() { # FROM TO
    grep '^MB/s:' "$log.job" | cut -d' ' -f"$(($1 + 2))-$(($2 + 2))" | tr ' ' '\n' | awk '{ sum += $1 } END { print sum / NR }'
}

# Two rails of 200 MB/s. One is lost after 1.5 s, for 1.5 s. A tenth of a second holds only 19 rounds, so rates are means of about ten of
# them: a median would be a multiple of 10 MB/s. The requirement is 0.95 of what one rail alone carries with this program.
stream_goes_on_at_the_rate_of_the_other_rail() { # PML
    local one two
    limit=40 failing true --hosts 2 --rate 200MB/s -- --mca pml "$1" -- stream 2 65536 || return 1
    one=$(rate 5 15)
    survives 'sleep 1.5; f port h0/coop1/1 down; sleep 1.5; f port h0/coop1/1 up' --hosts 2 --hcas 2 --rate 200MB/s -- --mca pml "$1" -- \
        stream 4.5 65536 || return 1
    two="$(rate 5 13) $(rate 17 28) $(rate 36 43)"
    echo "one rail: $one MB/s; before, without and with the rail again: $two"
    awk -v one="$one" -v two="$two" 'BEGIN { split(two, r, " "); exit !(r[1] > 1.6 * one && r[2] >= 0.95 * one && r[3] > 1.6 * one) }'
}

part_failover_rate() {
    local pml
    log=$results/log/failover_rate.build.log
    prepare_failover >"$log" 2>&1 || { report_fail failover_rate.build; return; }
    for pml in ob1 coop; do
        check "stream_goes_on_at_the_rate_of_the_other_rail.$pml" stream_goes_on_at_the_rate_of_the_other_rail "$pml"
    done
}
