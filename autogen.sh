#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Creates ./configure from configure.ac. Needed in a checkout; a release tarball contains ./configure.
set -eu
cd "$(dirname "$0")"

for tool in autoreconf:autoconf automake:automake libtoolize:libtool pkg-config:pkg-config; do
    command -v "${tool%%:*}" >/dev/null || {
        echo "autogen.sh: ${tool%%:*} not found: install the package ${tool##*:}" >&2
        exit 1
    }
done
exec autoreconf --install --force "$@"
