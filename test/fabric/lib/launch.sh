# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What all parts of test/fabric/run use: building, running on a subnet, reporting, cleaning up.
#
# Set by run: here prefix long pattern. Set here: results bin failed log.
# A part is a file parts/NAME.sh with a function part_NAME. It calls asked or check for every test it has.
# shellcheck disable=SC2154 # those of run

failed=0
jobs=2 # make's
subnets=0

# Everything of one run of the tests carries this in its environment, and each subnet in its name: what is left over can be
# found, and nothing else is touched.
export COOP_TEST_RUN=$$-$RANDOM

prepare() {
    results=$PWD/_results/fabric
    bin=$results/bin
    mkdir -p "$results/log" "$bin" || return 1
    unset COOP_FABRIC COOP_FABRIC_HOST COOP_TEST_GROUND
    export COOP_FABRIC_TOOL=$prefix/bin/coop-fabric
    [ -x "$COOP_FABRIC_TOOL" ] || { echo "run: $prefix has no bin/coop-fabric: not an installation with the fabric" >&2; return 1; }
    need_debian libibverbs-dev || return 1
    log=$results/log/build.log
    # Two runs may go on side by side: one builds, the other finds it done.
    if ! (flock 9 && make -s -j"$jobs" -f "$here/build.mk" SRC="$here" OUT="$bin" >"$log" 2>&1) 9<"$bin"; then
        report_fail build_of_the_test_programs
        return 1
    fi
}

# need_debian PACKAGE: installs it if it is not there (root only); SKIP otherwise.
need_debian() {
    local log=$results/log/apt.log
    # shellcheck source=config/apt.sh
    . "$here/../../config/apt.sh"
    need_packages "$log" "$1" >&2 || { report_skip "$1" "the package is not installed (see $log)"; return 1; }
}

# on_subnet [OPTION…] -- COMMAND…: a subnet of its own with these options of 'coop-fabric run', gone at the end. Ends with the
# command's status, or with 124 after $limit seconds.
on_subnet() {
    subnets=$((subnets + 1))
    timeout -k 10 "${limit:-120}" "$COOP_FABRIC_TOOL" run --name "t$COOP_TEST_RUN-$subnets" "$@" </dev/null
}

# --- reporting ------------------------------------------------------------------------------------------------------

report_pass() { echo "PASS $1${2:+ ($2)}"; }
report_skip() { echo "SKIP $1: $2"; }
report_fail() { # NAME
    echo "FAIL $1"
    tail -n 25 "$log" | cut -c 1-300 | sed 's/^/    /'
    failed=$((failed + 1))
}

# asked NAME: whether the pattern on the command line takes the test; names its log.
asked() {
    # shellcheck disable=SC2053 # a pattern it is
    [[ $1 == $pattern ]] || return 1
    log=$results/log/${1//\//_}.log
}

# check NAME COMMAND…: one test; it passes if the command does. Output goes to the log. Of a message that a process sends it,
# mpirun of 4.1.4 itself dies now and then, in pmix_server_log_fn, with every pml: that says nothing, and is tried again.
check() {
    local name=$1 start=$SECONDS status attempt
    shift
    asked "$name" || return 0
    for attempt in 1 2 3 4; do
        status=0
        "$@" >"$log" 2>&1 || status=$?
        if [ $status = 0 ] || ! grep -aq pmix_server_log_fn "$log"; then break; fi
        echo "note: $name: mpirun died, attempt $attempt"
    done
    if [ $status = 0 ]; then
        report_pass "$name" $((SECONDS - start))
    else
        echo "(exit status $status)" >>"$log"
        report_fail "$name"
    fi
}

# --- what is left over ----------------------------------------------------------------------------------------------

# Processes with our mark, but for these scripts and what they are made of: "pid program".
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

left_files() {
    find /dev/shm /tmp -maxdepth 1 -name "*t$COOP_TEST_RUN-*" 2>/dev/null
}

check_nothing_left() { # PART
    local name left
    for name in processes files; do
        log=$results/log/$1.leaves_no_$name.log
        left=$("left_$name")
        if [ -z "$left" ]; then
            report_pass "$1.leaves_no_$name"
        else
            echo "$left" >"$log"
            report_fail "$1.leaves_no_$name"
        fi
    done
    clean_jobs
}

clean_jobs() {
    local pid
    while read -r pid _; do
        kill -9 "$pid" 2>/dev/null
    done < <(left_processes)
    left_files | while read -r file; do rm -rf "${file:?}"; done
}

clean_up() {
    clean_jobs
}
