// SPDX-License-Identifier: BSD-3-Clause
//
// What results of transports mean. Include Open MPI's headers first (compat.h of the component).
//
// Pure.
#pragma once

namespace coop {

// The transport has no room now: try again after progress.
constexpr bool is_shortage(int rc) noexcept {
    return rc == OMPI_ERR_OUT_OF_RESOURCE || rc == OMPI_ERR_TEMP_OUT_OF_RESOURCE;
}

}  // namespace coop
