// SPDX-License-Identifier: BSD-3-Clause
//
// Completes a request of MPI. The thread that waits for it has an object on its stack, which this call writes, and uses its
// stack again as soon as it has woken up in Open MPI. Threading: any. The caller accesses the request no longer, unless it
// holds a reference.
#pragma once

#include "coop/base/tsan.h"

namespace coop {

inline void complete_request(ompi_request_t& request) noexcept {
    tsan_release(&request);
    const TsanIgnoresWrites ignores;
    ompi_request_complete(&request, true);
}

}  // namespace coop
