// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/rows/row.h"

namespace coop::rndv::rows {
namespace {

std::optional<Choice> can_use(const Situation& s) noexcept {
    if (may_share(s)) {
        const auto shared = share_out(s);
        return Choice{Row::kRget, shared->row == Row::kRget ? shared->reason : Reason::kNoSlot};
    }
    if (!can_get(s)) return std::nullopt;
    if (s.wish == Wish::kRget) return Choice{Row::kRget, Reason::kForced};
    if (s.wish == Wish::kRput) return Choice{Row::kRget, Reason::kForcedUnavailable};
    return Choice{Row::kRget, s.link == Link::kFast ? Reason::kFastLink : Reason::kReceiverReads};
}

void abort(Situation& s, Lack) noexcept { s.get_refused = true; }
Shares receiver_copies(const Choice&, std::uint64_t bytes) noexcept { return {0, bytes}; }

}  // namespace

constinit const Protocol rget{
    .row = Row::kRget,
    .name = "rget",
    .can_use = can_use,
    .mover = always<Mover::kReceiver>,
    .shows_buffer = always<true>,
    .may_be_in_pieces = true,
    .abort = abort,
    .shares = receiver_copies,
};

}  // namespace coop::rndv::rows
