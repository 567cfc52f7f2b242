// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/cooperation.h"

namespace coop::rndv {
namespace {

// Whether a load is smaller than another by at least kClearMessages messages of this length.
constexpr std::uint64_t kClearMessages = 3;
constexpr bool is_clearly_less(std::uint64_t load, std::uint64_t other, std::uint64_t bytes) noexcept {
    return load < other && (other - load) / kClearMessages >= bytes;
}

// Table II of the paper. A buffered send leaves its caller free, so the receiver copies if it waits; the table lets the
// sender copy if the receiver does not wait.
Choice by_calls(const Situation& s) noexcept {
    const bool buffered = s.send_call == SendCall::kBsend;
    if (s.recv_call == RecvCall::kRecv) {
        if (sender_waits(s.send_call)) return {Row::kCoop, Reason::kBothWait};
        return {Row::kRget, Reason::kReceiverWaits};
    }
    if (sender_waits(s.send_call) || buffered) return {Row::kRput, Reason::kSenderWaits};
    return {Row::kCoop, Reason::kNobodyWaits};
}

// The side with clearly less to copy copies. A small difference only shows which side ran on a core recently; following
// it would burden the same side again and again. So at a small difference the side that has copied less takes its turn.
// At equal turns the receiver copies, which saves a packet.
Choice by_load(const Situation& s) noexcept {
    if (is_clearly_less(s.receiver_load, s.sender_load, s.bytes)) return {Row::kRget, Reason::kReceiverLighter};
    if (is_clearly_less(s.sender_load, s.receiver_load, s.bytes)) return {Row::kRput, Reason::kSenderLighter};
    if (s.sender_surplus > 0) return {Row::kRget, Reason::kReceiverTurn};
    if (s.sender_surplus < 0) return {Row::kRput, Reason::kSenderTurn};
    return {Row::kRget, Reason::kEvenLoad};
}

// The sender copies only if the receiver has far more to do: a sender must be asked first, and may not run at that
// moment.
Choice by_clear_load(const Situation& s) noexcept {
    if (s.receiver_load / 2 > s.sender_load + s.bytes) return {Row::kRput, Reason::kSenderLighter};
    return {Row::kRget, s.receiver_load < s.sender_load ? Reason::kReceiverLighter : Reason::kEvenLoad};
}

// Section II-D: the calls decide where they can, the load where they cannot. An idle side helps the one that leads.
// Where both processes send at once, or both have copies to do, no side is idle, and one side copies a whole message,
// which then lies in its cache.
Choice hybrid(const Situation& s) noexcept {
    if (!long_enough_for_two(s)) return {Row::kRget, Reason::kBelowCoopMin};
    if (s.receiver_sends) return by_clear_load(s);
    Choice choice = by_calls(s);
    if (choice.reason == Reason::kNobodyWaits || (s.crowded && choice.row == Row::kCoop)) choice = by_clear_load(s);
    if (s.sender_load > 0 && s.receiver_load > 0) return choice;
    return {Row::kCoop, choice.reason, lead_of(choice.row)};
}

}  // namespace

std::optional<Choice> share_out(const Situation& s) noexcept {
    if (!may_share(s)) return std::nullopt;
    switch (s.wish) {
    case Wish::kHybrid: return hybrid(s);
    case Wish::kCoop: return Choice{Row::kCoop, Reason::kForced};
    case Wish::kCoopFixed: return Choice{Row::kCoop, Reason::kForced, Split::kHalves};
    case Wish::kCoopColl: return by_calls(s);
    case Wish::kCoopLoad: return by_load(s);
    case Wish::kRput: return Choice{Row::kRput, Reason::kForced};
    case Wish::kRget:
    case Wish::kSend: break;
    }
    return std::nullopt;
}

}  // namespace coop::rndv
