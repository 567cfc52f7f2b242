#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The core needs C++20 and nothing else. With the include paths that make compiles it with (CORE_CPPFLAGS): Open MPI's
# headers are out of reach, and every header of the core compiles by itself. (rail/verbs, which is not of the core, where
# libibverbs is.)
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
[ $failed = 0 ] && echo "every header of the core compiles by itself, and none of Open MPI's is in reach"
exit $failed
