# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
# How jobs run when the components and the test programs are instrumented. Open MPI itself is not.
#
# ASan + UBSan: all checks except leaks. Open MPI leaks at exit, and unloads its components before the leak check runs, so that
# its reports could not be told from ours. The unit tests check the core for leaks.
#
# TSan: suppresses races within code of Open MPI that we only inline or call, and a few in functions of pml/coop (tsan.supp gives
# the reasons). Other races with a frame of pml/coop or of the core on both sides are reported and fail the test. TSan's scan of
# thread-local objects is off, because it may take the word before a block for the size of that block (sanitizers issue 1322);
# with the scan, runs sometimes ended with 'failed to allocate' terabytes. Thread-local objects come from malloc here, and TSan
# follows them without the scan. UCX's memory hooks are off, because they take a lock when a thread ends, after TSan's last record
# of the thread.
#
# Ranks yield while they wait, because ./check runs two such jobs at a time. (Set in the environment: on the command line a
# parameter may occur only once, and some grounds set it there.)
sanitizer_setup() {
    [ -z "$san" ] || export OMPI_MCA_mpi_yield_when_idle=1 COOP_TEST_HANG_SCALE=3
    [ -z "$san" ] || common+=(-x COOP_TEST_HANG_SCALE)
    case $san in
    asan) common+=(-x ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1 -x UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1) ;;
    tsan) common+=(-x "TSAN_OPTIONS=suppressions=$here/lib/tsan.supp:history_size=7:exitcode=66:intercept_tls_get_addr=0" -x UCX_MEM_MMAP_HOOK_MODE=none) ;;
    esac
}

# Decides whether a test runs on every ground. A sanitizer checks code, and one node with vader plus the virtual cluster, with tcp
# between its hosts, cover all of it; jobs under a sanitizer take several times as long.
everywhere() { [ -z "$san" ] || [ "$long" = yes ]; }
