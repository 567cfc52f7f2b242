# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Used by all parts of test/mpi/run: building, launching on a ground, cleaning up. Reports: test/lib/report.sh.
#
# Set by run: here prefix pml san long pattern. Set here: results bin scratch shm common.
# shellcheck disable=SC2154 # the variables of run

# shellcheck source=test/lib/report.sh
. "$here/../lib/report.sh"
# shellcheck source=test/lib/cases.sh
. "$here/../lib/cases.sh"

jobs=2 # for make
subnets=0

# Every process of one run of the tests has this in its environment, so that remaining processes can be found and ended,
# and no others.
export COOP_TEST_RUN=$$-$RANDOM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

prepare() {
    results=$PWD/_results/mpi
    bin=$results/bin${san:+-$san}
    # Session folders and shared memory of the jobs. The names are short (they hold sockets); removed at the end.
    scratch=$(mktemp -d /tmp/ct.XXXXXX) || return 1
    shm=/dev/shm/ct.$COOP_TEST_RUN
    mkdir -p "$results/log" "$bin" "$shm" || return 1
    unset OMPI_MCA_pml OMPI_MCA_mca_base_component_path
    export COOP_TEST_PML=$pml
    if [ "$pml" = coop ]; then
        [ -x "$prefix/bin/coop-env" ] || { echo "run: $prefix has no bin/coop-env: not an installation of ompi-coop" >&2; return 1; }
        eval "$("$prefix/bin/coop-env")"
    fi
    common=(--mca pml "$pml" --mca orte_tmpdir_base "$scratch" --mca btl_vader_backing_directory "$shm"
        --mca btl_tcp_if_include lo --bind-to none -x COOP_TEST_RUN -x COOP_TEST_PML)
    sanitizer_setup
    log=$results/log/build.log
    # Two runs may go on at the same time: one builds, the other waits and uses the result.
    if ! (flock 9 && make -s -j"$jobs" -f "$here/build.mk" SRC="$here" OUT="$bin" SAN="$san" >"$log" 2>&1) 9<"$bin"; then
        report_fail build_of_the_test_programs
        return 1
    fi
}

# --- grounds --------------------------------------------------------------------------------------------------------

# launch GROUND NP ARGUMENT…: runs mpirun on that ground, with arguments of mpirun and then of the program. The status is the job's, or
# 124 after $limit seconds. Dynamic processes need tcp between the jobs and free slots on the hosts.
launch() {
    local ground=$1 np=$2 where on=()
    shift 2
    case $ground in
    vader) where=(--oversubscribe --mca btl "vader,self") ;;
    tcp) where=(--oversubscribe --mca btl "tcp,self") ;;
    both) where=(--oversubscribe --mca btl "vader,tcp,self") ;;
    any) where=(--oversubscribe) ;;
    full)
        # No room for shared memory of the transports.
        where=(--oversubscribe --mca btl "vader,tcp,self")
        on=("$here/lib/full_shm" "$shm")
        ;;
    cluster)
        where=(--host "v0:4,v1:4,v2:4" --mca plm_rsh_agent "$here/vcluster/agent" --map-by node
            --mca btl "vader,tcp,self" --mca mpi_yield_when_idle 1)
        ;;
    subnet)
        # Without Open MPI's memory hooks: they take a lock when a thread ends, after ThreadSanitizer's last record of the thread.
        where=(--oversubscribe --mca btl "coopib,self" --mca mpi_yield_when_idle 1 --mca memory ^patcher)
        on=("$fabric/bin/coop-fabric" run --name "t$COOP_TEST_RUN-$((++subnets))" --hosts 2 --hcas 2 --)
        ;;
    *) echo "launch: no ground '$ground'" >&2; return 2 ;;
    esac
    time_limit "${limit:-300}" "${on[@]}" mpirun -np "$np" "${common[@]}" "${where[@]}" "$@" </dev/null
}

# The same, with the job's output in $log.job, for searching, and in the log. A job whose mpirun died is tried again, and that
# output is kept out of the log: it would excuse a failure of the next attempt.
launch_and_keep() {
    local status attempt
    for attempt in 1 2 3 4; do
        status=0
        launch "$@" >"$log.job" 2>&1 || status=$?
        mpirun_died "$log.job" || break
        retried "mpirun died, attempt $attempt"
        clean_jobs
    done
    cat "$log.job"
    return $status
}

# slowly WHAT: sets `slow` to the words before a program that delay it where other threads may interfere (slow.c).
slowly() {
    slow=()
    # AddressSanitizer must be the first library.
    # shellcheck disable=SC2016,SC2034 # expanded where a rank starts; for parts/
    [ "$san" = asan ] || slow=(sh -c 'export SLOW="$1" LD_PRELOAD="$2${LD_PRELOAD:+:$LD_PRELOAD}"; shift 2; exec "$@"' sh "$1" "$bin/slow.so")
}

cluster_possible() {
    unshare --uts true 2>/dev/null
}

# check_on_cluster NAME COMMAND…: a test (lib/report.sh) that is skipped without a virtual cluster.
check_on_cluster() {
    if cluster_possible; then
        check "$@"
    elif asked "$1"; then
        report_skip "$1" "$no_cluster"
    fi
}
no_cluster="no UTS namespaces here (not root?)"

# --- cleaning up ----------------------------------------------------------------------------------------------------

clean_jobs() {
    end_left_processes
    rm -rf "${shm:?}"/* "${scratch:?}"/* /dev/shm/*"t$COOP_TEST_RUN-"*
}

after_failure() { clean_jobs; }

clean_up() {
    clean_jobs
    rm -rf "$shm" "$scratch"
}
