# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# One-sided communication by osc/multirail (programs: rma/): every call in every epoch on windows of every flavour, over several
# transports and under both PMLs. With `--pml ob1`, the same programs with the components of stock Open MPI, over shared memory.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# Words of mpirun that choose the component. osc/ucx would otherwise get windows of one process, and fail.
osc_words=(--mca osc "$osc")
[ "$osc" != stock ] && [ "$pml" = coop ] || osc_words=(--mca osc ^ucx)

# rma_start GROUND NP PML ARGUMENT…: launch, with the component and the PML. Ranks outnumber cores, and yield while they wait.
rma_start() {
    local common=(--mca pml "$3" "${common[@]:3}" "${osc_words[@]}") yielding=(--mca mpi_yield_when_idle 1)
    [ "$1" != cluster ] || yielding=()
    [ -z "$san" ] || yielding=() # sanitizers.sh sets it
    launch "$1" "$2" "${yielding[@]}" "${@:4}"
}

# rma_cases GROUND NP PML TOPIC ARGUMENT…: all cases of a program.
rma_cases() {
    local ground=$1 np=$2 of_pml=$3 of_topic=$4 arguments=("${@:5}")
    [ "$pml" = coop ] || of_pml=ob1
    run_topic "rma.$ground.$of_pml.$of_topic" "$bin/rma_$of_topic" rma_on_ground
}
rma_on_ground() { rma_start "$ground" "$np" "$of_pml" "$bin/rma_$of_topic" "$@" "${arguments[@]}"; }

rma_vader() {
    local of_pml=coop topic
    for topic in calls sizes types ops epochs signals atomics queued windows shared dynamic requests threads errors ranges finalizing near info; do
        rma_cases vader 3 $of_pml $topic
        if [ $of_pml = ob1 ]; then of_pml=coop; else of_pml=ob1; fi
    done
}

# Four processes: two that read and two that write.
rma_progress() {
    local ground
    for ground in vader tcp; do rma_cases $ground 4 coop progress; done
}

# The memory for operations under way is limited; sanitizers need more.
rma_memory() {
    [ "$osc" = multirail ] && [ -z "$san" ] || return 0
    rma_cases vader 3 coop memory few
    rma_cases tcp 3 coop memory few
    # Only one target at a time has collected operations.
    check rma.one_open_frame.calls rma_start tcp 4 coop --mca osc_multirail_open_frames 1 "$bin/rma_calls"
    check rma.one_open_frame.storm rma_start vader 4 ob1 --mca osc_multirail_open_frames 1 "$bin/rma_storm" --operations 1500 --seed 32
    check rma.one_open_frame.is_counted rma_early_frames_are_counted
}
rma_early_frames_are_counted() {
    local said=$log.said
    rma_start tcp 4 coop --mca osc_multirail_open_frames 1 --mca osc_multirail_report 1 "$bin/rma_calls" >"$said" 2>&1 || { cat "$said" && return 1; }
    grep -aE 'osc/multirail: rank 0: .* early_frames [1-9]' "$said"
}

# A bit flips in a packet. The job must end by itself and say so.
rma_damage_is_diagnosed() { # FAULT
    local said=$log.said
    ends_with_an_error rma_start tcp 2 coop --mca osc_multirail_fault "$1" "$bin/rma_calls" >"$said" 2>&1 || { cat "$said" && return 1; }
    ! grep -aE 'Signal:|signal [0-9]+ \(|HANG|CHECK failed|AddressSanitizer|runtime error' "$said" || return 1
    grep -a 'osc/multirail: a packet of a window is damaged' "$said"
}

