// SPDX-License-Identifier: BSD-3-Clause
//
// How much of its ring (node/lane_ring.h) a writer uses in each lap. Which length is the quickest depends on the machine:
//
//     short   stays in the second-level caches of both cores. Each write first takes a line away from the other core.
//     whole   if it is at least twice that cache, a line has left both caches when it is written again.
//
// Ping-pong was quicker in the whole ring wherever it was measured, so the used part doubles after kAnswers laps of
// answers. Streams differ: one way, the whole ring had between 0.65 and 3.5 times the bandwidth of 128 KiB. So a stream
// tries both:
//
//                    +------ a lap of answers ------+
//                    v                              |
//     waiting --kRingsBeforeTrial--> short, whole, short, whole ... --two pairs agree--> decided
//                                      ^                                                    |
//                                      +--- another pace, or 1 ... kMaxUnits units later ---+
//
// A turn is about two rings long. Its first ring is not timed: the caches still hold lines as the other length left them. Turns
// are short so that both lengths of a pair are timed under the same load. The short part wins a pair if it is kClear times
// as quick, because the whole ring holds more while the reader is late.
//
// Units: bytes; time in any unit. Threading: that of the writer. Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "coop/node/lane_ring.h"

namespace coop::node {

class LaneLaps {
public:
    static constexpr std::uint32_t kShort = 8 * kLongestLaneDelay;  // 128 KiB
    // The new pages then cost a tenth of what these laps took, with messages of 1 KiB (before those used the slot, lane_ring.h).
    static constexpr unsigned kAnswers = 16;
    // Before the first trial. Twice as many after each trial that answers have ended, up to kMostRingsBeforeTrial.
    static constexpr unsigned kRingsBeforeTrial = 8, kMostRingsBeforeTrial = 128;
    // After a decision, the next trial comes 1 unit of so many rings later, and 2, 4 ... kMaxUnits units later as long as trials
    // have the same result. It comes earlier if the pace of a unit differs from that of the units before by kOtherPace, but not
    // in the first quarter of this time: programs may compute now and then.
    static constexpr unsigned kUnit = 128, kMaxUnits = 16;
    static constexpr double kOtherPace = 1.5;
    static constexpr double kClear = 1.3;  // how much quicker the short part must be

    explicit LaneLaps(std::uint32_t ring_bytes) noexcept
        : most_(ring_bytes), left_(std::uint64_t{rings_before_} * ring_bytes) {}

    // A lap has ended that might use `end` bytes. Returns how many the next one should use.
    std::uint32_t next(std::uint32_t end, Lap lap, std::uint64_t now) noexcept {
        if (lap.of_answers) return after_answers(end, now);
        answers_ /= 2;
        if (most_ <= kShort) return end;
        left_ -= std::min<std::uint64_t>(left_, lap.bytes);
        bytes_ += lap.bytes;
        if (left_ > 0) return stage_ == Stage::kWaiting ? end : chosen();
        switch (stage_) {
        case Stage::kWaiting: return begin_trial(end);
        case Stage::kWarming: return begin_timing(now);
        case Stage::kTiming: return end_turn(now);
        case Stage::kDecided: return end_unit(end, now);
        }
        return end;
    }

    bool is_trying() const noexcept { return stage_ == Stage::kWarming || stage_ == Stage::kTiming; }

    // The system has provided no more memory: next() asks for no more than `end` from now on.
    void cap(std::uint32_t end) noexcept {
        most_ = end;
        units_ = 0;
        wait_again();
    }

    // Whether a stream wants to keep to the short part, in a trial or after one, and does.
    bool keeps_short(std::uint32_t end) const noexcept { return !whole_ && end <= kShort; }

private:
    enum class Stage : std::uint8_t { kWaiting, kWarming, kTiming, kDecided };

    std::uint32_t chosen() const noexcept { return whole_ ? most_ : kShort; }
    // The last bytes of a lap stay free if no record fits.
    std::uint64_t about_a_ring() const noexcept { return most_ - most_ / 8; }

