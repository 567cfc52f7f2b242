# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For the tests of the build: each prints lines 'PASS name' and 'FAIL name', which ./check counts. Scratch
# files go to $scratch.
scratch=$(mktemp -d "${TMPDIR:-/tmp}/ompi-coop.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# shellcheck disable=SC2034 # the exit status of the sourcing script
failed=0
pass() { echo "PASS $1"; }
# shellcheck disable=SC2034
fail() { # fail NAME REASON
    echo "FAIL $1"
    echo "     $2"
    failed=1
}

# succeeds NAME COMMAND...
succeeds() {
    local name=$1
    shift
    if "$@" >"$scratch/out" 2>&1; then
        pass "$name"
    else
        fail "$name" "exit status $? of: $*"
        tail -n 20 "$scratch/out"
    fi
}

# says NAME REGEX COMMAND...: the command must succeed and print REGEX.   refuses NAME REGEX COMMAND...: it must fail and print it.
says() { expect ok "$@"; }
refuses() { expect not_ok "$@"; }
expect() {
    local want=$1 name=$2 regex=$3 got=ok
    shift 3
    "$@" >"$scratch/out" 2>&1 || got=not_ok
    if [ $got != "$want" ]; then
        fail "$name" "should be $want, is $got: $*"
    elif ! grep -Eq -- "$regex" "$scratch/out"; then
        fail "$name" "does not say '$regex': $*"
    else
        pass "$name"
        return
    fi
    tail -n 20 "$scratch/out"
}
