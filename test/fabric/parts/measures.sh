# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Performance of the subnet. Other programs disturb single runs, so the condition has to hold in three of five runs; all figures are
# reported. A normal run asserts only ratios, shares and configured limits (of rates and memory); --long also asserts absolute times.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# holds NAME WHAT CONDITION COMMAND…: the command prints a last line 'figure X', and CONDITION (awk, about x) must hold in most runs.
# Runs until three runs agree; with rounds=1 once, for figures that do not vary. WHAT is the format of the result, with the median of
# X for %s.
holds() {
    local name=measures.$1 what=$2 condition=$3 figure figures=() good=0 bad=0 majority=$(((${rounds:-5} + 1) / 2))
    shift 3
    asked "$name" || return 0
    : >"$log"
    while [ $good -lt $majority ] && [ $bad -lt $majority ]; do
        figure=$("$@" 2>&1 | tee -a "$log" | awk '$1 == "figure" && NF == 2 {x = $2} END {print x}')
        figures+=("${figure:-none}")
        if [ -n "$figure" ] && awk -v x="$figure" "BEGIN {exit !($condition)}"; then good=$((good + 1)); else bad=$((bad + 1)); fi
    done
    echo "figures: ${figures[*]}; wanted: $condition" >>"$log"
    # shellcheck disable=SC2059 # the format is a variable on purpose
    if [ $good = $majority ]; then
        report_pass "$name" "$(printf "$what" "$(median_of "${figures[@]}")"), of ${figures[*]}"
    else
        report_fail "$name"
    fi
}

median_of() { printf '%s\n' "$@" | grep -v none | sort -g | awk '{x[NR] = $1} END {print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2}'; }

# reported NAME WHAT CONDITION COMMAND…: asserts the condition only with --long; otherwise the command just has to print a figure.
reported() {
    local condition=1 rounds=1
    [ "$long" = no ] || condition=$3 rounds=5
    holds "$1" "$2" "$condition" "${@:4}"
}

# perftest_figure COLUMN FACTOR SIZE OPTION… -- PROGRAM ARGUMENT…: a column of the program's report for that size, times FACTOR.
perftest_figure() {
    local column=$1 factor=$2 size=$3 options=()
    shift 3
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    on_subnet "${options[@]}" --counters -- "$here/lib/pair.sh" "$1" -s "$size" "${@:2}" |
        awk -v size="$size" -v column="$column" -v factor="$factor" '{print} $1 == size {x = $column * factor} END {if (x != "") print "figure", x}'
}

# In MB/s of 10^6 bytes: perftest's MB has 2^20 bytes, its Gb 10^9 bits.
bandwidth() { perftest_figure 4 125 "$1" "${@:2}" --report_gbits; }

# --- a limited link -------------------------------------------------------------------------------------------------------

# UCX's MB has 2^20 bytes.
ucx_bandwidth() { # OPTION…
    UCX_TLS=rc_v,self on_subnet --hosts 2 "$@" -- "$here/lib/pair.sh" ucx_perftest -t tag_bw -s 4194304 -n 100 -w 5 |
        awk '{print} $1 == "Final:" {printf "figure %.1f\n", $7 * 1.048576; exit}'
}

figure_of() { awk '$1 == "figure" {x = $2} END {print x}'; }

ratio() { awk -v x="$1" -v y="$2" 'BEGIN {if (x != "" && y > 0) printf "figure %.3f\n", x / y}'; }

two_rails_over_one() {
    local one two
    one=$(ucx_bandwidth --hcas 1 --rate 250MB/s | figure_of)
    two=$(ucx_bandwidth --hcas 2 --rate 250MB/s | figure_of)
    echo "one rail $one MB/s, two rails $two MB/s"
    ratio "$two" "$one"
}

# The share of the transfer time that the engines of both processes compute, in percent. A program that polls does a part of the
# work itself; one that sleeps (-e) leaves all of it to the engine, which also wakes it up.
engine_share() { # SIZE ARGUMENT…
    on_subnet --hosts 2 --rate 250MB/s --latency 2us --counters -- "$here/lib/pair.sh" ib_send_bw -s "$1" -n $((150000000 / $1)) "${@:2}" |
        awk '{print}
             $1 ~ /^h1/ && $2 == "active" {bytes = $5}
             $2 == "ib_send_bw" && ($3 == "h0" || $3 == "h1") {cpu_ms += $5}
             END {if (bytes > 0) printf "figure %.2f\n", 100 * cpu_ms / (bytes / 250e6 * 1000)}'
}

