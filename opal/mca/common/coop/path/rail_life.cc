// SPDX-License-Identifier: BSD-3-Clause
//
//                                   trouble, or the peer's DOWN, CLOSED or REQUEST
//            kUp ----------------------------------------------------------------+
//             ^ time                     the same                                |
//             +---------- kSuspect --------------------------------------------->+
//                            ^                                                   v
//                            | established                                   kClosing
//                            |                                                   | drained, or time
//                        kReopening <---- peer closed, then time or REQUEST -- kDown
//                            |                                                   ^
//                            +-- given up, or the peer has closed the attempt ---+
//
// kClosing repeats DOWN and kDown repeats CLOSED until the peer's CLOSED arrives. kDown and kReopening answer a
// CLOSED of a peer that does not know of ours.
//
// If only the peer's half of an attempt was established, and has failed since, its DOWN or CLOSED names the
// generation of the attempt. Then that generation counts as used here, too, and closed (skip_a_generation()).
#include "coop/path/rail_life.h"

#include <algorithm>

namespace coop::path {
namespace {

std::uint64_t doubled(std::uint64_t value, std::uint32_t times, std::uint64_t most) noexcept {
    return times >= 32 ? most : std::min(value << times, most);
}

}  // namespace

const char* name(LifeState state) noexcept {
    switch (state) {
    case LifeState::kUp: return "up";
    case LifeState::kSuspect: return "suspect";
    case LifeState::kClosing: return "closing";
    case LifeState::kDown: return "down";
    case LifeState::kReopening: return "reopening";
    }
    return "?";
}

const char* name(LifeEvent event) noexcept {
    switch (event) {
    case LifeEvent::kTrouble: return "trouble";
    case LifeEvent::kDrained: return "drained";
    case LifeEvent::kPeerDown: return "peer down";
    case LifeEvent::kPeerClosed: return "peer closed";
    case LifeEvent::kPeerAsks: return "peer asks";
    case LifeEvent::kEstablished: return "established";
    case LifeEvent::kGivenUp: return "given up";
    case LifeEvent::kPortDown: return "port down";
    case LifeEvent::kPortActive: return "port active";
    case LifeEvent::kTick: return "tick";
    }
    return "?";
}

RailLife RailLife::of_unopened(std::uint64_t hold, std::uint64_t now) noexcept {
    RailLife life(hold);
    life.state_ = LifeState::kDown;
    life.peer_closed_ = true;
    life.opened_ = false;
    life.failed_attempts_ = kLifePatience.first_unopened;
    life.wait(now, life.pause_before_attempt(life.failed_attempts_));
    return life;
}

LifeActions RailLife::on(LifeEvent event, std::uint64_t now, std::uint32_t generation, bool wants_answer) noexcept {
    switch (event) {
    case LifeEvent::kTrouble: return on_trouble(now);
    case LifeEvent::kDrained: return state_ == LifeState::kClosing ? on_drained(now, {}) : LifeActions();
    case LifeEvent::kPeerDown: return on_peer_down(now, generation);
    case LifeEvent::kPeerClosed: return on_peer_closed(now, generation, wants_answer);
    case LifeEvent::kPeerAsks: return on_peer_asks(now, generation);
    case LifeEvent::kEstablished: return on_established(now);
    case LifeEvent::kGivenUp: return on_given_up(now);
    case LifeEvent::kPortDown: return on_port_down(now);
    case LifeEvent::kPortActive: return on_port_active(now);
    case LifeEvent::kTick: return on_tick(now);
    }
    return {};
}

// --- events ---------------------------------------------------------------------------------------------------------

LifeActions RailLife::on_trouble(std::uint64_t now) noexcept {
    switch (state_) {
    case LifeState::kUp:
    case LifeState::kSuspect: return close(now, false).add(LifeDo::kSendDown);
    case LifeState::kClosing:
    case LifeState::kDown:
    case LifeState::kReopening: break;  // an attempt that cannot succeed gives up by itself
    }
    return {};
}

LifeActions RailLife::on_drained(std::uint64_t now, LifeActions actions) noexcept {
    state_ = LifeState::kDown;
    actions.add(LifeDo::kRepeatSafe);
    if (repeats_early_ && !peer_closed_) actions.add(LifeDo::kRepeatAll);
    if (peer_closed_) {
        actions.add(LifeDo::kRepeatAll);
        wait(now, pause_before_attempt(failed_attempts_));
    } else {
        wait(now, kLifePatience.first);
    }
    return actions.add(LifeDo::kSendClosed);
}

LifeActions RailLife::on_peer_down(std::uint64_t now, std::uint32_t generation) noexcept {
    switch (state_) {
    case LifeState::kUp:
    case LifeState::kSuspect: return generation == generation_ ? close(now, false) : LifeActions();
    case LifeState::kClosing: break;
    case LifeState::kDown:
        if (concerns_attempt(generation)) return skip_a_generation(now, false).add(LifeDo::kSendClosed);
        if (generation == generation_) return LifeActions().add(LifeDo::kSendClosed);
        break;
    case LifeState::kReopening:
        if (concerns_attempt(generation)) {
            LifeActions actions;
            actions.add(LifeDo::kAbandon);
            static_cast<void>(skip_a_generation(now, false));
            return actions.add(LifeDo::kSendClosed);
        }
        if (generation == generation_) return LifeActions().add(LifeDo::kSendClosed);
        break;
    }
    return {};
}

LifeActions RailLife::on_peer_closed(std::uint64_t now, std::uint32_t generation, bool wants_answer) noexcept {
    switch (state_) {
    case LifeState::kUp:
    case LifeState::kSuspect: return generation == generation_ ? close(now, true) : LifeActions();
    case LifeState::kClosing:
        if (generation == generation_) peer_closed_ = true;
        return {};
    case LifeState::kDown:
        if (concerns_attempt(generation)) {
            LifeActions actions = skip_a_generation(now, true);
            return wants_answer ? actions.add(LifeDo::kSendClosed) : actions;
        }
        if (generation == generation_) {
            LifeActions actions = learn_peer_closed(now);
            return wants_answer ? actions.add(LifeDo::kSendClosed) : actions;
        }
        return {};
    case LifeState::kReopening:
        if (concerns_attempt(generation)) {
            LifeActions actions;
            actions.add(LifeDo::kAbandon);
            static_cast<void>(skip_a_generation(now, true));
            return wants_answer ? actions.add(LifeDo::kSendClosed) : actions;
        }
        if (generation == generation_ && wants_answer) return LifeActions().add(LifeDo::kSendClosed);
        return {};
    }
    return {};
}

// The peer asks only after both sides have closed the generation before. If its CLOSED was lost, it has to come again:
// what this side repeats depends on what it says.
LifeActions RailLife::on_peer_asks(std::uint64_t now, std::uint32_t generation) noexcept {
    if (!concerns_attempt(generation)) return {};
    switch (state_) {
    case LifeState::kUp:
    case LifeState::kSuspect: return close(now, false).add(LifeDo::kSendDown);
    case LifeState::kClosing: return {};
    case LifeState::kDown:
        if (!peer_closed_) return LifeActions().add(LifeDo::kSendClosed);
        if (port_down_) return {};  // an attempt would fail, and could not be repeated at once
        return reopen();
    case LifeState::kReopening: break;  // the attempt handles it
    }
    return {};
}

LifeActions RailLife::on_established(std::uint64_t now) noexcept {
    switch (state_) {
    case LifeState::kReopening:
        ++generation_;
        state_ = LifeState::kSuspect;
        opened_ = true;
        failed_attempts_ = 0;
        used_since_ = now;
        next_ = now + doubled(hold_, early_failures_, kLifePatience.longest_hold);
        return LifeActions().add(LifeDo::kUse);
    case LifeState::kUp:
    case LifeState::kSuspect:
    case LifeState::kClosing:
    case LifeState::kDown: break;
    }
    return {};
}

LifeActions RailLife::on_given_up(std::uint64_t now) noexcept {
    switch (state_) {
    case LifeState::kReopening:
        state_ = LifeState::kDown;
        ++failed_attempts_;
        wait(now, pause_before_attempt(failed_attempts_));
        return {};
    case LifeState::kUp:
    case LifeState::kSuspect:
    case LifeState::kClosing:
    case LifeState::kDown: break;
    }
    return {};
}

LifeActions RailLife::on_port_down(std::uint64_t now) noexcept {
    port_down_ = true;
    return on_trouble(now);
}

LifeActions RailLife::on_port_active(std::uint64_t now) noexcept {
    port_down_ = false;
    switch (state_) {
    case LifeState::kDown:
        failed_attempts_ = 0;
        if (!peer_closed_) return repeat(now, LifeDo::kSendClosed);
        next_ = std::min(next_, now + kLifePatience.retry);
        return {};
    case LifeState::kReopening: failed_attempts_ = 0; return {};
    case LifeState::kUp:
    case LifeState::kSuspect:
    case LifeState::kClosing: break;
    }
    return {};
}

LifeActions RailLife::on_tick(std::uint64_t now) noexcept {
    if (now < next_) return {};
    switch (state_) {
    case LifeState::kUp:
    case LifeState::kReopening: next_ = kNever; return {};
    case LifeState::kSuspect:
        state_ = LifeState::kUp;
        next_ = kNever;
        return LifeActions().add(LifeDo::kTrust);
    case LifeState::kClosing:
        if (now >= drain_until_) return on_drained(now, LifeActions().add(LifeDo::kDestroy));
        if (!peer_closed_) return repeat(now, LifeDo::kSendDown);
        next_ = drain_until_;
        return {};
    case LifeState::kDown:
        if (!peer_closed_) return repeat(now, LifeDo::kSendClosed);
        return reopen();
    }
    return {};
}

// --- steps ----------------------------------------------------------------------------------------------------------

LifeActions RailLife::close(std::uint64_t now, bool peer_closed) noexcept {
    const bool early = now - used_since_ < kLifePatience.calm && generation_ > 1;
    early_failures_ = early ? early_failures_ + 1 : 0;
    state_ = LifeState::kClosing;
    peer_closed_ = peer_closed;
    drain_until_ = now + kLifePatience.drain;
    wait(now, kLifePatience.first);
    return LifeActions().add(LifeDo::kStop);
}

LifeActions RailLife::learn_peer_closed(std::uint64_t now) noexcept {
    if (peer_closed_) return {};
    peer_closed_ = true;
    wait(now, pause_before_attempt(failed_attempts_));
    return LifeActions().add(LifeDo::kRepeatAll);
}

// Whatever waits for the peer's CLOSED of the generation before may go: the peer has closed that, or it could not
// have begun the attempt.
LifeActions RailLife::skip_a_generation(std::uint64_t now, bool peer_closed) noexcept {
    LifeActions actions = learn_peer_closed(now);
    ++generation_;
    ++early_failures_;
    state_ = LifeState::kDown;
    peer_closed_ = peer_closed;
    wait(now, peer_closed ? pause_before_attempt(early_failures_) : kLifePatience.first);
    return actions;
}

LifeActions RailLife::repeat(std::uint64_t now, LifeDo what) noexcept {
    pause_ = std::min(pause_ * 2, kLifePatience.longest);
    next_ = now + pause_;
    if (state_ == LifeState::kClosing) next_ = std::min(next_, drain_until_);
    return LifeActions().add(what);
}

LifeActions RailLife::reopen() noexcept {
    state_ = LifeState::kReopening;
    next_ = kNever;
    return LifeActions().add(LifeDo::kReopen);
}

std::uint64_t RailLife::pause_before_attempt(std::uint32_t failures) const noexcept {
    const std::uint64_t longest = opened_ ? kLifePatience.longest_retry : kLifePatience.longest_unopened;
    return port_down_ ? longest : doubled(kLifePatience.retry, failures, longest);
}

void RailLife::wait(std::uint64_t now, std::uint64_t pause) noexcept {
    pause_ = pause;
    next_ = now + pause;
}

}  // namespace coop::path
