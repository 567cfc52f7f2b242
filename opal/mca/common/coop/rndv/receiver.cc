// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rndv/receiver.h"

namespace coop::rndv {

const char* name(RecvStep step) noexcept {
    switch (step) {
    case RecvStep::kPosted: return "posted";
    case RecvStep::kPrepare: return "prepare";
    case RecvStep::kGrant: return "grant";
    case RecvStep::kLanding: return "landing";
    case RecvStep::kGet: return "get";
    case RecvStep::kFin: return "fin";
    case RecvStep::kCopy: return "copy";
    case RecvStep::kOver: return "over";
    }
    return "unknown";
}

bool Receiver::on_rts(const Choice& offer, const Situation& situation, std::uint64_t wanted,
                      std::uint64_t inline_bytes) noexcept {
    if (!is(RecvStep::kPosted)) return false;
    ended_ = false;
    choice_ = offer;
    situation_ = situation;
    wanted_ = wanted;
    from_ = inline_bytes;
    landed_.store(inline_bytes, std::memory_order_relaxed);
    if (protocol(offer.row).starts_at_once) go(RecvStep::kCopy);
    else choose_from(inline_bytes);
    return true;
}

// The row for everything from byte `from` on, with both sides known.
void Receiver::choose_from(std::uint64_t from) noexcept {
    from_ = from;
    if (from >= wanted_) {
        if (protocol(choice_.row).payload != Inline::kWhole) choice_.reason = Reason::kNothingLeft;
        if (is_shared(choice_)) choice_.row = Row::kRget;  // nothing is left to copy together
        return go(RecvStep::kGrant);
    }
    const Choice choice = choose(situation_);
    // If both sides chose the same kind of fragments, keep the sender's reason.
    if (choice.row != choice_.row || protocol(choice.row).mover(choice) != Mover::kPackets) choice_ = choice;
    go(protocol(choice.row).mover(choice) == Mover::kPackets ? RecvStep::kGrant : RecvStep::kPrepare);
}

RecvDo Receiver::next() noexcept {
    switch (step_.load(std::memory_order_relaxed)) {
    case RecvStep::kPosted: return RecvDo::kWait;
    case RecvStep::kPrepare: return RecvDo::kPrepare;
    case RecvStep::kGrant: return RecvDo::kGrant;
    case RecvStep::kLanding:
        if (landed() < wanted_) return RecvDo::kWait;
        go(RecvStep::kOver);
        break;
    case RecvStep::kGet: return RecvDo::kGet;
    case RecvStep::kFin: return RecvDo::kSendFin;
    case RecvStep::kCopy: return RecvDo::kCopy;
    case RecvStep::kOver: break;
    }
    if (ended_) return RecvDo::kWait;
    ended_ = true;
    return RecvDo::kEnd;
}

// --- outcomes ------------------------------------------------------------------------------------------------------

bool Receiver::prepared() noexcept {
    if (!is(RecvStep::kPrepare)) return false;
    go(protocol(choice_.row).mover(choice_) == Mover::kReceiver ? RecvStep::kGet : RecvStep::kGrant);
    return true;
}

bool Receiver::lacks(Lack lack) noexcept {
    if (!is(RecvStep::kPrepare)) return false;
    protocol(choice_.row).abort(situation_, lack);
    choose_from(from_);
    return true;
}

bool Receiver::granting() noexcept {
    if (!is(RecvStep::kGrant)) return false;
    go(is_shared(choice_) ? RecvStep::kCopy : RecvStep::kLanding);
    return true;
}

// If the transport has no room for the grant of a cooperative copy, the receiver chooses again, as if no slot were
// free: usually rget, because a sender that computes makes no room, and a read needs no packet to the sender before the
// data has arrived. Any other grant is repeated.
bool Receiver::grant_refused() noexcept {
    if (is(RecvStep::kCopy)) {
        protocol(choice_.row).abort(situation_, Lack::kSlot);
        choose_from(from_);
        return true;
    }
    if (!is(RecvStep::kLanding)) return false;
    go(RecvStep::kGrant);
    return true;
}

bool Receiver::read_to(std::uint64_t to, bool fin_follows) noexcept {
    if (!is(RecvStep::kGet) || to < from_ || to > wanted_) return false;
    landed_.store(to, std::memory_order_relaxed);
    if (to == wanted_) {
        go(fin_follows ? RecvStep::kOver : RecvStep::kFin);
    } else {
        protocol(choice_.row).abort(situation_, Lack::kMemory);
        choose_from(to);
    }
    return true;
}

bool Receiver::fin_out() noexcept {
    if (!is(RecvStep::kFin)) return false;
    go(RecvStep::kOver);
    return true;
}

bool Receiver::copied() noexcept {
    if (!is(RecvStep::kCopy)) return false;
    landed_.store(wanted_, std::memory_order_relaxed);
    go(RecvStep::kOver);
    return true;
}

bool Receiver::stuck(std::uint64_t from) noexcept {
    if (!is(RecvStep::kCopy)) return false;
    choice_ = {Row::kSend, Reason::kRdmaRefused};
    from_ = from;
    go(RecvStep::kGrant);
    return true;
}

// --- bytes ---------------------------------------------------------------------------------------------------------

bool Receiver::on_bytes(std::uint64_t bytes) noexcept {
    return takes_bytes() && landed_.fetch_add(bytes, std::memory_order_acq_rel) + bytes <= wanted_;
}

}  // namespace coop::rndv
