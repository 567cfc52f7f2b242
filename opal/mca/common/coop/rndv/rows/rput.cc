// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/rows/row.h"

namespace coop::rndv::rows {
namespace {

// Between two processes that share memory the sender leads a cooperative copy, so that the receiver can take over from
// a sender that computes. Inside a node without a shared board, the receiver reads for the same reason.
std::optional<Choice> can_use(const Situation& s) noexcept {
    if (may_share(s)) {
        const auto shared = share_out(s);
        if (shared->row != Row::kRput || !s.slot_free) return std::nullopt;
        return Choice{Row::kRput, shared->reason, Split::kSenderLeads};
    }
    if (!can_put(s)) return std::nullopt;
    if (s.wish == Wish::kRput && !(s.same_node && can_get(s))) return Choice{Row::kRput, Reason::kForced};
    if (can_get(s)) return std::nullopt;
    if (s.get_refused) return Choice{Row::kRput, Reason::kGetRefused};
    return Choice{Row::kRput, other_is_asked_for(s) ? Reason::kForcedUnavailable : Reason::kNoGet};
}

Mover mover(const Choice& choice) noexcept {
    return choice.split == Split::kSenderLeads ? Mover::kBoth : Mover::kSender;
}
bool receiver_may_have_to_read(const Situation& s) noexcept { return s.can_share && !s.get_refused; }
Shares sender_copies(const Choice&, std::uint64_t bytes) noexcept { return {bytes, 0}; }

}  // namespace

constinit const Protocol rput{
    .row = Row::kRput,
    .name = "rput",
    .can_use = can_use,
    .mover = mover,
    .shows_buffer = receiver_may_have_to_read,
    .may_be_in_pieces = true,
    .idle_side_helps = false,
    .abort = lacks_for_both,
    .shares = sender_copies,
};

}  // namespace coop::rndv::rows
