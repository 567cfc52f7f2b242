# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Progress while the application computes (pml_coop_async), through the kernel's own completion channels; and the number of outstanding
# reads, which is passed to the kernel.
# shellcheck disable=SC2154 # variables of tests

# shellcheck source=test/fabric/lib/watch.sh
. "$here/../fabric/lib/watch.sh"

# watched_job READS FIN [MPIRUN ARGUMENT…] -- PROGRAM…: READS 0 means no limit. The output is also written to $log.job.
watched_job() {
    local reads=$1 fin=$2 status=0
    shift 2
    PRELOAD_INTO_RANKS=$bin/watch_reads.so:$bin/watch_interrupts.so job coop --mca pml_coop_async interrupt --mca pml_coop_fin "$fin" \
        --mca btl_coopib_max_reads "$reads" "$@" >"$log.job" 2>&1 || status=$?
    cat "$log.job"
    return $status
}

# 64 messages cause a few interrupts, not 64. (In test/fabric, where an interrupt is short compared with the transfer, two suffice.)
burst() {
    watched_job 0 auto -- "$bin/interrupts" burst 8 && interrupted "$log.job" 1
}

quiet() {
    watched_job 0 auto -- "$bin/interrupts" quiet
}

# Reads that queue for one of the few places start when others complete, and completions interrupt, too.
burst_of_few_reads() { # READS
    watched_job "$1" after --mca pml_coop_protocol rget --mca btl_coopib_report 1 -- "$bin/interrupts" burst 48 &&
        interrupted "$log.job" 1 && reads_were_limited "$log.job" "$1" && reads_have_waited "$log.job" "$1"
}

# Pauses of up to 300 µs between the calls: either side reads messages while it computes. After a fence the device executes reads one
# by one, so the number of posted reads is not checked with a fence.
storm_with_pauses() { # READS FIN
    on_every_wire 80000 watched_job "$1" "$2" --mca pml_coop_protocol rget --mca btl_coopib_large_policy even_striping -- \
        "$bin/storm" --seed 17 --messages 120 --max-size 1000000 --compute 300 || return 1
    interrupted "$log.job" 0 && interrupted "$log.job" 1 || return 1
    if [ "$2" = after ]; then reads_were_limited "$log.job" "$1"; else grep -q "given $1 to begin, $1 to answer" "$log.job"; fi
}

part_async() {
    local reads few=(1) some=(4)
    [ "$long" = no ] || few+=(4) some+=(1)
    check async.few_interrupts_for_a_burst burst
    check async.none_for_short_messages_and_waiting_receivers quiet
    for reads in "${few[@]}"; do check "async.reads_$reads.burst" burst_of_few_reads "$reads"; done
    for reads in "${some[@]}"; do
        check "async.reads_$reads.after" storm_with_pauses "$reads" after
        check "async.reads_$reads.fenced" storm_with_pauses "$reads" fenced
    done
}
