// SPDX-License-Identifier: BSD-3-Clause
//
// Which side copies, for two processes that share memory. (Cooperative Rendezvous Protocols: section II-B1 with Table
// II for the choice by calls, II-B2 for the choice by load, II-D for the hybrid.)
#pragma once

#include <optional>

#include "coop/rndv/choice.h"
#include "coop/rndv/situation.h"

namespace coop::rndv {

// Returns coop, rget or rput with the reason, without regard to offers and free slots. Returns nothing if the two
// processes may not share the copying (may_share()).
std::optional<Choice> share_out(const Situation& situation) noexcept;

// Translates a row of the paper's Table II into the side that leads the copy: rget the receiver, rput the sender, coop
// neither.
constexpr Split lead_of(Row row) noexcept {
    return row == Row::kRget ? Split::kReceiverLeads : row == Row::kRput ? Split::kSenderLeads : Split::kBoth;
}

}  // namespace coop::rndv
