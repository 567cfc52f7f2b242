# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What test/mpi, test/fabric and test/vm say of a test: 'PASS name (seconds)', 'FAIL name' with a part of its log, 'SKIP name: why',
# and 'RETRIED name: why' before one of these (lib/steps.sh counts them).
#
# Set by whoever reads this file: here results pattern. Set here: failed reported (counts of tests) log.
# shellcheck disable=SC2154 # those

# shellcheck source=test/lib/ends.sh
. "${BASH_SOURCE[0]%/*}/ends.sh"

failed=0 reported=0

report_pass() { # NAME [SECONDS]
    report_retries "$1"
    echo "PASS $1${2:+ ($2)}"
    reported=$((reported + 1))
}
# With a number: as many tests as that are left out.
report_skip() { # NAME WHY [TESTS]
    echo "SKIP $1: $2${3:+ (stands for $3)}"
    reported=$((reported + 1))
}
report_fail() { # NAME
    report_retries "$1"
    echo "FAIL $1"
    # Of a sanitizer's report the beginning, of other logs the end.
    {
        grep -aE -m 1 -A 20 'ERROR: AddressSanitizer|WARNING: ThreadSanitizer|runtime error:' "$log" || tail -n 25 "$log"
    } | cut -c 1-300 | sed 's/^/    /'
    failed=$((failed + 1)) reported=$((reported + 1))
    after_failure
}

# For whoever has something to clean up then.
after_failure() { :; }

# asked NAME: whether the pattern on the command line takes the test; names its log.
asked() {
    # shellcheck disable=SC2053 # a pattern it is
    [[ $1 == $pattern ]] || return 1
    log=$results/log/${1//\//_}.log
    export COOP_TEST_RETRIES=$results/log/retries.$$
}

# run_part PART PATTERN: runs part_PART; a part or a pattern without a test is a failure.
run_part() {
    local before=$reported pattern=$2
    "part_$1"
    [ "$reported" = "$before" ] || return 0
    log=$results/log/$1.log
    echo "no test of part $1 is called '$pattern'" >"$log"
    report_fail "$1.has_a_test"
}

# retried WHY: a test calls it when it tries again because something else than the tested code failed. Any process of the test may add
# a line to this file; the test's report begins with these lines.
retried() { echo "$*" >>"$COOP_TEST_RETRIES"; }
report_retries() { # NAME
    [ -s "${COOP_TEST_RETRIES:-}" ] || return 0
    sed "s|^|RETRIED $1: |" "$COOP_TEST_RETRIES"
    rm -f "$COOP_TEST_RETRIES"
}

# mpirun of 4.1.4 itself dies now and then of a message that a process sends it, in pmix_server_log_fn, with every pml. This says nothing
# about the tested code, so such a job is tried again.
mpirun_died() { grep -aq pmix_server_log_fn "$1"; }

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

# need_debian PACKAGE: installs it if it is not there (root only); SKIP otherwise.
need_debian() {
    local log=$results/log/apt.log
    # shellcheck source=config/apt.sh
    . "$here/../../config/apt.sh"
    need_packages "$log" "$1" >&2 || { report_skip "$1" "the package is not installed (see $log)"; return 1; }
}

# Processes that carry this run's mark in their environment, but for these scripts and what they are made of: "pid program".
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
