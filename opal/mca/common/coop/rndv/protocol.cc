// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/protocol.h"

namespace coop::rndv {
namespace {

// Below this share of the bandwidth, one RDMA transport alone is slower than
// fragments over all transports of the peer.
constexpr double kWorthwhileShare = 0.5;

constexpr bool is_forced(Wish wish) noexcept { return wish == Wish::kRget || wish == Wish::kRput || wish == Wish::kSend; }

constexpr bool sender_waits(SendCall call) noexcept { return call == SendCall::kSend || call == SendCall::kSsend || call == SendCall::kRsend; }

Choice choose_rdma(const Situation& s) noexcept {
    const bool get = s.can_get && !s.get_refused;
    const bool put = s.can_put && !s.put_refused;

    if (s.wish == Wish::kRget && get) return {Row::kRget, Reason::kForced};
    // Without a board the receiver could not take over from a sender that computes. Inside a node it reads, then.
    if (s.wish == Wish::kRput && put && !(s.same_node && get)) return {Row::kRput, Reason::kForced};
    const bool denied = s.wish == Wish::kRget || s.wish == Wish::kRput;

    if (get && !denied) return {Row::kRget, Reason::kReceiverReads};
    if (get) return {Row::kRget, Reason::kForcedUnavailable};
    const bool refused = s.get_refused || s.put_refused;
    if (put) return {Row::kRput, s.get_refused ? Reason::kGetRefused : denied ? Reason::kForcedUnavailable : Reason::kNoGet};
    if (s.kernel_copy_denied) return {Row::kSend, Reason::kNoKernelCopy};
    return {Row::kSend, refused ? Reason::kRdmaRefused : denied ? Reason::kForcedUnavailable : Reason::kNoRdma};
}

// Who waits, by the calls of the two sides: Table II of the paper, with the row
// that it names (the hybrid reads a Split from the reason instead). A buffered
// send leaves its caller free, so the receiver copies if it waits; the table
// lets the sender copy when it does not.
Choice by_calls(const Situation& s) noexcept {
    const bool buffered = s.send_call == SendCall::kBsend;
    if (s.recv_call == RecvCall::kRecv) {
        if (sender_waits(s.send_call)) return {Row::kCoop, Reason::kBothWait};
        return {Row::kRget, Reason::kReceiverWaits};
    }
    if (sender_waits(s.send_call) || buffered) return {Row::kRput, Reason::kSenderWaits};
    return {Row::kCoop, Reason::kNobodyWaits};
}

// The side that has clearly less to copy copies. A smaller difference only tells
// which of the two has been given a core of late, and who copies more then would
// do so again and again. So the one that has copied less so far takes its turn;
// at even terms the receiver, which needs one packet less.
Choice by_load(const Situation& s) noexcept {
    if (is_clearly_less(s.receiver_load, s.sender_load, s.bytes)) return {Row::kRget, Reason::kReceiverLighter};
    if (is_clearly_less(s.sender_load, s.receiver_load, s.bytes)) return {Row::kRput, Reason::kSenderLighter};
    if (s.sender_surplus > 0) return {Row::kRget, Reason::kReceiverTurn};
    if (s.sender_surplus < 0) return {Row::kRput, Reason::kSenderTurn};
    return {Row::kRget, Reason::kEvenLoad};
}

// The same, but not for a small difference: who writes has to be asked first, and
// may not be there (on a crowded node it may not even run).
Choice by_clear_load(const Situation& s) noexcept {
    if (s.receiver_load / 2 > s.sender_load + s.bytes) return {Row::kRput, Reason::kSenderLighter};
    return {Row::kRget, s.receiver_load < s.sender_load ? Reason::kReceiverLighter : Reason::kEvenLoad};
}

// A sender that waits for each message of a row, and needs not: it may fill the
// next one while the receiver empties the last. A message that is answered before
// the next one is sooner there with one copy than with two.
bool bounces(const Situation& s) noexcept {
    return s.one_way && s.wish == Wish::kHybrid && s.can_share && s.send_call == SendCall::kSend && !s.synchronous && s.bytes <= s.bounce_max;
}

// Between nodes: others follow, and the first part of such a message, which comes with the RTS, fills the link until the rest
// does. One that is waited for is sooner there by one read.
constexpr bool is_stream(const Situation& s) noexcept {
    return !s.same_node && (s.can_get || s.can_put) && !sender_waits(s.send_call) && s.bytes < s.isend_rdma_min;
}

constexpr Split lead_of(Row row) noexcept { return row == Row::kRget ? Split::kReceiverLeads : row == Row::kRput ? Split::kSenderLeads : Split::kBoth; }

// Section II-D: the calls decide where they can, the load where they cannot. A
// side that idles helps the one that leads. Where both ends send at once, or both
// have copies to do, nobody idles, and whole messages are copied by one side (its
// cache then has all of it).
Choice hybrid(const Situation& s) noexcept {
    if (!long_enough_for_two(s)) return {Row::kRget, Reason::kBelowCoopMin};
    if (s.receiver_sends) return by_clear_load(s);
    Choice choice = by_calls(s);
    if (choice.reason == Reason::kNobodyWaits || (s.crowded && choice.row == Row::kCoop)) choice = by_clear_load(s);
    if (s.sender_load > 0 && s.receiver_load > 0) return choice;
    return {Row::kCoop, choice.reason, lead_of(choice.row)};
}

Choice choose_cooperative(const Situation& s) noexcept {
    Choice choice{Row::kCoop, Reason::kForced};
    switch (s.wish) {
    case Wish::kHybrid: choice = hybrid(s); break;
    case Wish::kCoop: break;
    case Wish::kCoopFixed: choice.split = Split::kHalves; break;
    case Wish::kCoopColl: choice = by_calls(s); break;
    case Wish::kCoopLoad: choice = by_load(s); break;
    case Wish::kRput: choice.row = Row::kRput; break;
    case Wish::kRget:
    case Wish::kSend: break;
    }
    if (s.offered && s.wish != Wish::kRput) return {Row::kRtr, Reason::kOffered, choice.row == Row::kCoop ? choice.split : lead_of(choice.row)};
    if (choice.row == Row::kRput) choice.split = Split::kSenderLeads;
    if (is_shared(choice) && !s.slot_free) return {Row::kRget, Reason::kNoSlot};
    return choice;
}

}  // namespace

Choice choose(const Situation& s) noexcept {
    if (s.bytes <= s.eager_limit)
        return {Row::kEager, s.synchronous ? Reason::kSynchronousFitsInline : Reason::kFitsEager};
    if (bounces(s)) return {Row::kBounce, Reason::kOneWay};
    const bool contiguous = s.sender_contiguous && s.receiver_contiguous;
    if (!contiguous && !s.large_pieces) return {Row::kSend, s.sender_contiguous ? Reason::kReceiverPieces : Reason::kSenderPieces};
    if (s.wish == Wish::kSend) return {Row::kSend, Reason::kForced};
    if (!is_forced(s.wish)) {
        if (s.bytes < s.rdma_min) return {Row::kSend, Reason::kBelowRdmaMin};
        if (is_stream(s)) return {Row::kSend, Reason::kNotAwaited};
        if ((s.can_get || s.can_put) && s.rdma_share < kWorthwhileShare) return {Row::kSend, Reason::kStripedOverTransports};
    }
    if (s.wish != Wish::kRget && s.can_share && !s.get_refused && !s.put_refused) return choose_cooperative(s);
    return choose_rdma(s);
}

bool wants_offer(const Situation& s) noexcept {
    if (!s.can_share || !s.sender_contiguous || !long_enough_for_two(s) || s.get_refused || s.put_refused) return false;
    if (s.wish != Wish::kHybrid && !(s.wish == Wish::kCoopColl && s.send_call == SendCall::kRsend)) return false;
    const Row row = choose(s).row;
    return row == Row::kCoop || row == Row::kRget || row == Row::kRput;
}

Shares shares(const Choice& choice, std::uint64_t bytes) noexcept {
    switch (choice.row) {
    case Row::kEager:
    case Row::kBounce:
    case Row::kSend: return {};
    case Row::kRput: return {bytes, 0};
    case Row::kRget: return {0, bytes};
    case Row::kCoop:
    case Row::kRtr: break;
    }
    switch (choice.split) {
    case Split::kReceiverLeads: return {0, bytes};
    case Split::kSenderLeads: return {bytes, 0};
    case Split::kBoth:
    case Split::kHalves: break;
    }
    return {bytes / 2, bytes - bytes / 2};
}

const char* name(Row row) noexcept {
    switch (row) {
    case Row::kEager: return "eager";
    case Row::kSend: return "send";
    case Row::kRput: return "rput";
    case Row::kRget: return "rget";
    case Row::kCoop: return "coop";
    case Row::kRtr: return "rtr";
    case Row::kBounce: return "bounce";
    }
    return "unknown";
}

const char* text(Reason reason) noexcept {
    switch (reason) {
    case Reason::kFitsEager: return "fits the eager limit";
    case Reason::kSynchronousFitsInline: return "synchronous, fits beside the RTS";
    case Reason::kForced: return "asked for";
    case Reason::kForcedUnavailable: return "what is asked for cannot be done here";
    case Reason::kReceiverReads: return "the receiver reads the send buffer";
    case Reason::kNoGet: return "the transport puts but does not get";
    case Reason::kNoRdma: return "the transport has no RDMA";
    case Reason::kBelowRdmaMin: return "below pml_coop_rdma_min";
    case Reason::kNotAwaited: return "nobody waits, and it is below pml_coop_isend_rdma_min";
    case Reason::kSenderPieces: return "the send buffer is not contiguous";
    case Reason::kReceiverPieces: return "the receive buffer is not contiguous";
    case Reason::kStripedOverTransports: return "fragments over all transports beat RDMA over one";
    case Reason::kGetRefused: return "the transport refused to get";
    case Reason::kRdmaRefused: return "the transport refused RDMA";
    case Reason::kNothingLeft: return "everything came along with the RTS";
    case Reason::kBothWait: return "both sides wait: both copy";
    case Reason::kSenderWaits: return "the sender waits, the receiver may compute";
    case Reason::kReceiverWaits: return "the receiver waits, the sender may compute";
    case Reason::kNobodyWaits: return "both sides may compute: who has time copies";
    case Reason::kReceiverLighter: return "the receiver has less to copy";
    case Reason::kSenderLighter: return "the sender has less to copy";
    case Reason::kEvenLoad: return "neither side has clearly less to copy";
    case Reason::kBelowCoopMin: return "below pml_coop_coop_min";
    case Reason::kOffered: return "the receive was offered to the sender";
    case Reason::kNoKernelCopy: return "the kernel denies copies between the two";
    case Reason::kNoSlot: return "no slot for a cooperative copy is free, or no room for the grant";
    case Reason::kReceiverTurn: return "about as much to copy, and the receiver has copied less so far";
    case Reason::kSenderTurn: return "about as much to copy, and the sender has copied less so far";
    case Reason::kOneWay: return "blocking sends in a row, with no message back";
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
    case Reason::kNotAwaited:
        sentence += " of " + std::to_string(s.isend_rdma_min) + " bytes";
        break;
    case Reason::kBelowCoopMin:
        sentence += " of " + std::to_string(s.coop_min) + " bytes";
        break;
    case Reason::kStripedOverTransports:
        sentence += " that has " + std::to_string(static_cast<int>(s.rdma_share * 100)) + " % of the bandwidth";
        break;
    case Reason::kReceiverLighter:
    case Reason::kSenderLighter:
    case Reason::kEvenLoad:
    case Reason::kReceiverTurn:
    case Reason::kSenderTurn:
        sentence += " (sender " + std::to_string(s.sender_load) + " bytes, receiver " + std::to_string(s.receiver_load) + " bytes)";
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
    case Reason::kBothWait:
    case Reason::kSenderWaits:
    case Reason::kReceiverWaits:
    case Reason::kNobodyWaits:
    case Reason::kOneWay:
    case Reason::kOffered:
    case Reason::kNoKernelCopy:
    case Reason::kNoSlot:
        break;
    }
    return sentence;
}

}  // namespace coop::rndv
