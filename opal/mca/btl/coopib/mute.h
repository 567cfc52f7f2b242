// SPDX-License-Identifier: BSD-3-Clause
//
// Finds rails whose queue pairs have become mute (path/silence.h), and reports them to failover.h as failed.
//
// Threading: under Module::lock. Errors: none.
#pragma once

#include <cstdint>

namespace coop::ib {

struct Channel;

// Call it for a connected channel that repairs, about ten times a second.
void look_for_mute_rails(Channel& channel, std::uint64_t now);

}  // namespace coop::ib
