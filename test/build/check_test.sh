#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests how ./check counts tests, using artificial steps and programs: lost, skipped, empty, hung or repeated tests must not look
# like a pass.
# shellcheck disable=SC2016,SC2317 # single quotes: the text is for another shell
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=test/build/lib.sh
. "$top/test/build/lib.sh"
export top
unset COOP_TEST_UNTIL # of the check that runs this

# --- steps, parts, and the closing line (lib/steps.sh) ----------------------------------------------------------------

# in_check COMMANDS: runs the commands as ./check would. `reports LINE…` is the command of a step.
in_check() {
    rm -rf "$scratch/check"
    mkdir "$scratch/check"
    results=$scratch/check bash -uo pipefail -c '
        tally=$results/tally
        : >"$tally"
        . "$top/test/lib/steps.sh"
        reports() { printf "%s\n" "$@"; }
        '"$1"'
        closing'
}
closes() { says "site_33.$1" "^$2$" in_check "$3"; } # NAME LINE COMMANDS: status 0, and LINE (a regex) is printed
fails() { refuses "site_33.$1" "$2" in_check "$3"; } # NAME REGEX COMMANDS: another status, and REGEX is printed

closes the_closing_line_counts_passes_skips_and_retries '3 passed, 0 failed, 1 skipped, 1 retried' \
    'step some 4 reports "PASS a" "PASS b (2)" "SKIP c: not here" "RETRIED d: it was busy" "PASS d"'
closes a_skip_is_no_pass '0 passed, 0 failed, 1 skipped, 0 retried' 'step vm 1 reports "SKIP vm: no kernel"'
closes a_skip_is_listed_with_its_reason 'skipped: vm: no kernel: vm sanity' \
    'step vm 1 reports "SKIP vm: no kernel" "SKIP sanity: no kernel"'
closes a_retry_is_listed_with_its_reason 'retried: mpi: storm\.pair: mpirun died' \
    'step mpi 1 reports "RETRIED storm.pair: mpirun died" "PASS storm.pair"'
closes a_skip_may_stand_for_many '5 passed, 0 failed, 1 skipped, 0 retried' \
    'step many 25 reports "PASS a" "PASS b" "PASS c" "PASS d" "PASS e" "SKIP rest: not root (stands for 20)"'
closes a_step_may_be_a_test_itself '1 passed, 0 failed, 0 skipped, 0 retried' 'step build itself true'
closes preparation_is_no_test '0 passed, 0 failed, 0 skipped, 0 retried' 'needs prepare true'
fails a_silent_step_is_no_pass '^failed: silent: reported 0 tests, of at least 1$' 'step silent 1 true'
fails fewer_tests_than_declared_fail '^failed: few: reported 2 tests, of at least 3$' 'step few 3 reports "PASS a" "SKIP b: not here"'
fails a_step_declares_a_number '^failed: none: reported 1 tests, of at least echo$' 'step none echo echo PASS a'
fails a_failure_is_named '^failed: some: b$' 'step some 2 reports "PASS a" "FAIL b"'
fails a_failure_counts_though_the_status_is_0 '^1 passed, 1 failed, 0 skipped, 0 retried$' 'step some 2 reports "PASS a" "FAIL b"'
fails a_status_counts_though_all_passed '^failed: some \(exit status 3\)$' 'step some 1 sh -c "echo PASS a; exit 3"'
fails a_failed_preparation_counts '^0 passed, 1 failed, 0 skipped, 0 retried$' 'needs prepare false || :'
fails a_step_that_is_killed_is_no_pass '^failed: half: it began and did not end$' 'dies() { kill -9 $BASHPID; }; (step half 1 dies) || :'
fails a_killed_command_of_beside_is_no_pass 'ended with status 137 and reported no failure$' \
    'dies() { kill -9 $BASHPID; }; beside dies "step some 1 reports PASS" || :'
fails a_misspelt_command_of_beside_is_no_pass "'stepp a 1 true' ended with status 127" 'beside "stepp a 1 true" || :'
fails a_command_of_beside_has_a_step "'true' ran no step" 'beside true'
fails a_failure_beside_counts_once '^0 passed, 1 failed, ' 'beside "step some 1 false" || :'
fails a_part_has_a_step '^failed: part docs ran no step$' 'part_docs() { false && step docs 1 true; }; in_order docs || :'
closes parts_run_beside_each_other '2 passed, 0 failed, 0 skipped, 0 retried' \
    'part_a() { step a itself true; }; part_b() { beside "step b itself true"; }; beside "in_order a" "in_order b"'
