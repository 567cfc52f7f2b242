// SPDX-License-Identifier: BSD-3-Clause
//
// Whether medium messages whose sender waits go to a process on another node in one packet, which both processes copy,
// or after a handshake, which copies nothing. Which of them is faster depends on the link, on how fast both processes
// copy, and on what the application does meanwhile. So the first messages of a length go one way and the next ones the other way, both are
// timed, and the faster way is used. From time to time this is repeated:
//
//     kBefore ──block over──► kOther ──block over: the other way is used if it is faster by a sixteenth──► kRest
//        ▲                       │                                                                        ▲ │
//        │                       └──first part slower by a quarter: the way stays───────────────────────────┘ │
//        └────────────────────────────────────── rest over ─────────────────────────────────────────────────┘
//
// A rest is twice as long as the last one, unless the way has changed.
//
// The time of a block is the median of the times of its parts, from the start of one message to the start of another,
// so it includes what the application does between them. If the application needs most of the time, the two ways differ
// by less than a sixteenth, and nothing changes. The first part does not count: after a change, room that was left in
// buffers makes the first messages faster. So if even the first part is slower by a quarter, the other way is slower,
// and no more messages need to go that way. (An interruption can look the same; the next trial corrects that.)
//
// Not from the papers. Units: nanoseconds of any monotonic clock, messages. Threading: none; the caller holds a lock.
// Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace coop::rndv {

class PacketTrial {
public:
    static constexpr std::uint32_t kParts = 5;                               // timed parts of a block
    static constexpr std::uint32_t kPart = 8;                                // messages in a part
    static constexpr std::uint32_t kFirstRest = 1024, kLongestRest = 65536;  // messages

    // Whether the next message is timed; otherwise goes_in_packet() ignores the time.
    bool is_timed() const noexcept { return phase_ != Phase::kRest || rest_left_ == 1; }

    // A message begins. Returns whether it goes in one packet.
    bool goes_in_packet(std::uint64_t now_ns) noexcept {
        if (phase_ == Phase::kRest && --rest_left_ == 0) begin(Phase::kBefore);
        if (phase_ != Phase::kRest) time(now_ns);
        return (phase_ == Phase::kOther) != in_packet_;
    }

    // For tests: the way in use, outside of a trial.
    bool uses_packets() const noexcept { return in_packet_; }

private:
    enum class Phase : std::uint8_t { kBefore, kOther, kRest };

    void begin(Phase phase) noexcept {
        phase_ = phase;
        in_block_ = 0;
    }

    void time(std::uint64_t now_ns) noexcept {
        if (in_block_ % kPart == 0) {
            const std::uint32_t ended = in_block_ / kPart;  // parts, with the first, which does not count
            const std::uint64_t took = now_ns > since_ns_ ? now_ns - since_ns_ : 0;
            if (ended == 1 && phase_ == Phase::kOther && took > before_ns_ + before_ns_ / 4) return begin_rest(false);
            if (ended >= 2) times_[ended - 2] = took;
            since_ns_ = now_ns;
            if (ended == kParts + 1) end_block();
        }
        if (phase_ != Phase::kRest) ++in_block_;
    }

    void end_block() noexcept {
        std::nth_element(times_.begin(), times_.begin() + kParts / 2, times_.end());
        const std::uint64_t median = times_[kParts / 2];
        if (phase_ == Phase::kBefore) {
            before_ns_ = median;
            return begin(Phase::kOther);
        }
        begin_rest(median < before_ns_ - before_ns_ / 16);
    }

    // A trial is over. `better`: the other way is.
    void begin_rest(bool better) noexcept {
        if (better) in_packet_ = !in_packet_;
        rest_ = better ? kFirstRest : std::min(2 * rest_, kLongestRest);
        rest_left_ = rest_;
        begin(Phase::kRest);
    }

    Phase phase_ = Phase::kBefore;
    bool in_packet_ = false;
    std::uint32_t in_block_ = 0;  // messages of this block that have begun
    std::uint32_t rest_ = kFirstRest / 2, rest_left_ = 0;
    std::uint64_t since_ns_ = 0;   // start of this part
    std::uint64_t before_ns_ = 0;  // of the block before; valid in kOther
    std::array<std::uint64_t, kParts> times_{};
};

// The trials of the messages to one process.
class PacketTrials {
public:
    // The trial of messages of `bytes` bytes.
    PacketTrial& of(std::uint64_t bytes) noexcept { return trials_[bytes <= kMedium ? 0 : 1]; }

private:
    static constexpr std::uint64_t kMedium = 32 * 1024;

    std::array<PacketTrial, 2> trials_;
};

}  // namespace coop::rndv
