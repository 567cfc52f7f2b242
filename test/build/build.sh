#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh [--components] BUILD PREFIX CONFIGURE-ARGS...: configures (the first time), builds, including the tests, and installs.
# --components: only the parts that ranks load.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
components=no
[ "$1" != --components ] || { components=yes && shift; }
build=$1
prefix=$2
shift 2

mkdir -p "$build"
cd "$build"
[ -f Makefile ] || "$top/configure" --prefix="$prefix" "$@"
# Compilers are faster with huge pages.
gcc -shared -fPIC -O1 -o huge_pages.so "$top/test/build/huge_pages.c"
make_quickly() { GLIBC_TUNABLES=glibc.malloc.hugetlb=1 LD_PRELOAD=$PWD/huge_pages.so make -j"$(nproc)" "$@"; }
if [ $components = yes ]; then
    make_quickly components
    make install-components
    exit
fi
make_quickly
make_quickly check TESTS=
make install
