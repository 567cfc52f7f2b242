// SPDX-License-Identifier: BSD-3-Clause
//
// The progress function, and the clock for all measurements.
#pragma once

#include <cstdint>

namespace coop::ib {

int progress() noexcept;

std::uint64_t now_ns() noexcept;

}  // namespace coop::ib
