# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# How a command ends: time limits, and commands that must fail. Status 124 means that the time limit ended the command; a test must
# not accept that as an error that the command reported.

# ./check --within sets COOP_TEST_UNTIL, in seconds since 1970. From then on no test begins.
time_is_up() { [ -n "${COOP_TEST_UNTIL:-}" ] && [ "$EPOCHSECONDS" -ge "$COOP_TEST_UNTIL" ]; }
# shellcheck disable=SC2034 # for lib/report.sh and lib/steps.sh
no_time="no time was left (check --within)"

# When a job ends with an error, mpirun sleeps for a second between SIGTERM, which ends its processes, and SIGKILL.
export OMPI_MCA_odls_base_sigkill_timeout=0

# time_limit SECONDS COMMAND…: ends the command after that time, with status 124.
time_limit() {
    local seconds=$1 start=$SECONDS status=0
    shift
    timeout -k 10 "$seconds" "$@" || status=$?
    # A command that ignores SIGTERM is killed. Its status is then 137, as that of a job in which a rank was killed.
    if [ $status = 137 ] && [ $((SECONDS - start)) -ge "$seconds" ]; then status=124; fi
    return $status
}

# ends_with_an_error COMMAND…: the command must end by itself, with an error status. Success, the time limit and a signal are
# failures.
ends_with_an_error() {
    local status=0
    "$@" || status=$?
    is_status_of_an_error $status
}

# is_status_of_an_error STATUS [SIGNAL]: the same for a command that has already ended. The command may have ended by SIGNAL, for
# example when the test has killed a rank with it.
is_status_of_an_error() {
    case $1 in
    0) echo "it should not have succeeded"; return 1 ;;
    124) echo "it did not end within its time limit"; return 1 ;;
    esac
    # 129 to 192 stand for the signals 1 to 64. Greater ones are exit statuses of ranks that mpirun passes on, for example 255.
    [ "$1" -le 128 ] || [ "$1" -gt 192 ] || [ $(($1 - 128)) = "${2:-none}" ] || { echo "signal $(($1 - 128)) ended it"; return 1; }
}
