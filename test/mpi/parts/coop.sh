# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Copies inside a node: every value of pml_coop_protocol (a "wish"), truncation, offered receives, shortages, refused operations,
# storms, a dying peer, a kernel that denies copies, a side that computes, a crowded node, memory that cannot be shared.
# Programs: coop/ and storm/.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

rows() { # NAME WISH ARGUMENT-OF-MPIRUN… -- ARGUMENT…
    local name=$1 wish=$2 for_mpirun=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do for_mpirun+=("$1") && shift; done
    [ $# = 0 ] || shift
    # No process takes over the copy of one that is only late: the row decides who copies, also on a busy machine.
    check "coop.$name" launch vader 2 "${for_mpirun[@]}" --mca pml_coop_patience 100000000 --mca pml_coop_protocol "$wish" "$bin/rows" "$wish" "$@"
}

part_coop() {
    # The lane would carry the medium messages for which these tests ask for other protocols; the part lane tests it.
    local -x OMPI_MCA_pml_coop_lane=${OMPI_MCA_pml_coop_lane:-0}
    local wish wishes=(hybrid coop)
    if [ "$pml" != coop ]; then
        report_skip coop "only pml/coop has it"
        return
    fi
    # The code of these is part of hybrid and coop, which is enough for a sanitizer.
    ! everywhere || wishes+=(rget rput send coop_fixed coop_coll coop_load)
    for wish in "${wishes[@]}"; do
        rows "rows_by_$wish" "$wish"
    done
    for wish in hybrid coop rget rput send; do
        check "coop.truncation_by_$wish" launch vader 2 --mca pml_coop_protocol "$wish" "$bin/truncation" \
            --only send_buffer_with_gaps_fills_a_receive_that_ends_inside_of_an_element
        everywhere || break
    done
    check coop.hints hints
    part_coop_offers
    # A spawned process is reached over tcp.
    # Under a sanitizer both.dynamic covers this code, in less time.
    ! everywhere || check site_07.processes_that_are_gone_leave_no_memory launch both 1 --mca mpi_yield_when_idle 1 "$bin/spawning" \
        "$(if [ "$long" = yes ]; then echo 100; else echo 5; fi)"
    part_coop_shortage
    part_coop_faults
    part_coop_storm
    part_coop_kill
    part_coop_denied
    part_coop_sharing
    part_coop_alone
    part_coop_crowded
}

# The output must report the two values that are not allowed: of pml_coop_copy_chunk, and the protocol 'no such thing'.
hints() {
    launch vader 2 --mca pml_coop_lane 1 "$bin/hints" >"$results/log/coop.hints.out" 2>&1 || { cat "$results/log/coop.hints.out"; return 1; }
    cat "$results/log/coop.hints.out"
    grep -q 'pml_coop_copy_chunk' "$results/log/coop.hints.out" && grep -q 'no such thing' "$results/log/coop.hints.out"
}

part_coop_offers() {
    # shellcheck source=test/mpi/parts/semantics.sh
    . "$here/parts/semantics.sh"
    run_cases vader 2 offers
    run_cases vader 2 bounce
}

# shortage RANK PARAMETER VALUE CASE [ARGUMENT…]: with the parameter set in one process, or in all of them.
shortage() {
    # shellcheck disable=SC2016 # expanded where a rank starts
    launch "${ground:-vader}" 2 sh -c '[ "$1" != all ] && [ "$1" != "$OMPI_COMM_WORLD_RANK" ] || export "OMPI_MCA_pml_coop_$2=$3"; shift 3; exec "$@"' sh \
        "$1" "$2" "$3" "$bin/shortage" --only "$4" "${@:5}"
}

part_coop_shortage() {
    local kind
    # Needs half a gigabyte and a minute, and several times that under a sanitizer.
    [ "$long$san" != yes ] || check site_10.three_hundred_thousand_sends_wait_for_their_receives launch vader 2 "$bin/shortage" \
        --only three_hundred_thousand_sends_wait_for_their_receives
    check site_10.a_send_without_an_id_returns_an_error shortage 0 fault no_id@5 a_send_without_an_id_returns_an_error
    for kind in send ssend bsend start; do
        check "site_10.mpi_${kind}_without_an_id_returns_an_error" shortage 0 fault no_id@1 every_kind_of_send_returns_the_error $kind
    done
    check site_10.more_sends_than_the_limit_return_an_error shortage all free_list_max 64 more_long_sends_than_there_is_room_for_return_an_error
    check site_10.short_sends_beyond_the_limit_wait shortage 0 free_list_max 64 short_sends_without_room_wait
    # The same over tcp, which accepts no message at once.
    ground=tcp check site_10.short_sends_beyond_the_limit_wait_over_tcp shortage 0 free_list_max 64 short_sends_without_room_wait
    check site_10.more_receives_than_the_limit_return_an_error shortage all free_list_max 64 \
        more_receives_than_there_is_room_for_return_an_error
}

part_coop_faults() {
    local wish fault faults=(get:1 put:1 "get_busy:2,put_busy:3,get:7,put:5,busy:5,alloc:7")
    [ "$long" = no ] || faults+=(get_busy:2 put_busy:2 alloc:3 busy:3 "get:3,put:4")
    # The last one covers the code of the others.
    everywhere || faults=("${faults[2]}")
    for wish in coop hybrid; do
        for fault in "${faults[@]}"; do
            rows "rows_by_${wish}_under_$fault" "$wish" --mca pml_coop_fault "$fault" -- refused
        done
        rows "both_refused_by_$wish" "$wish" --mca pml_coop_fault get:1,put:1 -- both
    done
    for wish in rget rput coop; do
        check "coop.rest_begins_inside_of_an_element_by_$wish" launch vader 2 --mca pml_coop_protocol "$wish" --mca pml_coop_fault get:3,put:3 \
            "$bin/datatypes" --only blocks_that_end_inside_of_the_senders_elements
        everywhere || break # the code of the others is the same
    done
    check coop.bounce_under_faults launch vader 2 --mca pml_coop_fault busy:3,alloc:5,sendi:2 "$bin/bounce" refused
    check coop.load_after_a_copy_that_both_refused launch vader 2 --mca pml_coop_protocol coop_load --mca pml_coop_fault get@1,put@1 "$bin/load" coop
    check coop.load_after_a_get_that_was_refused launch vader 2 --mca pml_coop_protocol coop_load --mca pml_coop_fault get@1 "$bin/load" coop_load
}

# --- a peer that dies -----------------------------------------------------------------------------------------------

# killed_in_a_copy VICTIM HOW WISH: kills rank VICTIM in the middle of a long copy of the program endless, whose
# argument is HOW. The job must end by itself, without a crash, and leave nothing in /dev/shm.
killed_in_a_copy() {
    local victim=$1 how=$2 wish=$3 pid='' status=0 i job
    : >"$log.job"
    limit=60 launch vader 2 --mca pml_coop_protocol "$wish" "$bin/endless" "$how" >"$log.job" 2>&1 &
    job=$!
    for ((i = 0; i < 300; ++i)); do
        pid=$(sed -n "s/^PID $victim \([0-9]*\)$/\1/p" "$log.job")
        [ -z "$pid" ] || break
        sleep 0.1
    done
    [ -n "$pid" ] || { echo "it did not start"; cat "$log.job"; return 1; }
    sleep 0.0"$((RANDOM % 90 + 10))"
    kill -9 "$pid"
    local start=$SECONDS
    wait "$job" || status=$?
    cat "$log.job"
    echo "ended $((SECONDS - start)) s later with status $status"
    [ $((SECONDS - start)) -le 20 ] || { echo "too late"; return 1; }
    # mpirun reports the victim's signal 9, and no other.
    is_status_of_an_error $status 9 || return 1
    if grep -aE 'Signal: |Segmentation|core dumped|signal ([0-8]|1[0-9]) ' "$log.job"; then return 1; fi
    sleep 0.5
    # The transport's files are in our folder; /dev/shm may have files of other jobs.
    ! find /dev/shm -mindepth 1 | grep -E "^$shm/|coop" | grep -v coop-fabric
}

part_coop_kill() {
    [ -z "$san" ] || return 0
    local victim
    for victim in 0 1; do
        check "coop.rank_${victim}_is_killed_in_a_copy" killed_in_a_copy $victim send hybrid
        check "coop.rank_${victim}_is_killed_in_a_copy_of_halves" killed_in_a_copy $victim send coop_fixed
    done
    check coop.rank_1_is_killed_in_an_exchange killed_in_a_copy 1 exchange hybrid
}

# --- a kernel that denies copies ------------------------------------------------------------------------------------

# denied WHO WISH NP: the kernel denies copies to WHO (all, or a rank). Data is correct, the notice is printed once with
# reason and remedy, and the report mentions it.
denied() {
    local who=$1 wish=$2 np=$3
    local what=("$bin/rows" "$wish" refused)
    [ "$np" = 2 ] || what=("$bin/storm" --messages 300 --seed 3)
    launch_and_keep vader "$np" --mca pml_coop_protocol "$wish" --mca pml_coop_report 1 "$bin/deny_copies" "$who" "${what[@]}" || return 1
    [ "$(grep -ac 'may not copy from each other' "$log.job")" = 1 ] || { echo "not one notice"; return 1; }
    grep -aE 'Reason: *process_vm_readv: Operation not permitted' "$log.job" && grep -a 'cap-add=SYS_PTRACE' "$log.job" &&
        grep -a 'the kernel denies' "$log.job" || return 1
    # Two ranks: no message may use these rows. More ranks run the storm, whose messages to self may use them.
    [ "$np" != 2 ] || ! grep -aE '^  (coop|rtr|rget|rput) ' "$log.job"
}

# There is no notice if copies were switched off on purpose.
not_wanted() {
    launch_and_keep vader 2 --mca btl_vader_single_copy_mechanism none --mca pml_coop_report 1 "$bin/deny_copies" all "$bin/storm" --messages 200 \
        --seed 3 || return 1
    ! grep -a 'may not copy' "$log.job"
}

part_coop_denied() {
    local wish status=0
    "$bin/deny_copies" all true || status=$?
    if [ $status = 77 ]; then
        report_skip coop.denied "no seccomp here" "$(if ! everywhere; then echo 4; elif [ "$long" = no ]; then echo 7; else echo 12; fi)"
        return
    fi
    local wishes=(hybrid coop)
    [ "$long" = no ] || wishes+=(coop_fixed coop_coll coop_load rget rput)
    everywhere || wishes=(hybrid)
    for wish in "${wishes[@]}"; do check "coop.denied_to_all_by_$wish" denied all "$wish" 2; done
    check coop.denied_to_all_of_four denied all hybrid 4
    ! everywhere || check coop.denied_to_rank_0 denied 0 hybrid 2
    check coop.denied_to_rank_1 denied 1 hybrid 2
    ! everywhere || check coop.denied_to_one_of_three denied 1 hybrid 3
    check coop.denied_and_not_wanted not_wanted
}

# --- a side that computes -----------------------------------------------------------------------------------------------

alone() { # NAME WISH ARGUMENT-OF-MPIRUN… -- ARGUMENT…
    local name=$1 wish=$2 for_mpirun=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do for_mpirun+=("$1") && shift; done
    [ $# = 0 ] || shift
    limit=100 check "coop.site_04.alone_$name" launch vader 3 --mca mpi_yield_when_idle 1 --mca pml_coop_protocol "$wish" "${for_mpirun[@]}" \
        "$bin/alone" "$wish" "$@"
}

part_coop_alone() {
    local wish level wishes=(hybrid coop coop_fixed coop_coll coop_load rget rput)
    if [ -n "$san" ]; then
        for wish in coop_fixed rput; do alone "by_${wish}_among_threads" "$wish" -- few --multiple; done
        return 0
    fi
    for wish in "${wishes[@]}"; do alone "by_$wish" "$wish"; done
    [ "$long" = yes ] || wishes=(hybrid coop rput)
    for wish in "${wishes[@]}"; do alone "by_${wish}_among_threads" "$wish" -- --multiple; done
    for level in funneled serialized; do alone "by_hybrid_$level" hybrid -- "--$level"; done
    for wish in hybrid coop rput; do
        alone "by_${wish}_when_operations_are_refused_for_a_while" "$wish" --mca pml_coop_fault put_busy:2,get_busy:3 -- few
    done
}

# --- a crowded node -------------------------------------------------------------------------------------------------------

# crowded yes|no WRAPPER…: two ranks started by the wrapper consider the node crowded, or not. On a crowded node, only one side of a
# message copies if both wait.
crowded() {
    local expected=$1 seen=no
    shift
    launch_and_keep vader 2 --mca pml_coop_report 1 "$@" "$bin/rows" hybrid refused --only messages_arrive_whole_whatever_the_calls || return 1
    grep -aq 'both sides wait: both copy' "$log.job" || seen=yes
    [ $seen = "$expected" ]
}

# Like 'crowded yes', in a control group that may use one CPU (cpu controller of version 2 or 1, whichever there is).
crowded_by_a_limit() {
    local folder wrapper
    folder=$(cpu_group) || return 1
    # shellcheck disable=SC2016 # for the inner shell
    wrapper=(sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$folder")
    crowded yes "${wrapper[@]}"
    local status=$?
    rmdir "$folder"
    return $status
}
cpu_group() { # makes a group that may use one CPU; prints its folder
    local folder
    for folder in /sys/fs/cgroup /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct; do
        mkdir "$folder/ct.$COOP_TEST_RUN" 2>/dev/null || continue
        folder=$folder/ct.$COOP_TEST_RUN
        if { [ -f "$folder/cpu.max" ] && echo 100000 100000 >"$folder/cpu.max"; } 2>/dev/null ||
            { [ -f "$folder/cpu.cfs_quota_us" ] && echo 100000 >"$folder/cpu.cfs_quota_us"; } 2>/dev/null; then
            echo "$folder"
            return 0
        fi
        rmdir "$folder"
    done
    return 1
}

# The first of the CPUs that this shell may use.
first_cpu() { taskset -cp $$ | sed 's/.*: //;s/[,-].*//'; }

part_coop_crowded() {
    local folder cpus
    cpus=$(first_cpu)
    if [ "$(nproc)" -lt 2 ]; then
        report_skip coop.site_14.crowded "one CPU is always crowded by two ranks"
        return
    fi
    check coop.site_14.two_ranks_on_one_cpu_are_crowded crowded yes taskset -c "$cpus"
    everywhere || return 0 # all other jobs run on nodes that are not crowded, or are crowded by their ranks
    check coop.site_14.two_ranks_on_two_cpus_are_not_crowded crowded no
    # shellcheck disable=SC2016 # for the inner shell
    ! taskset -c 0 true || ! taskset -c 1 true ||
        check coop.site_14.two_ranks_with_a_cpu_each_are_not_crowded crowded no sh -c 'exec taskset -c "$OMPI_COMM_WORLD_LOCAL_RANK" "$@"' sh
    if folder=$(cpu_group) && rmdir "$folder"; then
        check coop.site_14.two_ranks_with_the_time_of_one_cpu_are_crowded crowded_by_a_limit
    else
        report_skip coop.site_14.two_ranks_with_the_time_of_one_cpu_are_crowded "no control group can be made here"
    fi
}

# --- memory that cannot be shared -------------------------------------------------------------------------------------

part_coop_sharing() {
    local preload=(-x LD_PRELOAD="$bin/no_memfd.so")
    limit=100 check coop.site_05.a_receiver_without_descriptors_gets_its_messages launch vader 2 "$bin/sharing" nofile
    limit=100 check coop.site_05.a_sender_that_is_not_dumpable_is_heard launch vader 2 "$bin/sharing" private
    limit=100 check coop.site_05.a_sender_that_is_no_longer_dumpable_is_heard launch vader 2 "$bin/sharing" late
    if unshare --pid --fork true 2>/dev/null; then
        limit=100 check coop.site_13.processes_of_two_pid_namespaces_hear_each_other launch vader 2 "$here/lib/own_pid_namespace" 1 "$bin/sharing" apart
    else
        report_skip coop.site_13.processes_of_two_pid_namespaces_hear_each_other "no PID namespaces here (not root?)"
    fi
    [ -z "$san" ] || return 0
    limit=100 check coop.site_05.memory_that_must_not_hold_programs_is_shared launch vader 2 "${preload[@]}" -x NO_MEMFD=noexec "$bin/sharing" noexec
    limit=100 check coop.site_05.missing_shared_memory_is_reported_once said_once_without_memory
}

said_once_without_memory() {
    launch_and_keep vader 2 -x LD_PRELOAD="$bin/no_memfd.so" -x NO_MEMFD=none "$bin/sharing" none || return 1
    [ "$(grep -ac 'cannot create memory that the processes of this node share' "$log.job")" = 1 ] || { echo "not one notice"; return 1; }
    grep -a 'Reason: *memfd_create: Permission denied' "$log.job"
}

# --- storms ---------------------------------------------------------------------------------------------------------

# The report must count offers that were used.
storm_of_offers() { # NP MESSAGES ARGUMENT…
    local messages=$2
    [ -z "$san" ] || messages=$((messages / 8))
    launch_and_keep vader "$1" --mca pml_coop_rtr_min 1 --mca pml_coop_coop_min 0 --mca pml_coop_copy_chunk 16k --mca pml_coop_report 1 \
        "$bin/storm" --messages "$messages" "${@:3}" || return 1
    grep -aE '^  rtr ' "$log.job"
}

part_coop_storm() {
    local wish wishes=(hybrid coop)
    # shellcheck source=test/mpi/parts/storm.sh
    . "$here/parts/storm.sh"
    if [ "$long" = yes ]; then wishes+=(coop_fixed coop_coll coop_load); elif ! everywhere; then wishes=(hybrid); fi
    for wish in "${wishes[@]}"; do
        ! everywhere || storm "coop.storm_of_a_pair_by_$wish" vader 2 1200 --mca pml_coop_protocol "$wish" -- --seed 21
        storm "coop.storm_of_four_by_$wish" vader 4 800 --mca pml_coop_protocol "$wish" -- --seed 22
        storm "coop.storm_of_threads_by_$wish" vader 2 800 --mca pml_coop_protocol "$wish" -- --seed 23 --threads 3
    done
    # Offers for nearly all messages, with many chunks each.
    check site_36.storm_of_offers storm_of_offers 2 1500 --seed 24
    check site_36.storm_of_offers_among_threads storm_of_offers 3 800 --seed 25 --threads 3
    storm coop.storm_of_threads_that_are_refused vader 2 800 \
        --mca pml_coop_fault busy:5,alloc:7,get:4,put:4,get_busy:3,put_busy:3 --mca pml_coop_protocol coop -- --seed 26 --threads 3
    storm coop.storm_of_threads_without_get_and_put vader 2 600 --mca pml_coop_fault get:1,put:1 -- --seed 27 --threads 3
}
