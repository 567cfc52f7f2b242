// SPDX-License-Identifier: BSD-3-Clause
//
// How fast this process copies from memory to memory. Takes about a millisecond, so the caller keeps the answer.
//
// Threading: any. Errors: 0 if there is no memory or the clock does not advance.
#pragma once

#include <cstdint>

#include "coop/base/export.h"

namespace coop::node {

COOP_EXPORT std::uint64_t measure_copy_rate() noexcept;  // bytes per second

}  // namespace coop::node
