# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# mpi_program NAME: builds a program of test/mpi where the tests of that folder have it, too, and prints its path. Whoever comes second,
# at the same time even, finds it done.
# shellcheck disable=SC2154 # here: the folder of whoever reads this file
mpi_program() {
    local source bin=$PWD/_results/mpi/bin
    source=$(cd "$here/../mpi" && pwd)
    mkdir -p "$bin"
    (flock 9 && make -s -j2 -f "$source/build.mk" SRC="$source" OUT="$bin" "$bin/$1" >&2) 9<"$bin" && echo "$bin/$1"
}
