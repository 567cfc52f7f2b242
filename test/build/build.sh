#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh [--components | --no-units] BUILD PREFIX CONFIGURE-ARGS...: configures (the first time), builds, including the tests, and
# installs. --components: only the parts that ranks load. --no-units: everything but the unit tests.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
what=all
case $1 in --*) what=${1#--} && shift ;; esac
build=$1
prefix=$2
shift 2

mkdir -p "$build"
cd "$build"
[ -f Makefile ] || "$top/configure" --prefix="$prefix" "$@"
# Compilers are faster with huge pages.
gcc -shared -fPIC -O1 -o huge_pages.so "$top/test/build/huge_pages.c"
make_quickly() { GLIBC_TUNABLES=glibc.malloc.hugetlb=1 LD_PRELOAD=$PWD/huge_pages.so make -j"$(nproc)" "$@"; }
if [ "$what" = components ]; then
    make_quickly components
    make install-components
    exit
fi
programs=()
[ "$what" = all ] || programs=(check_PROGRAMS=test/dlopen/load_components)
make_quickly
make_quickly check TESTS= "${programs[@]}"
make install
