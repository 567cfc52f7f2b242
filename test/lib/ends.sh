# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# How a command ends: a time limit, and commands that have to fail. Status 124 means that the time limit ended it, which no test may
# take for an error that the command found by itself.

# time_limit SECONDS COMMAND…: ends the command after that time, with status 124.
time_limit() {
    local seconds=$1 start=$SECONDS status=0
    shift
    timeout -k 10 "$seconds" "$@" || status=$?
    # A command that ignores SIGTERM is killed. Its status is then 137, as that of a job in which a rank was killed.
    if [ $status = 137 ] && [ $((SECONDS - start)) -ge "$seconds" ]; then status=124; fi
    return $status
}

# ends_with_an_error COMMAND…: it has to end by itself, with a status that says that something was wrong. Success, a time limit and
# a signal are failures.
ends_with_an_error() {
    local status=0
    "$@" || status=$?
    is_status_of_an_error $status
}

# is_status_of_an_error STATUS [SIGNAL]: the same for a command that has already ended; this signal is permitted, to a rank for example.
is_status_of_an_error() {
    case $1 in
    0) echo "it should not have succeeded"; return 1 ;;
    124) echo "it did not end within its time limit"; return 1 ;;
    esac
    # Signals are 1 to 64; mpirun passes on what ranks exit with, 255 for one.
    [ "$1" -le 128 ] || [ "$1" -gt 192 ] || [ $(($1 - 128)) = "${2:-none}" ] || { echo "signal $(($1 - 128)) ended it"; return 1; }
}
