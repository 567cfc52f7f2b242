// SPDX-License-Identifier: BSD-3-Clause
//
// The header of libibverbs, for those who define its calls: its macros that turn
// calls into inline functions are undone, and COOP_VERB makes a definition
// visible. Everything else in libcoopfabric.so is hidden. There are no symbol
// versions, so that a definition serves references to any version.
//
// Errors are told as libibverbs does: a null pointer or -1 with errno, or the
// errno itself, whichever the call's manual page says.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define COOP_VERB extern "C" __attribute__((visibility("default")))

namespace coop::fabric {

template <class T>
T* refuse(int error) {
    errno = error;
    return nullptr;
}

}  // namespace coop::fabric
