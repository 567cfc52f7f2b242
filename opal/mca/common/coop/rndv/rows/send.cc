// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/rows/row.h"

namespace coop::rndv::rows {
namespace {

// Below this share of the bandwidth, RDMA over one transport is slower than fragments over all transports of the peer.
constexpr double kWorthwhileShare = 0.5;

// Between nodes, a sender that does not wait for a message probably sends further ones. The head of each, which comes
// with the RTS, keeps the link busy until the rest follows. A message for which the sender waits arrives sooner if the
// receiver reads it as a whole.
constexpr bool is_stream(const Situation& s) noexcept {
    return !s.same_node && (s.can_get || s.can_put) && !sender_waits(s.send_call) && s.bytes < s.isend_rdma_min;
}

std::optional<Reason> better_than_rdma(const Situation& s) noexcept {
    const bool contiguous = s.sender_contiguous && s.receiver_contiguous;
    if (!contiguous && !s.large_pieces) return s.sender_contiguous ? Reason::kReceiverPieces : Reason::kSenderPieces;
    if (s.wish == Wish::kSend) return Reason::kForced;
    if (is_classic(s.wish)) return std::nullopt;
    if (s.bytes < s.rdma_min) return Reason::kBelowRdmaMin;
    if (is_stream(s)) return s.link == Link::kSlow ? Reason::kSlowLink : Reason::kNotAwaited;
    if ((s.can_get || s.can_put) && s.rdma_share < kWorthwhileShare) return Reason::kStripedOverTransports;
    return std::nullopt;
}

std::optional<Choice> can_use(const Situation& s) noexcept {
    const auto reason = better_than_rdma(s);
    return reason ? std::optional(Choice{Row::kSend, *reason}) : std::nullopt;
}

}  // namespace

Choice last_resort(const Situation& s) noexcept {
    if (s.kernel_copy_denied) return {Row::kSend, Reason::kNoKernelCopy};
    if (s.get_refused || s.put_refused) return {Row::kSend, Reason::kRdmaRefused};
    return {Row::kSend, other_is_asked_for(s) ? Reason::kForcedUnavailable : Reason::kNoRdma};
}

constinit const Protocol send{
    .row = Row::kSend,
    .name = "send",
    .can_use = can_use,
    .mover = always<Mover::kPackets>,
    .payload = Inline::kHead,
    .shows_buffer = always<false>,
    .needs_rdma = false,
    .abort = cannot_lack,
    .shares = nobody_copies,
};

}  // namespace coop::rndv::rows
