# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Builds, outside of the guest, the programs of test/mpi and test/fabric that test btl/coopib in it.
# shellcheck disable=SC2154 # variables of run

# shellcheck source=test/fabric/lib/watch.sh
. "$here/../fabric/lib/watch.sh"
# shellcheck source=test/lib/mpi_program.sh
. "$here/../lib/mpi_program.sh"

build_programs() {
    local log=$results/log/build.log programs=$here/../fabric/programs program storm
    (
        storm=$(mpi_program storm) && cp "$storm" "$results/bin" &&
            for program in one_sided interrupts failover; do
                mpicc -O1 -Wall -Wextra -Werror -o "$results/bin/$program" "$programs/$program.c" || exit 1
            done &&
            build_watches "$programs" "$results/bin"
    ) >"$log" 2>&1 && return 0
    echo "FAIL vm.build_of_the_test_programs"
    tail -n 20 "$log" | sed 's/^/    /'
    return 1
}
