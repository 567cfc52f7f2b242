#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Lays out all C and C++ sources according to .clang-format. With --check: changes nothing, and fails if a file differs.
set -euo pipefail
cd "$(dirname "$0")/../.."

mode=(-i)
[ "${1:-}" != --check ] || mode=(--dry-run --Werror)
find bench docs fabric ompi opal test tools \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) -print0 |
    xargs -0 -n 40 -P "$(nproc)" clang-format "${mode[@]}" || {
    echo "Run test/build/format.sh to correct the layout." >&2
    exit 1
}
