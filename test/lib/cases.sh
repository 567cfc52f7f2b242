# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Runs a program with many CASEs, such as those of test/mpi/semantics and test/fabric/semantics.
# shellcheck disable=SC2154 # of report.sh

# run_topic TEST PROGRAM START…: runs the cases of the program that the pattern selects, named TEST.case. START… is its command line, to
# which '--from CASE' or '--only CASE' is appended. A case that ends the program (a failed check, a crash, a hang) is a failure; the
# program is then started again with the case after it.
run_topic() {
    local test=$1 program=$2 start=("${@:3}") all chosen=() name from status which=--from attempts=0
    local -A seen=()
    list_cases || return 0
    for name in "${all[@]}"; do
        ! asked "$test.$name" || chosen+=("$name")
    done
    [ ${#chosen[@]} -gt 0 ] || return 0
    [ ${#chosen[@]} -gt 1 ] || which=--only
    from=${chosen[0]}
    while [ -n "$from" ]; do
        log=$results/log/$test.log
        status=0
        "${start[@]}" $which "$from" >"$log" 2>&1 || status=$?
        report_cases
    done
    report_unseen_cases
}

# Sets `all` to the program's cases. It is a failure if the program cannot list them, or has none.
list_cases() {
    local listed status=0
    log=$results/log/$test.list.log
    listed=$("$program" --list 2>"$log") || status=$?
    if [ $status = 0 ] && [ -n "$listed" ]; then
        mapfile -t all <<<"$listed"
        return 0
    fi
    echo "$program --list: exit status $status, and said: '$listed'" >>"$log"
    report_fail "$test.lists_its_cases"
    return 1
}

# A program may end before its last case. Cases that it did not report are a failure.
report_unseen_cases() {
    local name unseen=()
    for name in "${chosen[@]}"; do
        [ -n "${seen[$name]:-}" ] || unseen+=("$name")
    done
    [ ${#unseen[@]} -gt 0 ] || return 0
    log=$results/log/$test.unseen.log
    echo "neither passed nor failed nor skipped: ${unseen[*]}" >"$log"
    report_fail "$test.tells_of_each_case"
}

# Reads the log of one start. Sets `from` to the case to continue with, if any.
report_cases() {
    local word name rest running='' topic_log=$log i
    from=''
    while read -r word name rest; do
        running=''
        [ "$word" = RUN ] || seen[$name]=yes
        case $word in
        RUN) running=$name ;;
        OK) ! selected "$test.$name" || report_pass "$test.$name" "$rest" ;;
        SKIP) ! selected "$test.$name" || report_skip "$test.$name" "$rest" ;;
        esac
    done < <(grep -aE '^(RUN|OK|SKIP) ' "$topic_log")
    log=$topic_log
    [ "$status" != 0 ] || return 0
    echo "(exit status $status)" >>"$log"
    if [ -z "$running" ]; then
        # No case was running: MPI_Init, the subnet, MPI_Finalize or a sanitizer's final report failed.
        report_fail "$test.start_and_end"
        return
    fi
    if mpirun_died "$topic_log" && [ $((++attempts)) -lt 4 ]; then
        retried "mpirun died in $running, attempt $attempts"
        from=$running
        return
    fi
    log=$results/log/$test.$running.log
    seen[$running]=yes
    cp "$topic_log" "$log"
    # After a failure the restarted program also runs cases that were not selected: their failures are not reported.
    ! selected "$test.$running" || report_fail "$test.$running"
    for ((i = 0; i + 1 < ${#all[@]}; ++i)); do
        [ "${all[i]}" != "$running" ] || [ ${#chosen[@]} = 1 ] || from=${all[i + 1]}
    done
}
