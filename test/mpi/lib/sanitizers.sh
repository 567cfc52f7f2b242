# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
# How jobs run when the component and the test programs are instrumented. Open MPI itself is not.
#
# ASan + UBSan: everything but leaks. Open MPI leaks at exit, and unloads its components before the leak check runs, so that
# a report could not be told from ours; leaks of the core are looked for by the unit tests.
#
# TSan: races between code of Open MPI that we only inline or call are left out (tsan.supp); whatever has a frame of
# pml/coop or of the core on both sides is reported and fails the test. Its own look at the memory of thread-local objects is
# switched off: it may take whatever lies in front of a block for that block's size (sanitizers' issue 1322), which would explain
# runs that ended with 'failed to allocate' terabytes; none has since. The blocks come from malloc and go by free, which it
# follows anyway. UCX's hooks into memory take a lock when a thread ends, behind ThreadSanitizer's last record of it.
#
# Ranks of both yield while they wait: ./check runs two such jobs at a time. (By the environment: on the command line a parameter may
# stand once, and some grounds have it there.)
sanitizer_setup() {
    [ -z "$san" ] || export OMPI_MCA_mpi_yield_when_idle=1
    case $san in
    asan) common+=(-x ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1 -x UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1) ;;
    tsan) common+=(-x "TSAN_OPTIONS=suppressions=$here/lib/tsan.supp:history_size=7:exitcode=66:intercept_tls_get_addr=0" -x UCX_MEM_MMAP_HOOK_MODE=none) ;;
    esac
}

# Whether a test runs on every ground there is. A sanitizer looks at code: one node with vader and the virtual cluster, which has
# tcp between its hosts, take all of it, and jobs under one take several times as long.
everywhere() { [ -z "$san" ] || [ "$long" = yes ]; }