# One process cannot attach to the memory of the other one, so they share none, and no segment is counted.
rma_counts_no_segment_that_is_not_used() {
    local said=$log.said
    # shellcheck disable=SC2016 # expanded where a rank starts
    rma_start vader 2 coop --mca osc_multirail_report 1 sh -c '[ "$OMPI_COMM_WORLD_RANK" != 1 ] || export OMPI_MCA_osc_multirail_fault=register:1; exec "$@"' sh \
        "$prefix/libexec/ompi-coop/coop_rma_latency" --op put --window allocate -m 8 -i 4 -b 1 -x 1 >"$said" 2>&1 || { cat "$said" && return 1; }
    grep -aE 'osc/multirail: rank 0: window 1 \(allocate, ' "$said" && ! grep -aE 'osc/multirail: rank .* (same-node|segments)' "$said"
}

# Refused packets, memory that cannot be shared, damaged packets. Without CMA, so that there are packets.
rma_faults() {
    local fault of_pml topic
    check rma.faults.segment_that_is_not_used rma_counts_no_segment_that_is_not_used
    local osc_words=("${osc_words[@]}" --mca osc_multirail_cma 0)
    for fault in busy:3,alloc:2,sendi:1 register:1 register:2; do
        check "rma.faults.$fault" rma_start vader 3 coop --mca osc_multirail_fault "$fault" "$bin/rma_calls"
        check "rma.faults.storm.$fault" rma_start tcp 3 ob1 --mca osc_multirail_fault "$fault" "$bin/rma_storm" --operations 1500 --seed 31
    done
    # The target detaches memory while its answers wait for room in the transport.
    check rma.faults.detached rma_start vader 3 coop --mca osc_multirail_fault busy:2 "$bin/rma_dynamic" --only memory_is_detached_while_others_read_it
    # Blocks of created windows travel as messages of the PML.
    for of_pml in ob1 coop; do
        for topic in calls sizes windows requests threads; do
            [ $of_pml.$topic = coop.calls ] || [ $of_pml.$topic = coop.sizes ] || ! is_brief || continue
            check "rma.messages.$of_pml.$topic" rma_start both 3 $of_pml --mca osc_multirail_rendezvous_min 8 "$bin/rma_$topic"
        done
    done
    for fault in corrupt_match@9 corrupt_match@30=4 corrupt_match@12=17 corrupt_match@20=28 corrupt_fin@7 corrupt_fin@11=9 corrupt_fin@5=26; do
        check "rma.faults.damaged.$fault" rma_damage_is_diagnosed "$fault"
    done
}

# Without CMA, so that operations on created windows are messages.
rma_tcp() {
    local of_pml=ob1 topic osc_words=("${osc_words[@]}" --mca osc_multirail_cma 0)
    for topic in calls sizes types ops epochs signals atomics queued windows dynamic requests threads errors ranges; do
        case $topic in calls | types | epochs | atomics | windows | requests | errors) rma_cases tcp 2 $of_pml $topic few ;;
        *) rarely rma_cases tcp 2 $of_pml $topic few ;; esac
        if [ $of_pml = ob1 ]; then of_pml=coop; else of_pml=ob1; fi
    done
}

# Windows whose processes are on several hosts, two on each.
rma_cluster() {
    local of_pml=coop topic
    cluster_possible || { report_skip rma.cluster "$no_cluster" 189; return; }
    for topic in calls sizes types ops epochs signals atomics queued windows shared dynamic requests threads errors ranges finalizing near info; do
        case $topic in calls | windows | shared | threads) rma_cases cluster 6 $of_pml $topic few ;;
        *) rarely rma_cases cluster 6 $of_pml $topic few ;; esac
        if [ $of_pml = ob1 ]; then of_pml=coop; else of_pml=ob1; fi
    done
    [ "$osc" != multirail ] || rma_cases cluster 6 coop counts few
}

# The kernel denies copies to one of three processes, or to all, or refuses every third copy later. Nothing is lost; the report gives
# the reason, and the job says it once.
rma_denied_copies() { # all|RANK
    launch_and_keep vader 3 "${osc_words[@]}" --mca mpi_yield_when_idle 1 --mca osc_multirail_report 1 "$bin/deny_copies" "$1" "$bin/rma_calls" || return 1
    for rank in 0 1 2; do grep -aE "osc/multirail: rank $rank:.* message .*cma-refused" "$log.job" | tail -1 | grep . || return 1; done
    ! grep -aE 'osc/multirail: rank [0-2]:.* cma [0-9]' "$log.job" || return 1
    [ "$(grep -ac 'osc/multirail: processes of this node may not copy' "$log.job")" = 1 ]
}

