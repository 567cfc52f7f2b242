#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# dist_test.sh BUILD FLAGS [ALL]: the tarball of 'make dist' holds every file of the repository. If ALL is given, it also builds, passes its
# tests, installs and uninstalls from a read-only folder ('make distcheck'), configured with FLAGS.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=test/build/lib.sh
. "$top/test/build/lib.sh"
build=$1 flags=$2

name=ompi-coop-$(cat "$top/VERSION")
if [ $# -lt 3 ]; then
    succeeds "dist" make -C "$build" dist
else
    succeeds "distcheck" make -C "$build" -j"$(nproc)" distcheck DISTCHECK_CONFIGURE_FLAGS="$flags"
fi

# Files that are for a clone only.
only_in_a_clone='^(\.gitignore|\.clang-format)$'
missing_files() {
    comm -23 <(git -C "$top" ls-files | grep -vE "$only_in_a_clone" | sort) <(tar -tf "$build/$name.tar.gz" | sed -n "s|^$name/||p" | sort)
}
if [ -e "$top/.git" ]; then
    refuses "tarball_has_every_file" '^$' sh -c "echo '$(missing_files)' | grep . || { echo; false; }"
else
    echo "SKIP tarball_has_every_file: this is not a clone"
fi
exit $failed
