// SPDX-License-Identifier: BSD-3-Clause
//
// The life of one rail after its channel is connected: how it is taken out of service when something fails, and
// how it comes back. Both sides run this machine for each rail. It needs no order between the sides: both may
// start at once, and any datagram may be lost, repeated or late.
//
// A life has generations. The queue pairs that the connection made are generation 1; each recovery makes new ones,
// of the next generation. A datagram names the generation that it is about.
//
// Closing takes four steps, because a write that the network still holds could otherwise land in memory that is
// used for something else by then:
//
//     1. the own queue pair goes to the error state: nothing is executed for the peer over it any more
//     2. drained: every own request has come back, executed or not
//     3. CLOSED tells the peer that 1 and 2 are done here; DOWN tells it before that to do the same
//     4. the peer's CLOSED arrives: no request of this side can be executed any more
//
// Reads and sends may be repeated over other rails after step 2: a read has no effect at the peer, and messages
// have numbers. Writes may be repeated only after step 4.
//
// A closed rail is connected again by path/connect.h, as the first time (`Do::kReopen`). Then it is suspect for a
// while: used only if no other rail is there. Pauses before attempts grow while attempts fail, and the time as a
// suspect grows while the rail fails soon after each recovery; neither ever ends the attempts.
//
// A rail that did not open when the two processes connected begins its life as a closed one, on both sides. Attempts to
// open it are rarer: perhaps there is no cable between the two ports.
//
// Source: dissertation 10.3; the four steps are ours. Time: nanoseconds of any steady clock. Threading: the
// owner's lock. Ownership: values only. Errors: none; an event that does not fit changes nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "coop/base/export.h"

namespace coop::path {

enum class LifeState : std::uint8_t {
    kUp,         // carries data
    kSuspect,    // carries data if no other rail does; came back a short time ago
    kClosing,    // the own queue pair is in error and not drained yet
    kDown,       // drained; waits for the peer's CLOSED, then for the next attempt
    kReopening,  // an attempt is under way to connect the next generation
};
constexpr std::size_t kLifeStates = 5;
COOP_EXPORT const char* name(LifeState state) noexcept;

enum class LifeEvent : std::uint8_t {
    kTrouble,      // a request, the queue pair, the port or the HCA has failed here
    kDrained,      // every request of this side has come back
    kPeerDown,     // DOWN of a generation
    kPeerClosed,   // CLOSED of a generation
    kPeerAsks,     // the peer's REQUEST to connect a generation
    kEstablished,  // the attempt has succeeded
    kGivenUp,      // the attempt has failed
    kPortDown,     // the own port of the rail is down
    kPortActive,   // it works again
    kTick,         // next_tick() is due
};
constexpr std::size_t kLifeEvents = 10;
COOP_EXPORT const char* name(LifeEvent event) noexcept;

enum class LifeDo : std::uint8_t {
    kStop,        // bring the queue pair to the error state and drain it; then on(kDrained). No new requests
    kDestroy,     // it is not drained in time: destroy it, so that nothing comes back any more
    kRepeatSafe,  // repeat sends and reads that did not complete over other rails
    kRepeatAll,   // repeat the rest, and messages that the peer's process has not acknowledged. Also if the rail
                  // has never opened; then there may be no queue pair
    kSendDown,    // send DOWN of generation()
    kSendClosed,  // send CLOSED of generation()
    kReopen,      // begin an attempt to connect generation() + 1; then on(kEstablished) or on(kGivenUp)
    kAbandon,     // end the attempt; its queue pairs go to the error state before anything is sent
    kUse,         // the rail carries data again
    kTrust,       // it is no longer suspect
};

class LifeActions {
public:
    LifeActions& add(LifeDo action) noexcept {
        list_[count_++] = action;
        return *this;
    }
    const LifeDo* begin() const noexcept { return list_.data(); }
    const LifeDo* end() const noexcept { return list_.data() + count_; }
    std::size_t size() const noexcept { return count_; }
    bool has(LifeDo action) const noexcept {
        for (const LifeDo each : *this)
            if (each == action) return true;
        return false;
    }

private:
    std::array<LifeDo, 6> list_{};
    std::size_t count_ = 0;
};

struct LifePatience {
    std::uint64_t first = 1'000'000;      // until DOWN or CLOSED is repeated; doubles with each repetition
    std::uint64_t longest = 100'000'000;  // between two repetitions
    std::uint64_t drain = 1'000'000'000;  // until a queue pair that does not drain is destroyed
    std::uint64_t retry = 10'000'000;     // before the first attempt; doubles with each that fails
    std::uint64_t longest_retry = 4'000'000'000;
    std::uint32_t first_unopened = 6;                 // a rail that has never opened counts as having failed so often
    std::uint64_t longest_unopened = 60'000'000'000;  // between attempts to open it
    std::uint64_t hold = 100'000'000;                 // time as a suspect; doubles with each early failure
    std::uint64_t longest_hold = 60'000'000'000;
    std::uint64_t calm = 10'000'000'000;  // without a failure until earlier ones no longer count
};

inline constexpr LifePatience kLifePatience;

class RailLife {
public:
    // `hold`: instead of LifePatience::hold.
    explicit RailLife(std::uint64_t hold = kLifePatience.hold) noexcept : hold_(hold) {}

