// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/rows/row.h"

namespace coop::rndv::rows {
namespace {

// For blocking sends in a row without a message back (one_way). With bounce buffers, such a sender need not wait until
// each message is received: it fills the next buffer while the receiver empties the previous one. If the receiver
// answers each message before the next one is sent, nothing overlaps, and one copy is faster than the two of this row.
std::optional<Choice> can_use(const Situation& s) noexcept {
    const bool fits = s.one_way && s.wish == Wish::kHybrid && s.can_share && s.send_call == SendCall::kSend &&
                      !s.synchronous && s.bytes <= s.bounce_max;
    return fits ? std::optional(Choice{Row::kBounce, Reason::kOneWay}) : std::nullopt;
}

}  // namespace

constinit const Protocol bounce{
    .row = Row::kBounce,
    .name = "bounce",
    .can_use = can_use,
    .mover = always<Mover::kPackets>,
    .shows_buffer = always<false>,
    .uses_bounce = true,
    .abort = cannot_lack,
    .shares = nobody_copies,
};

}  // namespace coop::rndv::rows
