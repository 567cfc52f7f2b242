# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What all parts of test/fabric/run use: building, running on a subnet, cleaning up. What is said of a test: test/lib/report.sh.
#
# Set by run: here prefix long pattern. Set here: results bin.
# A part is a file parts/NAME.sh with a function part_NAME. It calls asked or check for every test it has.
# shellcheck disable=SC2154 # those of run

# shellcheck source=test/lib/report.sh
. "$here/../lib/report.sh"
# shellcheck source=test/lib/mpi_program.sh
. "$here/../lib/mpi_program.sh"

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

# on_subnet [OPTION…] -- COMMAND…: a subnet of its own with these options of 'coop-fabric run', gone at the end. Ends with the
# command's status, or with 124 after $limit seconds.
on_subnet() {
    subnets=$((subnets + 1))
    time_limit "${limit:-120}" "$COOP_FABRIC_TOOL" run --name "t$COOP_TEST_RUN-$subnets" "$@" </dev/null
}

# --- what is left over ----------------------------------------------------------------------------------------------

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
    end_left_processes
    left_files | while read -r file; do rm -rf "${file:?}"; done
}

clean_up() {
    clean_jobs
}