closes a_step_after_the_time_limit_is_a_skip '1 passed, 0 failed, 1 skipped, 0 retried' \
    'step some 1 reports "PASS a"; COOP_TEST_UNTIL=$EPOCHSECONDS; step more 5 reports "PASS b"'
closes a_step_that_the_time_limit_ends_reports_fewer_tests '1 passed, 0 failed, 1 skipped, 0 retried' \
    'COOP_TEST_UNTIL=$((EPOCHSECONDS + 2)); slowly() { sleep 2; reports "PASS a" "SKIP b: late"; }; step some 5 slowly'

# --- a run of tests (lib/report.sh, lib/cases.sh) -----------------------------------------------------------------------

# in_run COMMANDS: runs the commands like test/mpi/run. $pattern selects tests. `program TEXT` makes $results/program, a shell script.
in_run() {
    mkdir -p "$scratch/run/log"
    here=$top/test/mpi results=$scratch/run pattern=${pattern:-*} bash -uo pipefail -c '
        . "$top/test/lib/report.sh"
        . "$top/test/lib/cases.sh"
        program() { printf "#!/bin/sh\n%s\n" "$1" >"$results/program" && chmod +x "$results/program"; }
        topic() { run_topic vader.fake "$results/program" "$results/program"; }
        '"$1"'
        [ "$failed" = 0 ]'
}
run_says() { says "site_33.$1" "$2" in_run "$3"; }
run_fails() { refuses "site_33.$1" "$2" in_run "$3"; }

two='case $1 in --list) echo a; echo b;; *) echo RUN a; echo OK a 0.1; echo RUN b; echo SKIP b not here;; esac'
run_says a_test_after_the_time_limit_is_skipped '^SKIP late: no time was left' 'COOP_TEST_UNTIL=$EPOCHSECONDS; check late false'
run_says a_case_after_the_time_limit_is_skipped '^SKIP vader\.fake\.a: no time was left' "COOP_TEST_UNTIL=\$EPOCHSECONDS; program '$two'; topic"
run_says cases_that_began_in_time_are_reported '^PASS vader\.fake\.b' \
    "program 'case \$1 in --list) echo a; echo b;; *) sleep 2; echo RUN a; echo OK a 0.1; echo RUN b; echo OK b 0.1;; esac'
    COOP_TEST_UNTIL=\$((EPOCHSECONDS + 2)); topic"
run_says a_part_after_the_time_limit_is_skipped '^SKIP late: no time was left' \
    'COOP_TEST_UNTIL=$EPOCHSECONDS; part_late() { check one false; }; run_part late "*"'
run_says cases_pass_and_are_skipped '^SKIP vader\.fake\.b: not here$' "program '$two'; topic"
run_fails a_program_that_cannot_list_its_cases_fails '^FAIL vader\.fake\.lists_its_cases$' 'program "exit 3"; topic'
run_fails a_program_without_a_case_fails '^FAIL vader\.fake\.lists_its_cases$' 'program true; topic'
run_fails a_program_that_stops_early_fails 'neither passed nor failed nor skipped: b$' \
    'program "case \$1 in --list) echo a; echo b;; *) echo RUN a; echo OK a 0.1;; esac"; topic'
run_fails a_case_that_exits_with_0_fails 'neither passed nor failed nor skipped: b$' \
    'program "case \$1 in --list) echo a; echo b;; *) echo RUN a; echo OK a 0.1; echo RUN b;; esac"; topic'
run_says a_case_in_which_mpirun_dies_is_tried_again '^RETRIED vader\.fake\.b: mpirun died in b, attempt 1$' 'rm -f "$results/tried"
    program "case \$1 in --list) echo a; echo b;; *) echo RUN b; [ -e $results/tried ] || { : >$results/tried; echo mpirun does not answer 7; exit 124; }; echo OK b 1;; esac"
    pattern="*.b"; topic'
run_fails a_case_in_which_mpirun_always_dies_fails '^FAIL vader\.fake\.a$' \
    'program "case \$1 in --list) echo a;; *) echo RUN a; echo mpirun does not answer 7; exit 124;; esac"; topic'
run_fails a_part_without_a_test_fails '^FAIL empty\.has_a_test$' 'part_empty() { :; }; run_part empty "*"'
run_fails a_pattern_without_a_test_fails "no test of part some is called 'nosuch\.\*'" \
    'part_some() { check some.test true; }; run_part some "nosuch.*"'
