# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# mpi_program NAME: builds a program of test/mpi in the folder that the tests there use, too, and prints its path. A lock makes this
# safe for concurrent callers.
# shellcheck disable=SC2154 # here: the folder of the script that sources this file
mpi_program() {
    local source bin=$PWD/_results/mpi/bin
    source=$(cd "$here/../mpi" && pwd)
    mkdir -p "$bin"
    (flock 9 && make -s -j2 -f "$source/build.mk" SRC="$source" OUT="$bin" "$bin/$1" >&2) 9<"$bin" && echo "$bin/$1"
}
