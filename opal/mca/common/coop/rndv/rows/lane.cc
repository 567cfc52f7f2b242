// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/rows/row.h"

namespace coop::rndv::rows {
namespace {

// Two copies through shared memory are faster than one by the kernel, up to the length that lane_max tells. The sender
// must copy most of a message after the receiver has matched it. If it does not wait, it may compute then, and the
// receiver would wait for it although it could read the message (MPI 3.1, 3.7.4).
bool is_for_fragments(const Situation& s) noexcept {
    if (s.bytes > s.lane_max) return false;
    return s.wish == Wish::kSend || (s.wish == Wish::kHybrid && (sender_waits(s.send_call) || !s.can_get));
}

// The receiver follows the sender: it sets lane_max to more than any length if the sender has chosen the lane, and can_get is
// false. But it may choose the lane itself (pml/coop/recv_way.cc).
std::optional<Choice> can_use(const Situation& s) noexcept {
    if (s.lane_is_quicker) return Choice{Row::kLane, Reason::kLaneIsQuicker};
    if (s.lane_max == 0) return std::nullopt;
    if (s.bytes <= s.eager_limit) return Choice{Row::kLane, Reason::kFitsLane};
    return is_for_fragments(s) ? std::optional(Choice{Row::kLane, Reason::kBelowLaneMax}) : std::nullopt;
}

}  // namespace

constinit const Protocol lane{
    .row = Row::kLane,
    .name = "lane",
    .can_use = can_use,
    .mover = always<Mover::kPackets>,
    .payload = Inline::kHead,
    .shows_buffer = always<false>,
    .needs_rdma = false,
    .abort = cannot_lack,
    .shares = nobody_copies,
};

}  // namespace coop::rndv::rows
