#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# make_check.sh BUILD [PREFIX [TESTS]]: 'make check' in a build folder, with a line for each GoogleTest case and each other test.
# PREFIX goes before the names, to tell several builds apart. TESTS: run only these, as named for make.
set -uo pipefail
build=$1
prefix=${2:-}

rm -f "$build"/test/*/*.trs # of tests that were removed, or that make does not reach
if [ $# -ge 3 ]; then
    read -ra tests <<<"$3"
    programs=()
    for test in "${tests[@]}"; do [[ $test = *.sh ]] || programs+=("$test"); done
    # 'make check' would build everything first.
    make -C "$build" -j"$(nproc)" check-TESTS TESTS="$3" check_PROGRAMS="${programs[*]}"
else
    make -C "$build" -j"$(nproc)" check
fi
status=$?
for result in "$build"/test/*/*.trs; do
    name=$(basename "$result" .trs)
    log=${result%.trs}.log
    if [[ $name =~ ^(unit|thread|fabric|sim)_tests$ ]]; then
        sed -n -e "s/^\[       OK \] \([^ ]*\).*/PASS $prefix\1/p" -e "s/^\[  FAILED  \] \([^ ]*\) (.*/FAIL $prefix\1/p" \
            -e "s/^\[  SKIPPED \] \([^ ]*\) (.*/SKIP $prefix\1: see ${name}.log/p" "$log"
        # After a crash the running case has no verdict.
        grep -q '^\[==========\] .* ran\.' "$log" || echo "FAIL ${prefix}${name}_end"
    elif grep -q '^:test-result: SKIP' "$result"; then
        echo "SKIP $prefix$name: $(head -n 1 "$log")"
    else
        sed -n "s/^:test-result: \([A-Z]*\).*/\1 $prefix$name/p" "$result"
    fi
done
exit $status