    std::uint32_t after_answers(std::uint32_t end, std::uint64_t now) noexcept {
        const std::uint32_t here = is_trying() ? std::max(end, before_) : end;
        if (is_trying()) end_trial(now);
        if (++answers_ < kAnswers) return here;
        answers_ = 0;
        const std::uint32_t longer = units_ > 0 ? most_ : std::min(2 * here, most_);  // a trial has used the whole ring
        return std::max(here, longer);
    }
    // By answers: an earlier decision holds.
    void end_trial(std::uint64_t now) noexcept {
        if (units_ > 0) return keep(decided_, now);
        rings_before_ = std::min(2 * rings_before_, kMostRingsBeforeTrial);
        wait_again();
    }
    void wait_again() noexcept {
        stage_ = Stage::kWaiting;
        whole_ = true;
        left_ = std::uint64_t{rings_before_} * most_;
    }

    std::uint32_t begin_trial(std::uint32_t end) noexcept {
        before_ = end;
        won_ = {};
        return begin_turn(false);
    }
    std::uint32_t begin_turn(bool whole) noexcept {
        whole_ = whole;
        stage_ = Stage::kWarming;
        left_ = about_a_ring();
        return chosen();
    }
    std::uint32_t begin_timing(std::uint64_t now) noexcept {
        stage_ = Stage::kTiming;
        left_ = about_a_ring();
        start(now);
        return chosen();
    }
    std::uint32_t end_turn(std::uint64_t now) noexcept {
        if (!whole_) {
            short_pace_ = pace(now);
            return begin_turn(true);
        }
        const bool whole = pace(now) < kClear * short_pace_;
        if (++won_[whole] < 2) return begin_turn(false);
        decide(whole, now);
        return chosen();
    }
    void decide(bool whole, std::uint64_t now) noexcept {
        units_ = units_ > 0 && decided_ == whole ? std::min(2 * units_, kMaxUnits) : 1;
        keep(whole, now);
    }
    void keep(bool whole, std::uint64_t now) noexcept {
        decided_ = whole_ = whole;
        stage_ = Stage::kDecided;
        to_wait_ = units_;
        last_pace_ = 0;
        begin_unit(now);
    }
    void begin_unit(std::uint64_t now) noexcept {
        left_ = std::uint64_t{kUnit} * most_;
        start(now);
    }
    std::uint32_t end_unit(std::uint32_t end, std::uint64_t now) noexcept {
        const double here = pace(now);
        const bool is_other = last_pace_ > 0 && std::max(here, last_pace_) > kOtherPace * std::min(here, last_pace_);
        if (!is_other) last_pace_ = here;
        --to_wait_;
        if (to_wait_ == 0 || (is_other && 4 * to_wait_ <= 3 * units_)) return begin_trial(end);
        begin_unit(now);
        return chosen();
    }

    void start(std::uint64_t now) noexcept {
        began_ = now;
        bytes_ = 0;
    }
    double pace(std::uint64_t now) const noexcept {
        return static_cast<double>(std::max<std::uint64_t>(now - began_, 1)) / static_cast<double>(bytes_);
    }

    std::uint32_t most_;
    unsigned rings_before_ = kRingsBeforeTrial;  // the next trial, as long as there is no decision
    Stage stage_ = Stage::kWaiting;
    bool whole_ = true;              // use the whole ring; without meaning before a trial
    bool decided_ = false;           // what the last trial has found
    std::uint32_t before_ = 0;       // what was used before the trial
    unsigned answers_ = 0;           // laps, of which each other lap takes away one half
    unsigned units_ = 0;             // between trials; 0: no trial yet
    unsigned to_wait_ = 0;           // units until the next one
    std::array<unsigned, 2> won_{};  // pairs: by the short part, by the whole ring
    std::uint64_t left_;             // bytes until the next step
    std::uint64_t began_ = 0, bytes_ = 0;
    double short_pace_ = 0;  // time per byte
    double last_pace_ = 0;   // of the units until now; 0: none
};

}  // namespace coop::node
