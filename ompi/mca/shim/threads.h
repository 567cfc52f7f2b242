// SPDX-License-Identifier: BSD-3-Clause
//
// Whether pml/coop, coll/rdmaag and osc/multirail need locks. Include Open MPI's headers first (compat.h of the component).
//
// Threading: call it after Open MPI has initialized the transports. The answer does not change. Errors: none.
#pragma once

#include <cstring>

namespace coop {

// Whether btl/tcp has a thread of its own, which calls the PML at any time (btl_tcp_progress_thread).
inline bool tcp_has_a_thread() noexcept {
    const int index = mca_base_var_find("opal", "btl", "tcp", "progress_thread");
    const int* value = nullptr;
    return index >= 0 && mca_base_var_get_value(index, &value, nullptr, nullptr) == OPAL_SUCCESS && value &&
           *value != 0;
}

// Whether btl/coopib is in use. Its asynchronous handler would take turns with the application, but from MPI_THREAD_FUNNELED on
// Open MPI's own locks are real: the handler could wait in its turn for a lock that the application holds while it waits for
// the turn (mca_bml_lock), and a tool may read performance variables in another thread.
inline bool coopib_is_used() noexcept {
    mca_btl_base_selected_module_t* selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        const char* const name = selected->btl_module->btl_component->btl_version.mca_component_name;
        if (std::strcmp(name, "coopib") == 0) return true;
    }
    return false;
}

// Whether several threads may be inside MPI at the same time: with MPI_THREAD_MULTIPLE, and from MPI_THREAD_FUNNELED on in the
// two cases above. Otherwise the program calls MPI from one thread at a time, and the synchronization by which one thread lets
// the next one call orders their memory accesses. (Open MPI's opal_using_threads() is true from MPI_THREAD_FUNNELED on, and if
// btl/tcp has a thread.)
inline bool threads_meet_in_mpi() noexcept {
    return ompi_mpi_thread_multiple || (opal_using_threads() && (tcp_has_a_thread() || coopib_is_used()));
}

}  // namespace coop
