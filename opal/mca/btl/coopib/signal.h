// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that have no place in the sequence of a channel, because they belong to the requests before them on their
// rail: riders (operation.cc), and signals behind writes (extension.h declares the function for other components).
//
// Threading: under Module::lock. Ownership: such a fragment returns to its pool when it has completed. Errors: none.
#pragma once

#include "endpoint.h"

namespace coop::ib {

// Submit it to its rail with Channel::submit().
void fill_unordered(Fragment& fragment, const void* packet, std::uint32_t bytes, std::uint8_t tag,
                    sched::SequenceNumber number = 0) noexcept;

}  // namespace coop::ib