limited() {
    local verb size messages
    for size in 65536 1048576; do
        messages=$((100000000 / size))
        for verb in send write read; do
            holds "limit_of_250_holds.${verb}_$size" '%s MB/s' 'x >= 245 && x <= 255' \
                bandwidth $size --hosts 2 --rate 250MB/s -- ib_${verb}_bw -n $messages
        done
    done
    # The engine wakes up once for several messages.
    holds limit_of_250_holds.send_65536_sleeping '%s MB/s' 'x >= 245 && x <= 255' \
        bandwidth 65536 --hosts 2 --rate 250MB/s -- ib_send_bw -e -n 1526
    holds limit_of_2000_holds.write_1048576 '%s MB/s' 'x >= 1960 && x <= 2040' \
        bandwidth 1048576 --hosts 2 --rate 2GB/s -- ib_write_bw -n 1000
    holds two_limited_rails_carry_twice_as_much_of_ucx 'ratio %s' 'x >= 1.9 && x <= 2.1' two_rails_over_one
    # A busy machine needs more processor time: --long assumes that no other program runs.
    for size in 65536 262144 1048576; do
        share_is_at_most 20 emulating_250_takes_at_most_a_fifth_of_a_core $size
        share_is_at_most 20 emulating_250_for_sleepers_takes_at_most_a_fifth_of_a_core $size -e
        [ "$long" = yes ] || continue
        share_is_at_most 10 emulating_250_takes_at_most_a_tenth_of_a_core $size
        share_is_at_most 10 emulating_250_for_sleepers_takes_at_most_a_tenth_of_a_core $size -e
    done
}
share_is_at_most() { holds "$2.$3" '%s %% of a core' "x <= $1" engine_share "${@:3}"; } # PERCENT NAME SIZE ARGUMENT…

# --- an unlimited link ----------------------------------------------------------------------------------------------------

# The subnet's bandwidth divided by that of one process's copies, measured one directly after the other.
share_of_copying() { # SIZE COPIES
    local copy subnet
    copy=$("$bin/copy_limit" "$1" "$2")
    subnet=$(perftest_figure 4 0.125 "$1" --hosts 2 -- ib_write_bw -n "$2" --report_gbits | figure_of)
    echo "one process copies $copy GB/s, the subnet carries $subnet GB/s"
    ratio "$subnet" "$copy"
}

unlimited() {
    holds half_of_what_one_process_copies.1048576 'ratio %s' 'x >= 0.5' share_of_copying 1048576 2000
    reported share_of_what_one_process_copies.65536 'ratio %s' 'x >= 0.5' share_of_copying 65536 30000
    reported latency_of_writing_8_bytes '%s us' 'x <= 2' perftest_figure 5 1 8 --hosts 2 -- ib_write_lat -n 5000
    reported latency_of_sending_8_bytes '%s us' 'x <= 2.5' perftest_figure 5 1 8 --hosts 2 -- ib_send_lat -n 5000
    reported messages_of_8_bytes '%s million/s' 'x >= 0.8' perftest_figure 5 1 8 --hosts 2 -- ib_write_bw -n 200000
    holds idle_engines_sleep '%s wake-ups in a second' 'x == 0' on_subnet --hosts 2 -- "$here/clients/idle.sh" "$here/lib/pair.sh"
}

# --- a large subnet -----------------------------------------------------------------------------------------------------------

crowd() {
    on_subnet --hosts 64 --hcas 2 -- "$bin/crowd" 64 32 "$COOP_FABRIC_TOOL show --memory" |
        awk '{print} /^The subnet takes/ {kib = $4} /a message on each, checked/ {good = 1} END {if (good) print "figure", kib}'
}

part_measures() {
    local package
    # shellcheck disable=SC2034 # for on_subnet
    local limit=60
    for package in perftest ucx-utils; do need_debian $package || return 0; done
    limited
    unlimited
    rounds=1 holds hosts_64_hcas_128_queue_pairs_2048 '%s KiB of /dev/shm' 'x <= 8 * 1024' crowd
}
