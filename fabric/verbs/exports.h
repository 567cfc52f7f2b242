// SPDX-License-Identifier: BSD-3-Clause
//
// The header of libibverbs, prepared for defining its calls: the macros that turn
// calls into inline functions are undone, and COOP_VERB makes a definition
// visible. Everything else in libcoopfabric.so is hidden. There are no symbol
// versions, so that a definition serves references to any version.
//
// Errors are reported as in libibverbs: as a null pointer or -1 with errno, or as
// an errno value, depending on the call's manual page.
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
