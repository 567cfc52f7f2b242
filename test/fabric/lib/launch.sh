# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Functions for all parts of test/fabric/run: building, running on a subnet, cleaning up. test/lib/report.sh reports results.
#
# run sets: here prefix long pattern. This file sets: results bin.
# A part is a file parts/NAME.sh with a function part_NAME, which calls asked or check for each of its tests.
# shellcheck disable=SC2154 # variables of run

# shellcheck source=test/lib/report.sh
. "$here/../lib/report.sh"
# shellcheck source=test/lib/mpi_program.sh
. "$here/../lib/mpi_program.sh"

jobs=2 # of make
subnets=0

# In the environment of every process of this run, and in the name of every subnet, so that leftovers can be found, and
# nothing else is touched.
export COOP_TEST_RUN=$$-$RANDOM

prepare() {
    results=$PWD/_results/fabric
    bin=$results/bin
    # Session folders of the jobs. In /tmp, two runs at once would share a folder, which the end of one job removes while the
    # other's job starts. The name is short (it holds sockets).
    sessions=$(mktemp -d /tmp/cf.XXXXXX) || return 1
    export OMPI_MCA_orte_tmpdir_base=$sessions
    mkdir -p "$results/log" "$bin" || return 1
    unset COOP_FABRIC COOP_FABRIC_HOST COOP_TEST_GROUND
    export COOP_FABRIC_TOOL=$prefix/bin/coop-fabric
    [ -x "$COOP_FABRIC_TOOL" ] || { echo "run: $prefix has no bin/coop-fabric: not an installation with the fabric" >&2; return 1; }
    need_debian libibverbs-dev || return 1
    log=$results/log/build.log
    # Two runs may go on at the same time: the second waits until the first has built.
    if ! (flock 9 && make -s -j"$jobs" -f "$here/build.mk" SRC="$here" OUT="$bin" >"$log" 2>&1) 9<"$bin"; then
        report_fail build_of_the_test_programs
        return 1
    fi
}

# on_subnet [OPTION…] -- COMMAND…: runs a command on a new subnet with these options of 'coop-fabric run' and removes the subnet.
# Returns the command's status, or 124 after $limit seconds.
on_subnet() {
    subnets=$((subnets + 1))
    time_limit "${limit:-120}" "$COOP_FABRIC_TOOL" run --name "t$COOP_TEST_RUN-$subnets" "$@" </dev/null
}

# --- leftovers --------------------------------------------------------------------------------------------------------

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
    rm -rf "${sessions:?}"
}
