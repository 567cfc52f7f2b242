# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# One-sided communication by osc/multirail over HCAs: the programs of test/mpi/rma and the storm of test/mpi/rma_storm, which
# check every byte, over btl/coopib with one to four rails, on several kinds of HCAs, despite losses and refused RDMA.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

rma_build() {
    local program
    for program in calls sizes types ops epochs signals atomics queued windows dynamic requests threads progress busy_target counts memory; do mpi_program rma_$program || return 1; done
    mpi_program rma_storm || return 1
    eval "$("$prefix/bin/coop-env")"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    window=$results/bin-mpi/window
    mkdir -p "${window%/*}" && mpicc -O1 -o "$window" "$here/../../docs/examples/window.c" || return 1
    refuse_rail=$results/bin-mpi/refuse_rail.so
    ${CC:-gcc} -O1 -Wall -Wextra -Werror -shared -fPIC -o "$refuse_rail" "$here/programs/refuse_rail.c" -ldl
}

# rma PML HOSTS [OPTION of the subnet…] -- [ARGUMENT of mpirun…] PROGRAM…: one process on each host, or $per_host.
rma() {
    local pml=$1 hosts=$2 options=()
    shift 2
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    limit=${limit:-100} on_subnet --hosts "$hosts" "${options[@]}" --virtual-hosts -- mpirun -np $((hosts * ${per_host:-1})) --bind-to none --mca pml "$pml" \
        --mca btl "${btl:-coopib},self" --mca mpi_yield_when_idle 1 --mca osc multirail "$@"
}

# The report of the job must name a way of operations. WORD…: of the report, then --, then the arguments of rma.
rma_says() {
    local words=() word said=$log.said
    while [ "$1" != -- ]; do words+=("$1") && shift; done
    shift
    rma "$@" >"$said" 2>&1 || { cat "$said" && return 1; }
    for word in "${words[@]}"; do grep -aE "osc/multirail: rank 0:.*$word" "$said" || return 1; done
}

# Long blocks are striped, so each of two rails sends about half of what one rank puts.
both_rails_send() {
    local said=$log.counters bytes
    limit=100 on_subnet --hosts 2 --hcas 2 --virtual-hosts --counters -- mpirun -np 2 --bind-to none --mca pml coop --mca btl coopib,self \
        --mca mpi_yield_when_idle 1 --mca osc multirail "$prefix/libexec/ompi-coop/coop_rma_bw" -d -m 1M -i 8 -b 1 -x 1 >"$said" 2>&1 || { cat "$said" && return 1; }
    for port in h0/coop0/1 h0/coop1/1; do
        bytes=$(awk -v port="$port" '$1 == port && $2 == "active" { print $5; exit }' "$said")
        echo "$port sent $bytes bytes"
        [ "${bytes:-0}" -gt 2000000 ] || return 1
    done
}

# The report of btl/coopib says how the bytes that the report of the windows calls direct were divided between rails.
long_puts_are_on_both_rails() {
    local said=$log.said
    rma coop 2 --hcas 2 -- --mca osc_multirail_report 1 --mca btl_coopib_report 1 "$window" >"$said" 2>&1 || { cat "$said" && return 1; }
    grep -aF 'osc/multirail: rank 1: window 1 (allocate, 2 processes): direct 1 (65536 B); staged 1 (8 B); message 1 (8 B);' "$said" || return 1
    awk '/^btl\/coopib: / { there = /: rank 1 to rank 0$/ }
        there && $2 ~ /^coop[01]$/ { ++rails; bytes += $6; if ($6 < 16384) ++idle }
        END { print rails, "rails carried", bytes; exit !(rails == 2 && !idle && bytes >= 65536) }' "$said"
}

# Short operations that follow each other are started in lists, up to 32 in each. Too few places in the send queues, or no
# queue pairs for reads, make lists shorter or let them wait.
short_ones_go_in_lists() { # put|get ARGUMENT of mpirun…
    local said=$log.said of_get=()
    [ "$1" = put ] || of_get=(--stride 1024)  # one read would cover close ones
    rma coop 2 --hcas 2 -- --mca osc_multirail_report 1 "${@:2}" "$prefix/libexec/ompi-coop/coop_rma_aggregate" --op "$1" "${of_get[@]}" --sync flush \
        -d -m 2400 -i 4 -b 2 -x 1 >"$said" 2>&1 || { cat "$said" && return 1; }
    awk '/osc\/multirail: rank 0: staged / { for (i = 1; i < NF; ++i) { if ($i == "rdma") rdma = $(i + 1); if ($i == "lists") lists = $(i + 1) } }
        END { print rdma + 0, "transfers,", lists + 0, "lists"; exit !(rdma > 2000 && lists > rdma / 33 && lists < rdma / 10) }' "$said"
}

