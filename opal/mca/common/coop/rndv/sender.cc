// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/sender.h"

#include "coop/rndv/protocol.h"

namespace coop::rndv {

const char* name(SendStep step) noexcept {
    switch (step) {
    case SendStep::kStart: return "start";
    case SendStep::kAnswer: return "answer";
    case SendStep::kFragments: return "fragments";
    case SendStep::kPut: return "put";
    case SendStep::kFin: return "fin";
    case SendStep::kCopy: return "copy";
    case SendStep::kDrain: return "drain";
    case SendStep::kOver: return "over";
    }
    return "unknown";
}

void Sender::start() noexcept {
    step_.store(SendStep::kStart, std::memory_order_relaxed);
    answered_.store(false, std::memory_order_relaxed);
    fall_back_.store(false, std::memory_order_relaxed);
    all_read_ = false;
    fins_.store(0, std::memory_order_relaxed);
    fins_due_.store(0, std::memory_order_relaxed);
    at_ = end_ = put_bytes_ = 0;
}

SendStep Sender::granted_step() const noexcept {
    if (all_read_ || at_ == end_) return SendStep::kDrain;
    switch (protocol(choice_.row).mover(choice_)) {
    case Mover::kBoth: return SendStep::kCopy;
    case Mover::kSender: return SendStep::kPut;
    case Mover::kPackets:
    case Mover::kReceiver: break;
    }
    return SendStep::kFragments;
}

SendDo Sender::next(bool packets_in_flight) noexcept {
    for (;;) switch (step_.load(std::memory_order_relaxed)) {
        case SendStep::kStart: return SendDo::kStart;
        case SendStep::kAnswer:
            if (!is_answered()) return SendDo::kWait;
            go(granted_step());
            break;
        case SendStep::kFragments:
            if (at_ < end_) return SendDo::kSendFragments;
            go(SendStep::kDrain);
            break;
        case SendStep::kPut: return SendDo::kPut;
        case SendStep::kFin: return SendDo::kSendFin;
        case SendStep::kCopy:
            if (!fall_back_.load(std::memory_order_acquire)) return SendDo::kCopy;
            go(SendStep::kFragments);
            break;
        case SendStep::kDrain:
            if (packets_in_flight) return SendDo::kWait;
            go(SendStep::kOver);
            return SendDo::kEnd;
        case SendStep::kOver: return SendDo::kWait;
        }
}

// --- outcomes ------------------------------------------------------------------------------------------------------

bool Sender::eager_out() noexcept {
    if (!is(SendStep::kStart)) return false;
    go(SendStep::kDrain);
    return true;
}

bool Sender::rts_out(const Choice& offer) noexcept {
    if (!is(SendStep::kStart)) return false;
    choice_ = offer;
    go(protocol(offer.row).starts_at_once ? SendStep::kCopy : SendStep::kAnswer);
    return true;
}

bool Sender::rts_refused() noexcept {
    if (is_answered() || !(is(SendStep::kAnswer) || is(SendStep::kCopy))) return false;
    go(SendStep::kStart);
    return true;
}

bool Sender::fragment_out(std::uint64_t bytes) noexcept {
    if (!is(SendStep::kFragments) || bytes > end_ - at_) return false;
    at_ += bytes;
    return true;
}

bool Sender::fragment_refused(std::uint64_t bytes) noexcept {
    if (!is(SendStep::kFragments) || bytes > at_) return false;
    at_ -= bytes;
    return true;
}

bool Sender::put_done(std::uint64_t to) noexcept {
    if (!is(SendStep::kPut) || to < at_ || to > end_) return false;
    put_bytes_ = to - at_;
    at_ = to;
    if (put_bytes_ == 0) choice_ = {Row::kSend, Reason::kRdmaRefused};
    go(put_bytes_ == 0 ? SendStep::kFragments : SendStep::kFin);
    return true;
}

bool Sender::fin_out() noexcept {
    if (!is(SendStep::kFin)) return false;
    go(SendStep::kFragments);  // of what could not be put, often nothing
    return true;
}

bool Sender::copied() noexcept {
    if (!is(SendStep::kCopy)) return false;
    go(SendStep::kDrain);
    return true;
}

// --- answers -------------------------------------------------------------------------------------------------------

bool Sender::takes_grant(Row row, bool copy_is_stuck) const noexcept {
    if (step() == SendStep::kAnswer) return !is_answered();
    return step() == SendStep::kCopy && row == Row::kSend && copy_is_stuck &&
           !fall_back_.load(std::memory_order_acquire);
}

bool Sender::on_grant(const Grant& grant) noexcept {
    const bool instead = step() == SendStep::kCopy;  // of a copy that is stuck
    if (!takes_grant(grant.choice.row, instead)) return false;
    choice_ = grant.choice;
    at_ = grant.offset;
    end_ = grant.offset + grant.length;
    if (instead) fall_back_.store(true, std::memory_order_release);
    answered_.store(true, std::memory_order_release);
    return true;
}

bool Sender::takes_fin() const noexcept { return step() == SendStep::kAnswer && !is_answered(); }

FinTaken Sender::on_fin(const Choice& choice, std::uint32_t parts) noexcept {
    if (!takes_fin()) return FinTaken::kRefused;
    if (parts == 1 && fins_due() == 0) {
        // The only FIN of the message, as of most: nothing has to be counted. If the peer sends another one, it is refused,
        // because the message is answered; or, if that comes at the same time, it says nothing else.
        fins_due_.store(1, std::memory_order_relaxed);
        return take_last_fin(choice);
    }
    std::uint32_t due = 0;
    if (!fins_due_.compare_exchange_strong(due, parts, std::memory_order_relaxed) && due != parts)
        return FinTaken::kRefused;
    if (fins_.fetch_add(1, std::memory_order_acq_rel) + 1 < parts) return FinTaken::kAwaitsOthers;
    return take_last_fin(choice);
}

FinTaken Sender::take_last_fin(const Choice& choice) noexcept {
    choice_ = choice;
    all_read_ = true;
    answered_.store(true, std::memory_order_release);
    return FinTaken::kComplete;
}

}  // namespace coop::rndv