# More long blocks than may be under way: the origin waits, and the report counts that.
rma_long_blocks_are_limited() {
    launch_and_keep vader 3 "${osc_words[@]}" --mca mpi_yield_when_idle 1 --mca osc_multirail_rendezvous_min 1000 --mca osc_multirail_report 1 \
        "$bin/rma_near" --only many_long_blocks_in_an_epoch || return 1
    grep -aE 'osc/multirail: rank 0: .*both-copy 600.* buffer_waits [0-9]+;.* rendezvous 600' "$log.job"
}

# No operation becomes a message because of memory between its blocks.
rma_reads_no_gaps_that_cannot_be_copied() {
    launch_and_keep vader 2 "${osc_words[@]}" --mca mpi_yield_when_idle 1 --mca osc_multirail_report 1 "$bin/rma_near" --only gaps_that_cannot_be_copied || return 1
    grep -aE 'osc/multirail: rank 1:.* cma [0-9]+' "$log.job" && ! grep -aE 'osc/multirail: rank 1:.*refused-by-transport' "$log.job"
}

# The job must end by itself, and say which process died.
rma_names_a_killed_target() {
    local status=0
    limit=60 launch_and_keep vader 3 "${osc_words[@]}" --mca mpi_yield_when_idle 1 "$bin/rma_near" --only a_target_is_killed killed || status=$?
    is_status_of_an_error $status 9 || return 1
    ! grep -aE 'Segmentation|HANG|CHECK failed|AddressSanitizer|runtime error' "$log.job" || return 1
    grep -aE 'process rank 0 .*signal 9|No such process' "$log.job"
}

# Windows whose memory the processes of the node do not share, but read and write.
rma_near() {
    local status=0
    rma_cases vader 4 coop busy_target few dynamic
    "$bin/deny_copies" all true || status=$?
    if [ $status = 0 ]; then
        check rma.near.denied_to_one rma_denied_copies 1
        check rma.near.denied_to_all rma_denied_copies all
        check rma.near.denied_later rma_start vader 3 coop "$bin/rma_near" --only the_kernel_refuses_one_process_later denied
    else
        report_skip rma.near.denied "the kernel has no seccomp filters" 3
    fi
    check rma.near.refused_later rma_start vader 3 coop --mca osc_multirail_fault put:3,get:4 "$bin/rma_calls"
    check rma.near.refused_later.layouts rma_start vader 3 ob1 --mca osc_multirail_fault put:3,get:4 "$bin/rma_near"
    check rma.near.refused_later.queued rma_start vader 3 coop --mca osc_multirail_fault put:3,get:4 "$bin/rma_queued" few
    check rma.near.long_blocks_are_limited rma_long_blocks_are_limited
    check rma.near.reads_no_gaps_that_cannot_be_copied rma_reads_no_gaps_that_cannot_be_copied
    [ -n "$san" ] || check rma.near.names_a_killed_target rma_names_a_killed_target
}

# rma_counts_say OPTION… CASE PATTERN…: each of these extended regular expressions is a whole line of the job's output, or with '!'
# before it, none is.
rma_counts_say() {
    local options=() line missing=0
    while [[ $1 == --* ]]; do options+=("$1" "$2" "$3") && shift 3; done
    local common=(--mca pml coop "${common[@]:3}" "${osc_words[@]}" "${options[@]}")
    launch_and_keep vader 2 --mca mpi_yield_when_idle 1 "$bin/rma_counts" --only "$1" || return 1
    for line in "${@:2}"; do
        case $line in
        !*) ! grep -aqxE -- "${line#!}" "$log.job" || { echo "said: '${line#!}'" && missing=1; } ;;
        *) grep -aqxE -- "$line" "$log.job" || { echo "missing: '$line'" && missing=1; } ;;
        esac
    done
    return $missing
}