# Stripes of 16 KiB cost more time than they save if the links have no limit of their rate; then most operations go whole. On
# slow links hardly any does: some may be tried if the machine is busy.
stripes_pay_once() { # yes|no [OPTION of the subnet…]
    local said=$log.said pay=$1 size=16K
    [ "$pay" = no ] || size=64K  # where the policy stripes most operations, whatever the backlog
    rma coop 2 --hcas 2 "${@:2}" -- --mca btl_coopib_report 1 --mca btl_coopib_min_stripe 8k "$prefix/libexec/ompi-coop/coop_rma_latency" --op put -m "$size" -i 400 -b 5 -x 1 \
        >"$said" 2>&1 || { cat "$said" && return 1; }
    awk -v pay="$pay" '/^btl\/coopib: / { there = /: rank 0 to rank 1$/ }
        there && /RDMA operations:.* in stripes: stripes have taken longer$/ { whole = $3 }
        there && /RDMA operations:.* in stripes: the kind of call is unknown/ { striped = $5 }
        END { print whole + 0, "whole,", striped + 0, "in stripes"; exit !(pay == "yes" ? striped > 100 && 20 * whole < striped : whole > striped) }' "$said"
}
# Another program may take the processors just when the ways are compared.
stripes_pay() { # as stripes_pay_once
    for _ in 1 2 3; do ! stripes_pay_once "$@" || return 0; done
    return 1
}

# Rank 1 has no rail on coop0, the HCA that each process names for atomic operations. So targets execute locks and accumulates.
needs_no_rail_for_atomics() { # ARGUMENT…
    # shellcheck disable=SC2016 # expanded where a rank starts
    rma coop 3 --hcas 2 -- sh -c '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || export REFUSE_RAIL=coop0; LD_PRELOAD=$0:$LD_PRELOAD exec "$@"' "$refuse_rail" "$@"
}

reads_nothing_behind() { # arguments of rma
    rma_says ' rdma [1-9]' -- "$@" && ! grep -a 'reads_behind' "$log.said"
}

# The HCA that changes the lock of accumulates also moves their data.
accumulates_are_on_one_rail() {
    local said=$log.said
    rma coop 2 --hcas 2 -- --mca btl_coopib_report 1 "$programs/rma_sizes" few --only accumulate_under_locks >"$said" 2>&1 || { cat "$said" && return 1; }
    awk '/^btl\/coopib: / { there = /: rank 0 to rank 1$/ }
        there && $2 == "coop0" { first += $6 } there && $2 == "coop1" { second += $6 }
        END { print "coop0 carried", first + 0, "bytes, coop1", second + 0; exit !(first > 1000000 && second < first / 20) }' "$said"
}

# The reads of each rail have a queue pair of their own, which carries them; bytes: of rank 0, which also probes the rails.
reads_have_queue_pairs() {
    local said=$log.said
    rma coop 2 --hcas 2 -- --mca btl_coopib_report 1 "$@" "$prefix/libexec/ompi-coop/coop_rma_interleave" -d -m 64K -b 4 -i 4 -x 1 >"$said" 2>&1 || { cat "$said" && return 1; }
    awk '/^btl\/coopib: / { there = /: rank 0 to rank 1$/ }
        there && /^  read over queue pairs of their own, which 2 rails have: / { bytes = $(NF - 1) }
        END { print "read apart:", bytes + 0, "bytes"; exit !(bytes > 1000000) }' "$said"
}
reads_share_queue_pairs() { ! reads_have_queue_pairs --mca btl_coopib_interleave 0; }

