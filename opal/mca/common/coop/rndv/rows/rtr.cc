// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/rows/row.h"

namespace coop::rndv::rows {
namespace {

// The side that would copy without the offer leads. (Cooperative Rendezvous Protocols, Table II)
std::optional<Choice> can_use(const Situation& s) noexcept {
    if (!s.offered || s.wish == Wish::kRput) return std::nullopt;
    const auto shared = share_out(s);
    if (!shared) return std::nullopt;
    return Choice{Row::kRtr, Reason::kOffered, shared->row == Row::kCoop ? shared->split : lead_of(shared->row)};
}

}  // namespace

constinit const Protocol rtr{
    .row = Row::kRtr,
    .name = "rtr",
    .can_use = can_use,
    .mover = always<Mover::kBoth>,
    .shows_buffer = always<true>,
    .starts_at_once = true,
    .abort = lacks_for_both,
    .shares = split_shares,
};

}  // namespace coop::rndv::rows