# osc/sm serves the windows of MPI_Win_allocate_shared, since it has a higher priority.
rma_beside_another_component() {
    local osc_words=(--mca osc "multirail,sm")
    rma_start vader 2 coop "$bin/rma_counts" --only other_windows_cannot_be_bound foreign
}

# What is counted for each window, and what is printed.
rma_counts() {
    local me='osc/multirail: rank [01]' rest='( [-a-z_]+:? [-a-z0-9]+( [0-9]+)?;)*'
    [ "$osc" = multirail ] || return 0
    rma_cases vader 3 coop counts
    check rma.counts.without_cma rma_start vader 3 coop --mca osc_multirail_cma 0 "$bin/rma_counts" no_cma
    check rma.counts.threads rma_start vader 2 coop "$bin/rma_counts" --multiple --only threads_lose_no_count
    check rma.counts.beside_another_component rma_beside_another_component
    check rma.counts.report rma_counts_say --mca osc_multirail_report 1 windows_with_and_without_names \
        "$me: window 1 \(allocate, 2 processes\): shared-memory 2 \(150 B\); reason: own-memory 1; reason: same-node 1;" \
        "$me: window 2 \(allocate, 1 process\): shared-memory 1 \(256 B\); reason: own-memory 1;" \
        "$me: window 3 \"halo\?left\" \(create, 2 processes\): message 1 \(16 B\); cma 1 \(100 B\); reason: executed-by-target 1; reason: not-shared 1;" \
        "$me: shared-memory 3; message 1; cma 1; reason: own-memory 2; reason: same-node 1; reason: executed-by-target 1; reason: not-shared 1;$rest" \
        "!$me: window 4.*" "!.*: operations"
    check rma.counts.tables rma_counts_say --mca osc_multirail_report 2 windows_with_and_without_names \
        "$me: window 3 .*: operations" ' *message +<= 64 B +1 +16 +16 B +executed-by-target' ' *cma +<= 1 KiB +1 +100 +100 B +not-shared' ' +total +2 +116 +116 B' \
        "$me: operations" ' +total +5 +522 +522 B'
    check rma.counts.many_windows rma_counts_say --mca osc_multirail_report 2 forty_windows \
        "$me: window 32 \(allocate, 2 processes\): shared-memory 1 \(32 B\); reason: own-memory 1;" '!.*: window 33 .*' \
        "$me: windows 33 to 40 are only in the sum" "$me: shared-memory 40; reason: own-memory 40;$rest" ' +total +40 +820 +820 B'
    check rma.counts.windows_that_are_not_freed rma_counts_say --mca osc_multirail_report 1 windows_are_not_freed \
        "$me: window 1 .*: shared-memory 1 \(10 B\); reason: own-memory 1;" "$me: window 2 .*: shared-memory 1 \(20 B\); reason: own-memory 1;" \
        "$me: shared-memory 2; reason: own-memory 2;$rest"
    check rma.counts.no_report_unless_asked rma_counts_say windows_with_and_without_names '!osc/multirail.*'
}

# Over HCAs with sanitizers, which test/fabric does not use: RDMA, staging memory, locks by HCAs. The subnet is not instrumented.
rma_subnet() {
    local topic
    if [ ! -x "$fabric/bin/coop-fabric" ] || [ "$fabric" -ef "$prefix" ]; then
        report_skip rma.subnet "it takes a software subnet that was built without sanitizers (--fabric P)"
        return
    fi
    for topic in busy_target threads types queued; do rma_cases subnet 3 coop $topic few; done
}

part_rma() {
    rma_vader
    [ "$pml" = coop ] || return 0
    rma_counts
    ! everywhere || rma_tcp
    rma_progress
    rma_memory
    [ "$osc" != multirail ] || rma_near
    if [ -n "$san" ]; then rma_subnet; else rma_faults; fi
    rma_cluster
}