# Packets and acknowledgements are lost, so that HCAs send again: once for several that are lost from one list.
rma_despite_losses() { # PML ARGUMENT…
    local kind at=0
    for kind in drop lose-ack corrupt drop lose-ack rnr drop lose-ack corrupt drop; do echo "after $((at += 60)) messages fault all $kind --count 3"; done >"$log.scenario"
    rma "$1" 3 --hcas 2 --scenario "$log.scenario" --trace-to "$log.trace" -- --mca btl_coopib_timeout 10 "${@:2}" || return 1
    at=$(grep -c '  retry QP' "$log.trace")
    rm -f "$log.trace"
    echo "sent again: $at times"
    [ "$at" -ge 5 ]
}

# A rail takes 2 ms longer than the other one: what travels on it, data and signals, arrives long after the signals of the other. Both take
# turns.
rma_with_late_rails() { # ARGUMENT…
    local turn host at
    for turn in {0..39}; do
        at=$(printf '%d.%03d' $((turn * 25 / 1000)) $((turn * 25 % 1000)))
        for host in h0 h1 h2; do
            echo "at ${at}s link $host/coop$((turn % 2))/1-sw0 latency 2ms"
            echo "at ${at}s link $host/coop$(((turn + 1) % 2))/1-sw0 latency 0ms"
        done
    done >"$log.scenario"
    rma coop 3 --hcas 2 --scenario "$log.scenario" -- "$@"
}

# Epochs without long puts need no signals behind writes.
rma_sends_signals() { # ARGUMENT…
    local said=$log.said
    rma coop 3 --hcas 2 -- --mca osc_multirail_report 1 --mca btl_coopib_report 1 "$@" >"$said" 2>&1 || { cat "$said" && return 1; }
    grep -aE 'osc/multirail: rank 0:.* signals [0-9]+;' "$said" && grep -a 'signals behind writes: [1-9]' "$said"
}
rma_sends_no_signals() { ! rma_sends_signals "$@"; }

