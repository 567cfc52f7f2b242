// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/rows/row.h"

namespace coop::rndv::rows {
namespace {

std::optional<Choice> can_use(const Situation& s) noexcept {
    const auto shared = share_out(s);
    if (!shared || shared->row != Row::kCoop || !s.slot_free) return std::nullopt;
    return shared;
}

}  // namespace

constinit const Protocol coop{
    .row = Row::kCoop,
    .name = "coop",
    .can_use = can_use,
    .mover = always<Mover::kBoth>,
    .shows_buffer = always<true>,
    .may_be_in_pieces = true,
    .allows_hcas = true,
    .abort = lacks_for_both,
    .shares = split_shares,
};

}  // namespace coop::rndv::rows
