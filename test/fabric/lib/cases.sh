# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Running programs of CASEs, ground by ground. A part that does so has a function ground_options GROUND, which sets `options`
# of 'coop-fabric run' and `arguments` of the program.
# shellcheck disable=SC2154 # variables of run and launch.sh

# run_cases GROUND TOPIC…: runs the cases of each topic, all of a topic on one subnet. A case that ends the program (a failed
# check, a crash, a hang) is a failure, and the program is started again behind that case, on a new subnet.
run_cases() {
    local ground=$1 topic options arguments
    ground_options "$ground"
    shift
    for topic in "$@"; do run_topic; done
}

run_topic() {
    local test=$ground.$topic all chosen=() name from status
    mapfile -t all < <("$bin/$topic" --list)
    for name in "${all[@]}"; do
        ! asked "$test.$name" || chosen+=("$name")
    done
    [ ${#chosen[@]} -gt 0 ] || return 0
    from=${chosen[0]}
    while [ -n "$from" ]; do
        log=$results/log/$test.log
        status=0
        start_from "$from" >"$log" 2>&1 || status=$?
        report_cases
    done
}

start_from() {
    local which=--from
    [ ${#chosen[@]} -gt 1 ] || which=--only
    COOP_TEST_GROUND=${ground%_far} COOP_FABRIC_HOST=h0 \
        on_subnet "${options[@]}" -- "$bin/$topic" $which "$1" "${arguments[@]}"
}

# Reads the log of one start; sets `from` to the case to go on with, if any.
report_cases() {
    local word name rest running='' topic_log=$log i
    from=''
    while read -r word name rest; do
        running=''
        case $word in
        RUN) running=$name ;;
        OK) ! asked "$test.$name" || report_pass "$test.$name" "$rest" ;;
        SKIP) ! asked "$test.$name" || report_skip "$test.$name" "$rest" ;;
        esac
    done < <(grep -aE '^(RUN|OK|SKIP) ' "$topic_log")
    log=$topic_log
    [ "$status" != 0 ] || return 0
    echo "(exit status $status)" >>"$log"
    if [ -z "$running" ]; then
        # No case was running, and yet: the subnet did not come up, or not go down.
        report_fail "$test.start_and_end"
        return
    fi
    log=$results/log/$test.$running.log
    cp "$topic_log" "$log"
    # Started behind a failure, the program runs cases that nobody asked for: their failures are not reported.
    ! asked "$test.$running" || report_fail "$test.$running"
    for ((i = 0; i + 1 < ${#all[@]}; ++i)); do
        [ "${all[i]}" != "$running" ] || [ ${#chosen[@]} = 1 ] || from=${all[i + 1]}
    done
}
