#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The core needs only C++20. With the include paths that make compiles it with (CORE_CPPFLAGS), every header of the core
# compiles by itself, and Open MPI's headers cannot be found. The headers of rail/verbs, which is
# not part of the core, are checked only if libibverbs is installed.
set -eu

failed=0
compiles() { # compiles INCLUDE
    # shellcheck disable=SC2086 # both are lists of words
    echo "#include $1" | ${CXX:?} ${CORE_CPPFLAGS:?} -x c++ -fsyntax-only - 2>core_stands_alone.err
}

for foreign in '<mpi.h>' '"ompi_config.h"' '"opal/mca/btl/btl.h"' '"ompi/mca/pml/pml.h"'; do
    if compiles "$foreign"; then
        echo "FAIL: the core can include $foreign"
        failed=1
    fi
done

parent=$(dirname "${CORE_FOLDER:?}")
skipped='*/rail/verbs/*'
! compiles '<infiniband/verbs.h>' || skipped=''
for header in $(find "$CORE_FOLDER" -name '*.h' ! -path "$skipped" | sort); do
    name=${header#"$parent"/}
    if ! compiles "\"$name\""; then
        echo "FAIL: $name does not compile by itself"
        cat core_stands_alone.err
        failed=1
    fi
done
rm -f core_stands_alone.err
[ $failed = 0 ] && echo "every header of the core compiles by itself, and Open MPI's headers cannot be included"
exit $failed
