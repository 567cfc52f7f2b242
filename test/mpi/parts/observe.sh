# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The reports of pml/coop: at finalize, performance variables, ompi_info.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# report_says LEVEL HEADINGS GROUND NP: runs the storm with a report. There must be a heading per table, and the total must be at
# least the number of messages that the storm counted; collectives and set-up send more. The storm's line may come in the middle of a line
# of the report, which another process prints.
report_says() {
    local level=$1 headings=$2 ground=$3 np=$4 received total
    launch_and_keep "$ground" "$np" --mca pml_coop_report "$level" "$bin/storm" --messages 500 --seed 9 || return 1
    [ "$(grep -ac '^pml/coop: messages sent by' "$log.job")" = "$headings" ] || { echo "not $headings tables"; return 1; }
    received=$(grep -ao 'storm: [0-9]* messages received' "$log.job" | cut -d ' ' -f 2)
    total=$(awk '$1 == "total" { gsub(",", "", $2); n += $2 } END { print n + 0 }' "$log.job")
    echo "received $received, reported $total"
    [ "$total" -ge "$received" ] && grep -aq '  eager ' "$log.job" && grep -aqE '  (rget|rput|send|coop|rtr|bounce) ' "$log.job"
}

no_report_unasked() {
    launch_and_keep vader 2 "$bin/storm" --messages 100 || return 1
    ! grep -a 'messages sent by' "$log.job"
}

# The lines of a table must add up to the total.
report_adds_up() {
    launch_and_keep vader 2 --mca pml_coop_report 1 "$bin/storm" --messages 500 --seed 9 || return 1
    sed -n '/^pml\/coop: messages sent by/,$p' "$log.job" | sed 's/^  \(eager\|send\|rget\|rput\|coop\|rtr\|bounce\|lane\) /  /; s/<= *//' | awk '
        $1 == "total" { gsub(",", ""); total = $2; bytes = $3; next }
        $2 ~ /^(B|KiB|MiB|GiB)$/ { gsub(",", ""); n += $3; b += $4 }
        END { print n, total, b, bytes; exit !(n == total && b == bytes && n > 500) }'
}

parameters_are_shown() {
    ompi_info --param pml coop --level 9 >"$log.job" || return 1
    cat "$log.job"
    local name
    for name in priority protocol eager_limit rndv_inline rdma_min rdma_chunk rdma_depth coop_min copy_chunk rtr_min bounce_max send_depth report \
        fault; do
        grep -q "pml_coop_$name" "$log.job" || { echo "pml_coop_$name is not there"; return 1; }
    done
}

part_observe() {
    if [ "$pml" != coop ]; then
        report_skip observe "only pml/coop has it"
        return
    fi
    # shellcheck source=test/mpi/parts/semantics.sh
    . "$here/parts/semantics.sh"
    run_cases vader 2 pvars
    run_cases tcp 2 pvars
    check observe.retries_show_under_faults launch vader 2 --mca pml_coop_fault sendi:1,busy:3 "$bin/pvars" \
        --only retries_are_counted_by_reason faulty
    check observe.report_1_is_one_table report_says 1 1 vader 3
    check observe.report_2_is_a_table_per_rank_too report_says 2 4 vader 3
    check_on_cluster observe.report_1_covers_all_hosts report_says 1 1 cluster 6
    check observe.report_adds_up report_adds_up
    check observe.no_report_unless_asked no_report_unasked
    check observe.ompi_info_shows_the_parameters parameters_are_shown
}
