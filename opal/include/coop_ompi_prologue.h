// SPDX-License-Identifier: BSD-3-Clause
//
// Comes before any other Open MPI header: makes the headers of a C library acceptable to a C++20 compiler. configure's
// probes include it too, so what configure accepts is what compiles later. Open MPI's headers still want their extern
// "C":
//
//     #include "coop_ompi_prologue.h"
//     extern "C" {
//     #include "ompi/mca/pml/pml.h"
//     }
#pragma once

// mpi.h would otherwise pull in the old C++ bindings, which cannot live inside extern "C".
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif

extern "C" {
#include "ompi_config.h"
#include "opal/threads/thread_usage.h"
}

// The one place where 4.1's headers rely on C's conversion from void*: inline functions (ompi_request_wait_completion)
// pass the address of the expected value as void*, the callee wants void**. Same call, with the type it wants.
#ifdef OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR
#undef OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR
#define OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR(target, expected, desired) \
    opal_thread_compare_exchange_strong_ptr((volatile intptr_t*)(target), (void**)(expected), (void*)(desired))
#endif
