# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Reports of test/mpi, test/fabric and test/vm: 'PASS name (seconds)', 'FAIL name' with a part of its log, 'SKIP name: why', and
# 'RETRIED name: why' before one of these (lib/steps.sh counts them).
#
# Set by the script that sources this file: here results pattern. Set here: failed reported (counts of tests) log.
# shellcheck disable=SC2154 # the variables above

# shellcheck source=test/lib/ends.sh
. "${BASH_SOURCE[0]%/*}/ends.sh"

failed=0 reported=0

report_pass() { # NAME [SECONDS]
    report_retries "$1"
    echo "PASS $1${2:+ ($2)}"
    reported=$((reported + 1))
}
# TESTS: the number of tests that this skip stands for.
report_skip() { # NAME WHY [TESTS]
    echo "SKIP $1: $2${3:+ (stands for $3)}"
    reported=$((reported + 1))
}
report_fail() { # NAME
    report_retries "$1"
    echo "FAIL $1"
    # For a sanitizer report show its start, for other logs the end.
    {
        grep -aE -m 1 -A 20 'ERROR: AddressSanitizer|WARNING: ThreadSanitizer|runtime error:' "$log" || tail -n 45 "$log"
    } | cut -c 1-300 | sed 's/^/    /'
    failed=$((failed + 1)) reported=$((reported + 1))
    after_failure
}

# Override this to clean up after a failure.
after_failure() { :; }

# in_turn NAME: a part that sets by_turns has tests that differ only in the PML, .ob1 or .coop in their names. Unless --long or a pattern
# is given, one of the two runs: the length of the rest of the name decides.
in_turn() {
    [ "${by_turns:-no}" = yes ] && is_brief || return 0
    local name=.$1.
    case $name in
    *.ob1.*) [ $((${#name} % 2)) = 0 ] ;;
    *.coop.*) [ $(((${#name} - 1) % 2)) = 1 ] ;;
    esac
}

# Tests that repeat on other grounds what others show run with --long, or if a pattern is given.
is_brief() { [ "${long:-no}" = no ] && [ "$pattern" = '*' ]; }
rarely() { is_brief || "$@"; }

# selected NAME: true if the pattern on the command line selects the test. Sets its log. A part whose tests have the names of another
# one's sets log_prefix, because the two may run at the same time.
selected() {
    # shellcheck disable=SC2053 # it is a pattern
    [[ $1 == $pattern ]] && in_turn "$1" || return 1
    log=$results/log/${log_prefix:-}${1//\//_}.log
    export COOP_TEST_RETRIES=$results/log/retries.$$
}

# asked NAME: the same before a test begins. It is false, and the test is reported as skipped, if no test may begin any more.
asked() {
    selected "$1" || return 1
    ! time_is_up || { report_skip "$1" "$no_time"; return 1; }
}

# run_part PART PATTERN: runs part_PART, if there is time. It is a failure if no test of the part matches.
run_part() {
    local before=$reported pattern=$2
    if time_is_up; then
        report_skip "$1" "$no_time"
        return
    fi
    "part_$1"
    [ "$reported" = "$before" ] || return 0
    log=$results/log/$1.log
    echo "no test of part $1 is called '$pattern'" >"$log"
    report_fail "$1.has_a_test"
}

# retried WHY: a test calls this when it tries again because something other than the tested code failed. Any process of the test may
# call it; the lines precede the test's report.
retried() { echo "$*" >>"$COOP_TEST_RETRIES"; }
report_retries() { # NAME
    [ -s "${COOP_TEST_RETRIES:-}" ] || return 0
    sed "s|^|RETRIED $1: |" "$COOP_TEST_RETRIES"
    rm -f "$COOP_TEST_RETRIES"
}

# mpirun of Open MPI 4.1.4 sometimes crashes in pmix_server_log_fn when a process sends it a message, and sometimes does not answer a
# process that starts (mpi/lib/mpi_test.cc), with every pml. This is not a failure of the tested code, so such a job is tried again.
mpirun_died() { grep -aqE 'pmix_server_log_fn|mpirun does not answer' "$1"; }

# check NAME COMMAND…: one test; it passes if the command does. Output goes to the log.
check() {
    local name=$1 start=$SECONDS status attempt
    shift
    asked "$name" || return 0
    for attempt in 1 2 3 4; do
        status=0
        "$@" >"$log" 2>&1 || status=$?
        if [ $status = 0 ] || ! mpirun_died "$log"; then break; fi
        retried "mpirun died, attempt $attempt"
    done
    if [ $status = 0 ]; then
        report_pass "$name" $((SECONDS - start))
    else
        echo "(exit status $status)" >>"$log"
        report_fail "$name"
    fi
}

# need_debian PACKAGE: installs the package if it is missing (as root only). SKIP otherwise.
need_debian() {
    local log=$results/log/apt.log
    # shellcheck source=config/apt.sh
    . "$here/../../config/apt.sh"
    need_packages "$log" "$1" >&2 || { report_skip "$1" "the package is not installed (see $log)"; return 1; }
}

# Processes that carry this run's mark in their environment, except these scripts and their tools: "pid program".
left_processes() {
    local pid program
    while read -r pid; do
        program=$(readlink "/proc/$pid/exe") || continue
        case $program in
        */bash | */dash | */timeout | */tail | */cut | */sed | */grep | */readlink) ;;
        *) echo "$pid $program" ;;
        esac
    done < <(grep -lsaz "^COOP_TEST_RUN=$COOP_TEST_RUN\$" /proc/[0-9]*/environ | cut -d / -f 3)
}
end_left_processes() {
    local pid
    while read -r pid _; do kill -9 "$pid" 2>/dev/null; done < <(left_processes)
}
