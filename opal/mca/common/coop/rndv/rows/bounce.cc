// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/rows/row.h"

namespace coop::rndv::rows {
namespace {

// A sender that waits for each of several messages in a row need not: it fills the next bounce buffer while the
// receiver empties the last one. A message that is answered before the next one arrives sooner with one copy than with
// two.
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
