// SPDX-License-Identifier: BSD-3-Clause
//
// Messages to the user, from the help file of a component, and the end of the job. Include Open MPI's headers first
// (compat.h of the component).
//
// Threading: any thread.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace coop {

inline const char* host() noexcept { return opal_process_info.nodename; }
inline unsigned my_rank() noexcept { return ompi_proc_local()->super.proc_name.vpid; }

// Prints a topic of the help file here, not by way of mpirun, where messages are sometimes lost.
template <class... Arguments>
void say(const char* file, const char* topic, Arguments... arguments) {
    char* text = opal_show_help_string(file, topic, true, arguments...);
    std::fputs(text ? text : topic, stderr);
    std::fflush(stderr);
    std::free(text);
}

[[noreturn]] inline void end_job() {
    ompi_rte_abort(1, nullptr);
    std::abort();  // not reached: the declaration of ompi_rte_abort does not say that it never returns
}

}  // namespace coop
