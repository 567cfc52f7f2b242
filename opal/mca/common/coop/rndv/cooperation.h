// SPDX-License-Identifier: BSD-3-Clause
//
// Which side copies, for two processes that share memory. (Cooperative Rendezvous Protocols: section II-B1 with Table
// II for the choice by calls, II-B2 for the choice by load, II-D for the hybrid.)
#pragma once

#include <optional>

#include "coop/rndv/choice.h"
#include "coop/rndv/situation.h"

namespace coop::rndv {

// coop, rget or rput with a reason, as if no receive had been offered and a slot were free. Nothing where the two may
// not share.
std::optional<Choice> share_out(const Situation& situation) noexcept;

// The side that leads the copy where the paper's table names this row.
constexpr Split lead_of(Row row) noexcept {
    return row == Row::kRget ? Split::kReceiverLeads : row == Row::kRput ? Split::kSenderLeads : Split::kBoth;
}

}  // namespace coop::rndv
