// SPDX-License-Identifier: BSD-3-Clause
//
// The answer of choose(): a row of the table of protocols, the reason for it, and how two sides share the copying.
#pragma once

#include <cstdint>

#include "coop/rndv/reason.h"
#include "coop/rndv/rows/list.h"

namespace coop::rndv {

// How the two sides of a cooperative copy share the work. The side that leads may copy any chunk from the start. The
// other side helps while it is idle, and takes over when the leading side makes no progress (takeover.h). With halves,
// each side copies one, and takes over the other half when the other side makes no progress.
enum class Split : std::uint8_t { kBoth, kHalves, kReceiverLeads, kSenderLeads };
constexpr std::size_t kSplits = 4;

struct Choice {
    Row row;
    Reason reason;
    Split split = Split::kBoth;  // coop and rtr; rput: kSenderLeads if the two sides share memory, otherwise kBoth
    bool operator==(const Choice&) const = default;
};

}  // namespace coop::rndv