    // The life of a rail that did not open when the two processes connected.
    COOP_EXPORT static RailLife of_unopened(std::uint64_t hold, std::uint64_t now) noexcept;

    // `generation`: of kPeerDown, kPeerClosed and kPeerAsks. `wants_answer`: of kPeerClosed, the peer does not know
    // yet that this side is closed.
    [[nodiscard]] COOP_EXPORT LifeActions on(LifeEvent event, std::uint64_t now, std::uint32_t generation = 0,
                                             bool wants_answer = false) noexcept;

    LifeState state() const noexcept { return state_; }
    std::uint32_t generation() const noexcept { return generation_; }
    bool carries_data() const noexcept { return state_ == LifeState::kUp || state_ == LifeState::kSuspect; }
    // Whether the peer has closed this generation. Valid while the rail does not carry data.
    bool peer_closed() const noexcept { return peer_closed_; }
    // For a test: leaves out the rule about writes, so that the test that looks for its violation must find one.
    void repeat_early_for_test() noexcept { repeats_early_ = true; }

    std::optional<std::uint64_t> next_tick() const noexcept {
        return next_ == kNever ? std::nullopt : std::optional(next_);
    }

private:
    static constexpr std::uint64_t kNever = UINT64_MAX;

    LifeActions on_trouble(std::uint64_t now) noexcept;
    LifeActions on_drained(std::uint64_t now, LifeActions actions) noexcept;
    LifeActions on_peer_down(std::uint64_t now, std::uint32_t generation) noexcept;
    LifeActions on_peer_closed(std::uint64_t now, std::uint32_t generation, bool wants_answer) noexcept;
    LifeActions on_peer_asks(std::uint64_t now, std::uint32_t generation) noexcept;
    LifeActions on_established(std::uint64_t now) noexcept;
    LifeActions on_given_up(std::uint64_t now) noexcept;
    LifeActions on_port_down(std::uint64_t now) noexcept;
    LifeActions on_port_active(std::uint64_t now) noexcept;
    LifeActions on_tick(std::uint64_t now) noexcept;

    LifeActions close(std::uint64_t now, bool peer_closed) noexcept;
    LifeActions learn_peer_closed(std::uint64_t now) noexcept;
    LifeActions skip_a_generation(std::uint64_t now, bool peer_closed) noexcept;
    LifeActions repeat(std::uint64_t now, LifeDo what) noexcept;
    LifeActions reopen() noexcept;
    void wait(std::uint64_t now, std::uint64_t pause) noexcept;
    std::uint64_t pause_before_attempt(std::uint32_t failures) const noexcept;
    bool concerns_attempt(std::uint32_t generation) const noexcept { return generation == generation_ + 1; }

    std::uint64_t hold_;
    LifeState state_ = LifeState::kUp;
    bool peer_closed_ = false;  // valid unless it carries data
    bool repeats_early_ = false;
    bool opened_ = true;      // it has carried data
    bool port_down_ = false;  // as far as events tell; attempts are rare
    std::uint32_t generation_ = 1;
    std::uint32_t failed_attempts_ = 0;  // since the rail carried data
    std::uint32_t early_failures_ = 0;   // in a row
    std::uint64_t used_since_ = 0;       // when it came back last
    std::uint64_t drain_until_ = 0;      // valid in kClosing
    std::uint64_t pause_ = 0;            // current interval between repetitions
    std::uint64_t next_ = kNever;        // when the next tick is due
};

}  // namespace coop::path
