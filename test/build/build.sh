#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# build.sh BUILD PREFIX CONFIGURE-ARGS...: configures (the first time), builds, tests too, and installs.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$1
prefix=$2
shift 2

mkdir -p "$build"
cd "$build"
[ -f Makefile ] || "$top/configure" --prefix="$prefix" "$@"
make -j"$(nproc)"
make -j"$(nproc)" check TESTS=
make install
