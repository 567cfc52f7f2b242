# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What test/mpi, test/fabric and test/vm say of a test: 'PASS name (seconds)', 'FAIL name' with a part of its log, 'SKIP name: why'.
#
# Set by whoever reads this file: here results pattern. Set here: failed (a count) log.
# shellcheck disable=SC2154 # those

failed=0

report_pass() { echo "PASS $1${2:+ ($2)}"; }
report_skip() { echo "SKIP $1: $2"; }
report_fail() { # NAME
    echo "FAIL $1"
    # Of a sanitizer's report the beginning, of other logs the end.
    {
        grep -aE -m 1 -A 20 'ERROR: AddressSanitizer|WARNING: ThreadSanitizer|runtime error:' "$log" || tail -n 25 "$log"
    } | cut -c 1-300 | sed 's/^/    /'
    failed=$((failed + 1))
    after_failure
}

# For whoever has something to clean up then.
after_failure() { :; }

# asked NAME: whether the pattern on the command line takes the test; names its log.
asked() {
    # shellcheck disable=SC2053 # a pattern it is
    [[ $1 == $pattern ]] || return 1
    log=$results/log/${1//\//_}.log
}

# Of a message that a process sends it, mpirun of 4.1.4 itself dies now and then, in pmix_server_log_fn, with every pml: that says
# nothing, and such a job is tried again.
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
        echo "note: $name: mpirun died, attempt $attempt"
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
