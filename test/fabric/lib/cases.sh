# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Running programs of CASEs, ground by ground. A part that does so has a function ground_options GROUND, which sets `options`
# of 'coop-fabric run' and `arguments` of the program.
# shellcheck disable=SC2154 # variables of run and launch.sh

# shellcheck source=test/lib/cases.sh
. "$here/../lib/cases.sh"

# run_cases GROUND TOPIC…: runs the cases of each topic, all of a topic on one subnet; behind a failure, on a new one.
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