part_rma() {
    local programs=$PWD/_results/mpi/bin topic of_pml=coop fault profile port program
    log=$results/log/rma.build.log
    rma_build >"$log" 2>&1 || { report_fail rma.build; return; }
    for topic in calls sizes types ops epochs atomics queued windows dynamic requests threads; do
        check "$topic.$of_pml" rma $of_pml 3 --hcas 2 -- "$programs/rma_$topic" few
        if [ $of_pml = ob1 ]; then of_pml=coop; else of_pml=ob1; fi
    done
    check progress rma coop 4 -- "$programs/rma_progress"
    # More operations than the rails carry in time: one origin, and two with one target, whose frames are all messages.
    check memory.coop rma coop 2 --hcas 2 --rate 200MB/s -- "$programs/rma_memory" few
    rarely check memory.messages_of_two rma ob1 3 --rate 100MB/s -- --mca osc_multirail_hca_control 0 "$programs/rma_memory" few
    # What needs no CPU of the target, with one rail and two, several processes on a host, busy transports.
    check busy_target.coop rma coop 3 -- "$programs/rma_busy_target" few
    check busy_target.ob1 rma ob1 3 --hcas 2 -- "$programs/rma_busy_target" few
    per_host=2 btl=vader,coopib check busy_target.neighbours rma coop 2 --hcas 2 --slots 2 -- "$programs/rma_busy_target" few
    check busy_target.faults rma coop 3 -- --mca osc_multirail_fault put_busy:2,get_busy:3,put:3,get:5 "$programs/rma_busy_target" few
    # Accumulates that wait for each other: in memory of the same host, too, with busy transports, and despite losses.
    per_host=2 btl=vader,coopib check queued.neighbours rma coop 2 --hcas 2 --slots 2 -- "$programs/rma_queued" few
    check queued.faults rma coop 3 -- --mca osc_multirail_fault put_busy:2,get_busy:3 "$programs/rma_queued" few
    check queued.losses rma_despite_losses coop "$programs/rma_queued" few
    # Reads that do not wait for the lock, while others hold it; and requests that wait for each other.
    check queued.latency rma coop 4 --hcas 2 --latency 20us -- "$programs/rma_queued" few
    rarely check queued.with_failover rma coop 3 --hcas 2 -- --mca btl_coopib_failover 1 "$programs/rma_queued" few
    for topic in a_flush_of_several_targets_takes_as_long_as_one a_long_accumulate_takes_as_long_as_a_short_one; do
        check "queued.$topic" rma coop 5 --latency 20ms -- "$programs/rma_queued" slow --only $topic
    done
    # The transport registers no more staging memory, and one block is free for accumulates on three targets.
    check queued.starved rma coop 4 --hcas 2 -- --mca osc_multirail_fault alloc:1 "$programs/rma_queued" few starved \
        --only accumulates_on_several_targets_need_no_more_than_one_block
    # 11 epochs of 64 accumulates, and two atomic operations for each.
    check queued.are_collected rma_says ' atomics 2[0-9];' -- coop 2 --hcas 2 -- --mca osc_multirail_report 1 "$prefix/libexec/ompi-coop/coop_rma_acc" \
        --calls 64 -m 64 -i 10 -b 1 -x 1
    check queued.fetching_ones_are_collected rma_says ' atomics 2[0-9];' -- coop 2 --hcas 2 -- --mca osc_multirail_report 1 \
        "$prefix/libexec/ompi-coop/coop_rma_acc" --op fetch_op --calls 64 -m 8 -i 10 -b 1 -x 1
    # Most packets of an epoch wait for places in the send queue.
    check busy_origin rma coop 2 --rate 50MB/s -- --mca btl_coopib_send_depth 4 "$programs/rma_busy_target" few --only the_end_of_an_epoch_needs_nothing_of_a_busy_origin
    [ "$long" = no ] || limit=200 check busy_target.for_a_minute rma coop 3 --hcas 2 -- "$programs/rma_busy_target" few seconds=60 --only locks_of_all_need_nothing_of_a_busy_target
    for profile in nosrq unordered small; do
        check "sizes.$profile" rma coop 2 --hcas 2 --profile $profile -- "$programs/rma_sizes" few
    done
    check sizes.roce rma ob1 2 --hcas 2 --link-layer roce -- "$programs/rma_sizes" few
    check sizes.four_unequal_rails rma coop 2 --hcas 4 --rate 250MB/s,250MB/s,100MB/s,50MB/s -- "$programs/rma_sizes" few
    rarely check sizes.two_paths rma coop 2 --lmc 1 -- "$programs/rma_sizes" few
    check sizes.reads_share_queue_pairs rma coop 2 --hcas 2 -- --mca btl_coopib_interleave 0 "$programs/rma_sizes" few
    check reads_have_queue_pairs reads_have_queue_pairs
    check reads_share_queue_pairs reads_share_queue_pairs
    check lists.put short_ones_go_in_lists put
    check lists.get short_ones_go_in_lists get
    check lists.put.few_places short_ones_go_in_lists put --mca btl_coopib_send_depth 4
    rarely check lists.get.shared_queue_pairs short_ones_go_in_lists get --mca btl_coopib_interleave 0
    check stripes_pay stripes_pay yes --rate 250MB/s
    check stripes_cost_more stripes_pay no
    # Ends of epochs over several rails, which may be late.
    check signals.late_rails rma_with_late_rails "$programs/rma_signals" few
    rarely check signals.late_rails_and_fences rma_with_late_rails --mca osc_multirail_signals 2 "$programs/rma_signals" few
    check signals.late_rails_without_signals rma_with_late_rails --mca osc_multirail_signals 0 "$programs/rma_signals" few
    check signals.slow_second_rail rma ob1 3 --hcas 2 --rate 250MB/s,10MB/s -- --mca osc_multirail_signals 2 "$programs/rma_signals" few
    rarely check signals.slow_first_rail rma coop 3 --hcas 2 --rate 10MB/s,250MB/s -- "$programs/rma_signals" few
    check signals.four_unequal_rails rma coop 3 --hcas 4 --rate 250MB/s,250MB/s,100MB/s,50MB/s -- --mca osc_multirail_signals 2 "$programs/rma_signals" few
    for profile in nosrq unordered small; do
        rarely check "signals.$profile" rma coop 3 --hcas 2 --profile $profile -- --mca osc_multirail_signals 2 "$programs/rma_signals" few
        rarely check "signals.two_processes.$profile" rma coop 2 --hcas 2 --profile $profile -- --mca osc_multirail_signals 2 "$programs/rma_signals" few
    done
    check signals.refused rma coop 3 --hcas 2 -- --mca osc_multirail_fault alloc:2,put:5,register:7 "$programs/rma_signals" few
    check signals.losses rma_despite_losses coop --mca osc_multirail_signals 2 "$programs/rma_signals"
    check signals.are_sent rma_sends_signals "$programs/rma_signals" few
    check signals.are_not_sent_if_unwanted rma_sends_no_signals --mca osc_multirail_signals 0 "$programs/rma_signals" few
    # What was flushed is there before the message that says so. The message may take another rail or path than the data. Reads behind
    # writes hide a missing wait for the writes, so some runs have none.
    program=("$programs/rma_epochs" --only targets_find_what_was_flushed_before_a_message)
    for topic in coop ob1; do
        [ $topic = coop ] || ! is_brief || continue
        check "flush.one_rail.$topic" rma $topic 3 -- "${program[@]}"
        check "flush.two_paths.$topic" rma $topic 3 --lmc 1 -- "${program[@]}"
        check "flush.two_rails.$topic" rma $topic 3 --hcas 2 -- "${program[@]}"
        check "flush.two_rails_without_reads_behind.$topic" rma $topic 3 --hcas 2 -- --mca osc_multirail_read_behind 0 "${program[@]}"
        check "flush.slow_second_rail.$topic" rma $topic 3 --hcas 2 --rate 250MB/s,50MB/s -- --mca osc_multirail_read_behind 0 "${program[@]}" few
        check "flush.four_unequal_rails.$topic" rma $topic 3 --hcas 4 --rate 250MB/s,250MB/s,100MB/s,50MB/s -- "${program[@]}" few
    done
    rarely check flush.late_rails rma_with_late_rails "${program[@]}" few
    check flush.late_rails_without_reads_behind rma_with_late_rails --mca osc_multirail_read_behind 0 "${program[@]}" few
    rarely check flush.messages rma coop 3 --hcas 2 -- --mca osc_multirail_hca_control 0 "${program[@]}" few
    check flush.target_helps rma coop 3 --hcas 2 -- --mca osc_multirail_target_helps 1 "${program[@]}" few
    program=("$programs/rma_threads" --only targets_find_what_each_thread_flushed_before_its_message)
    check flush.threads.two_paths rma coop 3 --lmc 1 -- "${program[@]}"
    rarely check flush.threads.two_rails rma ob1 3 --hcas 2 -- --mca osc_multirail_read_behind 0 "${program[@]}"
    check both_rails_send both_rails_send
    check report.direct rma_says 'direct [1-9]' 'reason: long [1-9]' -- coop 2 -- --mca osc_multirail_report 1 "$programs/rma_sizes" few
    check report.not_registered rma_says 'reason: not-registered [1-9]' 'refused_registrations [1-9]' -- coop 2 -- --mca osc_multirail_report 1 \
        --mca osc_multirail_fault register:1 "$programs/rma_sizes" few
    check report.refused rma_says 'reason: refused-by-transport [1-9]' -- ob1 2 -- --mca osc_multirail_report 1 --mca osc_multirail_fault put:2,get:2 "$programs/rma_sizes" few
    for topic in each_window_counts_its_own_operations a_dynamic_window_counts_messages threads_lose_no_count; do
        check "counts.$topic" rma coop 3 --hcas 2 -- "$programs/rma_counts" --only "$topic" few hcas
    done
    # Of rank 0, to two others: two long puts and gets for each, four short ones, two atomics; beside those to itself.
    check report.window rma_says 'window 1 \(create, 3 processes\): shared-memory 6 \(131232 B\); direct 4 \(262144 B\); staged 14 \(368 B\); reason: own-memory 6; reason: long 4; reason: short 8; reason: executed-by-origin 6;$' \
        -- coop 3 --hcas 2 -- --mca osc_multirail_report 1 "$programs/rma_counts" --only each_window_counts_its_own_operations hcas
    rarely check report.window_without_hca_control rma_says 'window 1 \(create, 3 processes\): shared-memory 8 \(131248 B\); direct 4 \(262144 B\); message 12 \(352 B\); reason: own-memory 8; reason: long 4; reason: short 8; reason: executed-by-target 4;$' \
        -- coop 3 --hcas 2 -- --mca osc_multirail_hca_control 0 --mca osc_multirail_report 1 "$programs/rma_counts" --only each_window_counts_its_own_operations rdma
    check report.rails long_puts_are_on_both_rails
    check report.puts_from_read_only_memory rma_says 'window 1 .*: direct 2 \(524288 B\); reason: long 2;$' -- coop 2 --hcas 2 -- \
        --mca osc_multirail_report 1 "$programs/rma_sizes" --only long_puts_from_memory_that_may_only_be_read
    # A transport that has refused memory is not asked for it again in each call.
    check report.refused_once rma_says 'refused-by-transport 10;.* refused_registrations 1;' -- coop 2 --hcas 2 -- \
        --mca osc_multirail_report 1 "$programs/rma_sizes" --only long_puts_from_both_sides_of_memory_that_does_not_exist
    check accumulates_are_on_one_rail accumulates_are_on_one_rail
    check reads_behind.several_hcas rma_says ' reads_behind [1-9]' -- coop 2 --hcas 2 -- --mca osc_multirail_report 1 "$programs/rma_sizes" few
    for topic in lock lock_all; do
        check "reads_behind.unlock_does_without.$topic" reads_nothing_behind coop 2 --hcas 2 -- --mca osc_multirail_report 1 "$prefix/libexec/ompi-coop/coop_rma_sync" --epoch $topic -i 20 -b 1 -x 1
    done
    check reads_behind.one_hca reads_nothing_behind coop 2 --lmc 1 -- --mca osc_multirail_report 1 "$programs/rma_sizes" few
    check reads_behind.unwanted reads_nothing_behind coop 2 --hcas 2 -- --mca osc_multirail_report 1 --mca osc_multirail_read_behind 0 "$programs/rma_sizes" few
    for topic in atomics epochs; do check "no_rail_for_atomics.$topic" needs_no_rail_for_atomics "$programs/rma_$topic" few; done
    btl=vader,coopib check one_node rma coop 2 -- "$programs/rma_sizes" few
    for fault in put_busy:2,get_busy:3 busy:3,alloc:2,sendi:1 register:3; do
        check "faults.$fault" rma coop 3 -- --mca osc_multirail_fault "$fault" "$programs/rma_calls" few
    done
    check losses.coop rma_despite_losses coop "$programs/rma_calls" few
    rarely check losses.ob1 rma_despite_losses ob1 "$programs/rma_storm" --operations 1500 --seed 21
    for topic in 1 2 3; do
        [ $topic = 1 ] || ! is_brief || continue
        check "storm.seed_$topic" rma $of_pml 4 --hcas 2 -- "$programs/rma_storm" --operations 1500 --seed "$topic"
        if [ $of_pml = ob1 ]; then of_pml=coop; else of_pml=ob1; fi
    done
    rarely check storm.signals rma coop 3 --hcas 2 -- --mca osc_multirail_signals 2 "$programs/rma_storm" --operations 1500 --seed 9
    check storm.threads rma coop 3 --hcas 2 -- "$programs/rma_storm" --operations 1500 --seed 5 --threads 3
    # Targets execute what is short in passive epochs: in their calls, or in the asynchronous handler while they compute.
    for topic in sizes types requests atomics; do
        rarely check "$topic.target_helps" rma $of_pml 3 --hcas 2 -- --mca osc_multirail_target_helps 1 "$programs/rma_$topic" few
    done
    check report.target_helps rma_says 'reason: target-helps [1-9]' -- coop 2 --hcas 2 -- --mca osc_multirail_report 1 --mca osc_multirail_target_helps 1 \
        "$programs/rma_types" few
    check busy_target.handler_helps rma coop 3 --hcas 2 -- --mca osc_multirail_target_helps 1 --mca pml_coop_async interrupt "$programs/rma_busy_target" few
    check storm.target_helps rma coop 3 --hcas 2 -- --mca osc_multirail_target_helps 1 "$programs/rma_storm" --operations 1500 --seed 7
    rarely check storm.handler_helps rma coop 3 --hcas 2 -- --mca osc_multirail_target_helps 1 --mca pml_coop_async interrupt "$programs/rma_storm" \
        --operations 1500 --seed 8 --threads 2
    rarely check storm.with_interrupts rma coop 3 --hcas 2 -- --mca pml_coop_async interrupt "$programs/rma_storm" --operations 1500 --seed 6
}
