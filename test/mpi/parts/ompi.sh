# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What Open MPI and its transports pass to pml/coop: errors, memory of accelerators, peers of another architecture, and a process that
# ends without MPI_Finalize. Programs: coop/.
# shellcheck disable=SC2154 # variables of run and lib/launch.sh

part_ompi() {
    if [ "$pml" != coop ]; then
        report_skip ompi "only pml/coop has it"
        return
    fi
    part_ompi_errors
    part_ompi_devices
    [ -n "$san" ] || check site_11.a_process_of_another_architecture_is_refused other_architecture
    part_ompi_exits
}

# says_so TEXT…: the log of the job has all of these texts.
says_so() {
    local text
    for text in "$@"; do
        grep -aqF "$text" "$log.job" || { echo "it does not say: $text"; return 1; }
    done
}

reported_error() { # fatal|fatal_without_a_text TEXT
    local status=0
    limit=60 launch_and_keep vader 2 "$bin/transport_errors" "$1" || status=$?
    cat "$log.job"
    is_status_of_an_error $status && says_so 'a transport cannot go on' 'Transport: ' "Error:         $2"
}

reported_and_survived() {
    limit=60 launch_and_keep vader 2 "$bin/transport_errors" goes_on || return 1
    says_so 'the job went on' 'error that is not fatal' 'Error:         a socket is closed'
}

part_ompi_errors() {
    [ -z "$san" ] || return 0
    check site_06.an_error_that_is_not_fatal_is_said_and_survived reported_and_survived
    check site_06.an_error_ends_the_job_with_its_text reported_error fatal 'the adapter is gone'
    check site_06.an_error_without_a_text_ends_the_job reported_error fatal_without_a_text 'no description'
}

part_ompi_devices() {
    [ -z "$san" ] || return 0
    local wish
    for wish in hybrid coop rget rput; do
        limit=100 check "site_06.memory_of_a_device_is_left_to_the_convertor.$wish" launch vader 2 --mca pml_coop_protocol "$wish" "$bin/device_memory"
    done
    [ ! -x "$fabric/bin/coop-fabric" ] ||
        limit=100 check site_06.memory_of_a_device_is_left_to_the_convertor.coopib launch subnet 2 --mca pml_coop_async interrupt "$bin/device_memory"
}

other_architecture() {
    local status=0
    limit=60 launch_and_keep vader 2 -x LD_PRELOAD="$bin/other_architecture.so" "$bin/storm" --messages 10 || status=$?
    cat "$log.job"
    is_status_of_an_error $status && says_so 'run on different architectures' 'Run on hosts of one architecture'
}

# leaves GROUND STATUS ARGUMENT…: both ranks call exit(STATUS). mpirun must report that they did not call MPI_Finalize, or the status,
# and no signal.
leaves() {
    local ground=$1 code=$2 status times=3
    shift 2
    everywhere || times=2
    for ((; times > 0; --times)); do
        status=0
        limit=60 launch_and_keep "$ground" 2 "$@" "$bin/leaver" "$code" || status=$?
        cat "$log.job"
        [ $status != 124 ] || { echo "it did not end"; return 1; }
        if grep -aE 'Signal: |exited on signal|terminate called|AddressSanitizer|runtime error' "$log.job"; then return 1; fi
        grep -aqiE "finalize|exit code" "$log.job" || { echo "it did not leave as it should"; return 1; }
    done
}

part_ompi_exits() {
    local async
    for async in off interrupt; do
        check "site_32.a_process_may_exit_without_finalize.vader.$async" leaves vader 3 --mca pml_coop_async "$async"
        [ ! -x "$fabric/bin/coop-fabric" ] ||
            check "site_32.a_process_may_exit_without_finalize.coopib.$async" leaves subnet 3 --mca pml_coop_async "$async"
    done
}
