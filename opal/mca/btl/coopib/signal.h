// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that have no place in the sequence of a channel, because they belong to the requests before them on their
// rail: riders (operation.cc), and signals behind writes (extension.h declares the function for other components).
//
// Threading: under Module::lock. Ownership: such a fragment returns to its pool when it has completed. Errors: none.
#pragma once

#include <span>

#include "endpoint.h"

namespace coop::ib {

// Takes fragments for messages without a place in the sequence, and numbers them. Returns false, and takes nothing, if
// there is no memory, or there are too many that the peer has not acknowledged.
bool take_fragments(Module& m, Channel& channel, std::span<Fragment*> fragments);

// Call it for a fragment of take_fragments(). Submit it to its rail with Channel::submit().
void fill_unordered(Fragment& fragment, const void* packet, std::uint32_t bytes, std::uint8_t tag) noexcept;

}  // namespace coop::ib
