#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each component of this build (COMPONENTS: the .la files) can be loaded, and exports no symbol but its descriptor.
set -eu

failed=0
for la in ${COMPONENTS:?}; do
    name=$(basename "$la" .la)
    dso=$(dirname "$la")/.libs/$name.so
    test/dlopen/load_components "$dso" || failed=1
    exported=$(${NM:-nm} -D --defined-only "$dso" | sed 's/.* //')
    if [ "$exported" != "${name}_component" ]; then
        echo "FAIL: $dso should export ${name}_component only, but exports:"
        echo "$exported"
        failed=1
    fi
done
exit $failed
