# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What InfiniBand promises: one program per topic, many cases each; test names are ground.topic.case. A ground is a kind of
# subnet.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

# ground_options GROUND: sets `options` of 'coop-fabric run' and `arguments` of the program.
ground_options() {
    options=(--hosts 2 --hcas 2) arguments=()
    case $1 in
    ib) ;;
    far) arguments=(--far) ;;
    roce) options+=(--link-layer roce) ;;
    roce_far) options+=(--link-layer roce) arguments=(--far) ;;
    nosrq | noapm | small | old) options+=(--profile "$1") ;;
    lmc) options+=(--lmc 1) ;;
    lmc_far) options+=(--lmc 1) arguments=(--far) ;;
    lmc3) options+=(--lmc 3) ;;
    ports) options+=(--ports 2) ;;
    ports_far) options+=(--ports 2) arguments=(--far) ;;
    one_hca) options=(--hosts 2 --hcas 1) ;;
    slow) options+=(--rate 500MB/s --latency 5us) ;;
    mtu256) options+=(--mtu 256) ;;
    strict) options+=(--strict-mr) ;;
    strictarm) options+=(--strict-arm) ;;
    *) echo "semantics: no ground '$1'" >&2; exit 2 ;;
    esac
}

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

part_semantics() {
    local connected="rc_transfers rc_errors retries atomics drain faults"
    # shellcheck disable=SC2086 # lists of topics
    {
        run_cases ib devices memory completion qp_states $connected ud uc srq events extended processes
        run_cases far $connected ud uc memory
        run_cases roce devices memory $connected ud srq events apm extended
        run_cases nosrq devices srq
        run_cases noapm apm
        run_cases small devices qp_states rc_transfers rc_errors atomics srq extended
        run_cases old extended
        run_cases lmc devices lmc apm ud
        run_cases lmc_far lmc apm
        run_cases ports devices apm
        run_cases ports_far apm
        run_cases strict memory
        run_cases strictarm completion
        [ "$long" = yes ] || return 0
        run_cases roce_far $connected ud
        run_cases lmc3 lmc apm
        run_cases one_hca rc_transfers rc_errors atomics drain srq completion
        run_cases slow $connected ud uc srq completion
        run_cases mtu256 $connected ud uc
        run_cases nosrq $connected
    }
}
