// SPDX-License-Identifier: BSD-3-Clause
//
// Whether locks are needed. Include Open MPI's headers first (compat.h of the component).
//
// Threading: call it after Open MPI has initialized the transports. The answer does not change. Errors: none.
#pragma once

namespace coop {

// Whether btl/tcp has a thread of its own, which calls the PML at any time (btl_tcp_progress_thread).
inline bool tcp_has_a_thread() noexcept {
    const int index = mca_base_var_find("opal", "btl", "tcp", "progress_thread");
    const int* value = nullptr;
    return index >= 0 && mca_base_var_get_value(index, &value, nullptr, nullptr) == OPAL_SUCCESS && value &&
           *value != 0;
}

// Whether several threads may be inside MPI at the same time. Below MPI_THREAD_MULTIPLE the program calls MPI from one
// thread at a time, and whatever passes the calls from one thread to the next one orders their memory accesses. (Open MPI's
// opal_using_threads() is true from MPI_THREAD_FUNNELED on, and if btl/tcp has a thread.)
inline bool threads_meet_in_mpi() noexcept {
    return ompi_mpi_thread_multiple || (opal_using_threads() && tcp_has_a_thread());
}

}  // namespace coop
