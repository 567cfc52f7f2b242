// SPDX-License-Identifier: BSD-3-Clause
//
// Copies inside the node: this transport offers itself for loopback, and keeps
// the load board of the node's HCAs up to date (coop/node/loopback.h).
#pragma once

#include <cstdint>

#include "work.h"

namespace coop::ib {

struct Module;

// Without the lock.
void offer_loopback() noexcept;
void withdraw_loopback() noexcept;

// With Module::lock held. A stripe of a large operation counts on the load board while it is under way.
void count_posted(Module& m, StripeWork& stripe, std::uint32_t hca) noexcept;
void count_completed(StripeWork& stripe) noexcept;

}  // namespace coop::ib
