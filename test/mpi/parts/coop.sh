# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Copies inside a node: every wish, offered receives, refusals, a peer that dies, a kernel that denies copies. Programs: coop/.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

rows() { # NAME WISH ARGUMENT-OF-MPIRUN… -- ARGUMENT…
    local name=$1 wish=$2 for_mpirun=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do for_mpirun+=("$1") && shift; done
    [ $# = 0 ] || shift
    check "coop.$name" launch vader 2 "${for_mpirun[@]}" --mca pml_coop_protocol "$wish" "$bin/rows" "$wish" "$@"
}

part_coop() {
    local wish wishes=(hybrid coop rget rput send)
    if [ "$pml" != coop ]; then
        report_skip coop "only pml/coop has it"
        return
    fi
    # These differ from coop in who copies how much: the same code, for a sanitizer.
    ! everywhere || wishes+=(coop_fixed coop_coll coop_load)
    for wish in "${wishes[@]}"; do
        rows "rows_by_$wish" "$wish"
    done
    check coop.hints hints
    part_coop_offers
    part_coop_faults
    part_coop_storm
    part_coop_kill
    part_coop_denied
}

# The value that is not allowed is named, by each process once.
hints() {
    launch vader 2 "$bin/hints" >"$results/log/coop.hints.out" 2>&1 || { cat "$results/log/coop.hints.out"; return 1; }
    cat "$results/log/coop.hints.out"
    grep -q 'pml_coop_protocol' "$results/log/coop.hints.out" && grep -q 'bogus' "$results/log/coop.hints.out"
}

part_coop_offers() {
    # shellcheck source=test/mpi/parts/semantics.sh
    . "$here/parts/semantics.sh"
    run_cases vader 2 offers
    run_cases vader 2 bounce
}

part_coop_faults() {
    local wish fault faults=(get:1 put:1 "get_busy:2,put_busy:3,get:7,put:5,busy:5,alloc:7")
    [ "$long" = no ] || faults+=(get_busy:2 put_busy:2 alloc:3 busy:3 "get:3,put:4")
    for wish in coop hybrid; do
        for fault in "${faults[@]}"; do
            rows "rows_by_${wish}_under_$fault" "$wish" --mca pml_coop_fault "$fault" -- refused
        done
        rows "both_refused_by_$wish" "$wish" --mca pml_coop_fault get:1,put:1 -- both
    done
    check coop.bounce_under_faults launch vader 2 --mca pml_coop_fault busy:3,alloc:5,sendi:2 "$bin/bounce" refused
    check coop.load_after_a_copy_that_both_refused launch vader 2 --mca pml_coop_protocol coop_load --mca pml_coop_fault get@1,put@1 "$bin/load" coop
    check coop.load_after_a_get_that_was_refused launch vader 2 --mca pml_coop_protocol coop_load --mca pml_coop_fault get@1 "$bin/load" coop_load
}

# --- a peer that dies -----------------------------------------------------------------------------------------------

# killed_in_a_copy VICTIM HOW: a rank is killed in the middle of a long copy; the job ends by itself, nobody crashes, nothing is
# left in /dev/shm.
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
    case $status in 0 | 124) return 1 ;; esac
    # The victim's own signal 9 is what mpirun reports; no other.
    if grep -aE 'Signal: |Segmentation|core dumped|signal ([0-8]|1[0-9]) ' "$log.job"; then return 1; fi
    sleep 0.5
    # What the transport puts there is in our folder; other jobs of this machine have theirs.
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

# denied WHO: data is right, the notice comes once, with reason and remedy, and the report says so.
denied() {
    local who=$1 wish=$2 np=$3
    local what=("$bin/rows" "$wish" refused)
    [ "$np" = 2 ] || what=("$bin/storm" --messages 300 --seed 3)
    launch_and_keep vader "$np" --mca pml_coop_protocol "$wish" --mca pml_coop_report 1 "$bin/deny_copies" "$who" "${what[@]}" || return 1
    [ "$(grep -ac 'may not copy from each other' "$log.job")" = 1 ] || { echo "not one notice"; return 1; }
    grep -aE 'Reason: *process_vm_readv: Operation not permitted' "$log.job" && grep -a 'cap-add=SYS_PTRACE' "$log.job" &&
        grep -a 'the kernel denies' "$log.job" || return 1
    # The storm has messages to oneself, too.
    [ "$np" != 2 ] || ! grep -aE '^  (coop|rtr|rget|rput) ' "$log.job"
}

# Whoever asked for no copies is not told that there are none.
not_wanted() {
    launch_and_keep vader 2 --mca btl_vader_single_copy_mechanism none --mca pml_coop_report 1 "$bin/deny_copies" all "$bin/storm" --messages 200 \
        --seed 3 || return 1
    ! grep -a 'may not copy' "$log.job"
}

part_coop_denied() {
    local wish status=0
    "$bin/deny_copies" all true || status=$?
    if [ $status = 77 ]; then
        report_skip coop.denied "no seccomp here"
        return
    fi
    local wishes=(hybrid coop)
    [ "$long" = no ] || wishes+=(coop_fixed coop_coll coop_load rget rput)
    for wish in "${wishes[@]}"; do check "coop.denied_to_all_by_$wish" denied all "$wish" 2; done
    check coop.denied_to_all_of_four denied all hybrid 4
    check coop.denied_to_rank_0 denied 0 hybrid 2
    check coop.denied_to_rank_1 denied 1 hybrid 2
    check coop.denied_to_one_of_three denied 1 hybrid 3
    check coop.denied_and_not_wanted not_wanted
}

# --- storms ---------------------------------------------------------------------------------------------------------

part_coop_storm() {
    local wish wishes=(hybrid coop)
    # shellcheck source=test/mpi/parts/storm.sh
    . "$here/parts/storm.sh"
    ! everywhere || wishes+=(coop_fixed coop_coll coop_load)
    for wish in "${wishes[@]}"; do
        ! everywhere || storm "coop.storm_of_a_pair_by_$wish" vader 2 1200 --mca pml_coop_protocol "$wish" -- --seed 21
        storm "coop.storm_of_four_by_$wish" vader 4 800 --mca pml_coop_protocol "$wish" -- --seed 22
        storm "coop.storm_of_threads_by_$wish" vader 2 800 --mca pml_coop_protocol "$wish" -- --seed 23 --threads 3
    done
    # Offers for nearly everything, and many chunks each.
    storm coop.storm_of_offers vader 2 1500 --mca pml_coop_rtr_min 1 --mca pml_coop_coop_min 0 --mca pml_coop_copy_chunk 16k -- --seed 24
    storm coop.storm_of_offers_among_threads vader 3 800 --mca pml_coop_rtr_min 1 --mca pml_coop_coop_min 0 --mca pml_coop_copy_chunk 16k \
        -- --seed 25 --threads 3
    storm coop.storm_of_threads_that_are_refused vader 2 800 \
        --mca pml_coop_fault busy:5,alloc:7,get:4,put:4,get_busy:3,put_busy:3 --mca pml_coop_protocol coop -- --seed 26 --threads 3
    storm coop.storm_of_threads_that_both_refuse vader 2 600 --mca pml_coop_fault get:1,put:1 -- --seed 27 --threads 3
}
