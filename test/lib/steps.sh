# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Steps and parts of ./check, and its last line. A step runs a command whose output has a line for each test:
#
#     PASS name …        FAIL name        SKIP name: why        RETRIED name: why
#
# 'SKIP name: why (stands for N)' means that N tests were left out. A part is a function part_NAME that runs steps.
#
# Set by the script that sources this file: results, a folder for logs, and tally, an empty file. The lines of a tally:
#
#     begin STEP                    the step has begun
#     end STEP PASSED               the step has ended, and PASSED tests have passed
#     '! TEXT'                         a failure
#     - STEP: NAME: WHY             a skip
#     ~ STEP: NAME: WHY             a test that was tried again
#
# A step that begins and does not end is a failure.
# shellcheck disable=SC2154 # results

# shellcheck source=test/lib/ends.sh
. "${BASH_SOURCE[0]%/*}/ends.sh"

# step NAME LEAST COMMAND…: runs a command that must report at least LEAST tests, passed, failed or skipped. If LEAST is 'itself', the
# command is one test, which passes with exit status 0.
step() {
    local name=$1 least=$2 log=$results/$1.log start=$SECONDS status=0 pass fail skip reported
    shift 2
    echo "begin $name" >>"$tally"
    if time_is_up; then
        printf '%s\n' "- $name: all: $no_time" "end $name 0" >>"$tally"
        echo "$name: $no_time"
        return
    fi
    "$@" >"$log" 2>&1 </dev/null || status=$?
    pass=$(grep -ac '^PASS ' "$log")
    fail=$(grep -ac '^FAIL ' "$log")
    skip=$(grep -ac '^SKIP ' "$log")
    reported=$(reported_tests "$log")
    if [ "$least" = itself ]; then
        least=0
        [ "$status" != 0 ] || pass=$((pass + 1))
    fi
    sed -n "s/^FAIL /! $name: /p; s/^SKIP /- $name: /p; s/^RETRIED /~ $name: /p" "$log" >>"$tally"
    if [ "$status" != 0 ] && [ "$fail" = 0 ]; then
        fail=1
        echo "! $name (exit status $status)" >>"$tally"
    elif ! time_is_up && ! [ "$reported" -ge "$least" ]; then # also true if LEAST is not a number
        fail=$((fail + 1))
        echo "! $name: reported $reported tests, of at least $least" >>"$tally"
    fi
    echo "end $name ${counted:-$pass}" >>"$tally"
    printf '%-28s %4d passed %3d failed %3d skipped  %4d s\n' "$name" "$pass" "$fail" "$skip" $((SECONDS - start))
    [ "$fail" != 0 ] || return 0
    grep -a -A 45 '^FAIL ' "$log" | head -n 200 | sed 's/^/    | /'
    tail -n 25 "$log" | sed 's/^/    > /'
    echo "    full log: $log"
    return 1
}

reported_tests() { # LOG
    awk '/^(PASS|FAIL) / { ++n }
         /^SKIP / { n += match($0, /\(stands for [0-9]+\)$/) ? substr($0, RSTART + 12) + 0 : 1 }
         END { print n + 0 }' "$1"
}

# needs NAME COMMAND…: runs a preparation. It is not a test: only its failure counts.
needs() { counted=0 step "$1" itself "${@:2}"; }

# beside 'COMMAND…' …: runs all commands at once, each with its own tally.
beside() {
    local i words branch status pids=() commands=("$@") failed=0
    for i in "${!commands[@]}"; do
        branch=$tally.$i
        : >"$branch"
        read -ra words <<<"${commands[i]}"
        tally=$branch "${words[@]}" &
        pids+=($!)
    done
    for i in "${!commands[@]}"; do
        status=0 branch=$tally.$i
        wait "${pids[i]}" || status=$?
        cat "$branch" >>"$tally"
        [ "$status" = 0 ] || failed=1
        if [ "$status" != 0 ] && ! grep -q '^!' "$branch"; then
            echo "! '${commands[i]}' ended with status $status and reported no failure" >>"$tally"
        elif ! grep -q '^begin' "$branch"; then
            echo "! '${commands[i]}' ran no step" >>"$tally"
        fi
        rm -f "$branch"
    done
    return $failed
}

# in_order PART…: runs the parts one after the other.
in_order() {
    local part before failed=0
    for part in "$@"; do
        before=$(grep -c '^begin' "$tally")
        "part_$part" || failed=1
        [ "$(grep -c '^begin' "$tally")" != "$before" ] || echo "! part $part ran no step" >>"$tally"
    done
    return $failed
}

# Prints the failures, the skips with their reasons, and the retries; then 'N passed, N failed, N skipped, N retried'. The status is 0 if
# nothing failed.
closing() {
    awk '
        $1 == "begin" { running[$2] = 1 }
        $1 == "end"   { delete running[$2]; passed += $3 }
        $1 == "!"     { ++failed; print "failed: " substr($0, 3) }
        $1 == "~"     { retried[++tries] = substr($0, 3) }
        $1 == "-" {
            ++skipped
            name = $3; sub(/:$/, "", name)
            why = $0; sub(/^- [^ ]+ [^ ]+ /, "", why)
            key = $2 " " why
            if (!(key in names)) order[++reasons] = key
            names[key] = names[key] " " name
        }
        END {
            for (step in running) { ++failed; print "failed: " step ": it began and did not end" }
            for (i = 1; i <= reasons; ++i) print "skipped: " order[i] ":" names[order[i]]
            for (i = 1; i <= tries; ++i) print "retried: " retried[i]
            print passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped, " tries + 0 " retried"
            exit failed != 0
        }' "$tally"
}
