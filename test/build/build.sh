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
if [ $components = yes ]; then
    make -j"$(nproc)" components
    make install-components
    exit
fi
make -j"$(nproc)"
make -j"$(nproc)" check TESTS=
make install
