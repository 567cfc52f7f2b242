// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/protocol.h"

namespace coop::rndv {
namespace {

// Below this share of the bandwidth, one RDMA transport alone is slower than
// fragments over all transports of the peer.
constexpr double kWorthwhileShare = 0.5;

Choice choose_rdma(const Situation& s) noexcept {
    const bool get = s.can_get && !s.get_refused;
    const bool put = s.can_put && !s.put_refused;

    if (s.wish == Wish::kRget && get) return {Row::kRget, Reason::kForced};
    if (s.wish == Wish::kRput && put) return {Row::kRput, Reason::kForced};
    const bool denied = s.wish == Wish::kRget || s.wish == Wish::kRput;

    if (get && !denied) return {Row::kRget, Reason::kReceiverReads};
    if (get) return {Row::kRget, Reason::kForcedUnavailable};
    const bool refused = s.get_refused || s.put_refused;
    if (put) return {Row::kRput, s.get_refused ? Reason::kGetRefused : denied ? Reason::kForcedUnavailable : Reason::kNoGet};
    return {Row::kSend, refused ? Reason::kRdmaRefused : denied ? Reason::kForcedUnavailable : Reason::kNoRdma};
}

}  // namespace

Choice choose(const Situation& s) noexcept {
    if (s.bytes <= s.eager_limit)
        return {Row::kEager, s.synchronous ? Reason::kSynchronousFitsInline : Reason::kFitsEager};
    if (!s.sender_contiguous) return {Row::kSend, Reason::kSenderPieces};
    if (!s.receiver_contiguous) return {Row::kSend, Reason::kReceiverPieces};
    if (s.wish == Wish::kSend) return {Row::kSend, Reason::kForced};
    if (s.wish == Wish::kAuto) {
        if (s.bytes < s.rdma_min) return {Row::kSend, Reason::kBelowRdmaMin};
        if ((s.can_get || s.can_put) && s.rdma_share < kWorthwhileShare) return {Row::kSend, Reason::kStripedOverTransports};
    }
    return choose_rdma(s);
}

const char* name(Row row) noexcept {
    switch (row) {
    case Row::kEager: return "eager";
    case Row::kSend: return "send";
    case Row::kRput: return "rput";
    case Row::kRget: return "rget";
    }
    return "unknown";
}

const char* text(Reason reason) noexcept {
    switch (reason) {
    case Reason::kFitsEager: return "fits the eager limit";
    case Reason::kSynchronousFitsInline: return "synchronous, fits beside the RTS";
    case Reason::kForced: return "asked for by pml_coop_protocol";
    case Reason::kForcedUnavailable: return "the transport cannot do what pml_coop_protocol asks for";
    case Reason::kReceiverReads: return "the receiver reads the send buffer";
    case Reason::kNoGet: return "the transport puts but does not get";
    case Reason::kNoRdma: return "the transport has no RDMA";
    case Reason::kBelowRdmaMin: return "below pml_coop_rdma_min";
    case Reason::kSenderPieces: return "the send buffer is not contiguous";
    case Reason::kReceiverPieces: return "the receive buffer is not contiguous";
    case Reason::kStripedOverTransports: return "fragments over all transports beat RDMA over one";
    case Reason::kGetRefused: return "the transport refused to get";
    case Reason::kRdmaRefused: return "the transport refused RDMA";
    case Reason::kNothingLeft: return "everything came along with the RTS";
    }
    return "unknown";
}

std::string describe(const Choice& choice, const Situation& s) {
    std::string sentence = std::to_string(s.bytes) + " bytes go by " + name(choice.row) + ": " + text(choice.reason);
    switch (choice.reason) {
    case Reason::kFitsEager:
    case Reason::kSynchronousFitsInline:
        sentence += " of " + std::to_string(s.eager_limit) + " bytes";
        break;
    case Reason::kBelowRdmaMin:
        sentence += " of " + std::to_string(s.rdma_min) + " bytes";
        break;
    case Reason::kStripedOverTransports:
        sentence += " that has " + std::to_string(static_cast<int>(s.rdma_share * 100)) + " % of the bandwidth";
        break;
    case Reason::kForced:
    case Reason::kForcedUnavailable:
    case Reason::kReceiverReads:
    case Reason::kNoGet:
    case Reason::kNoRdma:
    case Reason::kSenderPieces:
    case Reason::kReceiverPieces:
    case Reason::kGetRefused:
    case Reason::kRdmaRefused:
    case Reason::kNothingLeft:
        break;
    }
    return sentence;
}

}  // namespace coop::rndv
