# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Runs programs of CASEs on one ground after the other. A part that uses this defines ground_options GROUND, which sets the
# `options` of 'coop-fabric run' and the `arguments` of the program.
# shellcheck disable=SC2154 # variables of run and launch.sh

# shellcheck source=test/lib/cases.sh
. "$here/../lib/cases.sh"

# run_cases GROUND TOPIC…: runs the cases of each topic, all cases of a topic on one subnet; after a failure, on a new one.
run_cases() {
    local ground=$1 topic options arguments
    ground_options "$ground"
    shift
    for topic in "$@"; do run_topic "$ground.$topic" "$bin/$topic" run_on_ground; done
}

run_on_ground() {
    COOP_TEST_GROUND=${ground%_far} COOP_FABRIC_HOST=h0 \
        on_subnet "${options[@]}" -- "$bin/$topic" "$@" "${arguments[@]}"
}