run_says a_group_of_tests_may_be_skipped '^SKIP cluster: not root \(stands for 40\)$' 'part_some() { report_skip cluster "not root" 40; }; run_part some "*"'

for run in docs sim ab; do
    refuses "site_33.test_${run}_refuses_a_word_that_no_test_has" 'no test is called nosuchtest' "$top/test/$run/run" --prefix "$scratch" nosuchtest
done
says site_33.an_empty_mpich_folder_fails '^FAIL mpich\.pt2pt: 0 tests pass, of at least 1; 0 were built' in_run '
    mkdir -p "$results/tree/pt2pt" && echo "sendself 1" >"$results/tree/pt2pt/testlist"
    ! python3 "$top/test/mpi/foreign/conformance.py" --tree "$results/tree" --pml coop --log "$results" --folders pt2pt -- true'

# --- a timeout does not count as the expected error (lib/ends.sh) ----------------------------------------------------------

ends() { says "site_34.$1" "" in_run "$2"; }
does_not() { refuses "site_34.$1" "$2" in_run "$3"; }
ends an_exit_status_of_1_is_an_error 'check it ends_with_an_error sh -c "exit 1"'
does_not success_is_not_an_error 'it should not have succeeded' 'check it ends_with_an_error true'
does_not a_time_limit_is_not_an_error 'did not end within its time limit' 'check it ends_with_an_error time_limit 0.2 sleep 10'
does_not a_time_limit_that_had_to_kill_is_not_an_error 'did not end within its time limit' \
    'timeout() { shift 2; command timeout -k 0.1 "$@"; }; check it ends_with_an_error time_limit 1 sh -c "trap : TERM; while :; do sleep 0.1; done"'
does_not a_crash_is_not_an_error 'signal 11 ended it' 'check it ends_with_an_error sh -c "kill -SEGV \$\$"'
ends a_rank_that_aborts_with_255_is_an_error 'check it is_status_of_an_error 255'
ends a_signal_may_be_permitted 'check it is_status_of_an_error 137 9'
does_not another_signal_may_not 'signal 11 ended it' 'check it is_status_of_an_error 139 9'

refuses site_34.no_test_takes_any_failure_for_the_wanted_one '^$' \
    sh -c "grep -nE '\)? *&& *\{ *echo \"[^\"]*(went on|should|succeeded)|! +(launch|on_subnet)' $top/test/*/parts/*.sh || { echo; false; }"

# --- retries of tests ----------------------------------------------------------------------------------------------------------

again() { says "site_35.$1" "$2" in_run "$3"; }
dies_once='dies_once() { [ -e "$results/once" ] || { : >"$results/once"; echo pmix_server_log_fn; return 1; }; }; rm -f "$results/once";'
again a_dead_mpirun_is_counted '^RETRIED storm\.pair: mpirun died, attempt 1$' "$dies_once check storm.pair dies_once"
again a_test_may_tell_from_another_process '^RETRIED perf\.bw: two clocks$' \
    'check perf.bw sh -c "echo two clocks >>\"\$COOP_TEST_RETRIES\""'
refuses site_35.a_mpirun_that_always_dies_is_no_pass '^FAIL storm\.pair$' \
    in_run 'check storm.pair sh -c "echo pmix_server_log_fn; exit 1"'
refuses site_35.a_failure_after_a_dead_mpirun_fails '^FAIL storm\.pair$' in_run "$dies_once"'
    then_fails() { dies_once; return 1; }; check storm.pair then_fails'

# A measure is a list of figures; each run returns the next one.
measures() { # FIGURES CONDITION
    in_run '. "$top/test/fabric/parts/measures.sh"; long=no; rm -f "$results/nth"
        measure() { echo >>"$results/nth"; set -- '"$1"'; shift $(($(wc -l <"$results/nth") - 1)); echo "figure $1"; }
        holds it "%s MB/s" "'"$2"'" measure'
}
says site_35.a_measure_that_mostly_holds_passes '^PASS measures\.it \(249.5 MB/s, of 250 200 251 249\)$' measures '250 200 251 249' 'x >= 245'
refuses site_35.one_success_of_many_is_no_pass '^FAIL measures\.it$' measures '200 250 201 202' 'x >= 245'
refuses site_35.a_measure_without_a_figure_fails '^FAIL measures\.it$' measures 'x "" "" "" ""' 'x >= 245'
exit $failed
