// SPDX-License-Identifier: BSD-3-Clause
//
// The state of the rails of one channel, as its scheduler sees it. A rail is one path with its own queue pair:
// the virtual subchannel of the dissertation (4.1.1), which hides the difference between several HCAs, ports,
// queue pairs per port and LMC paths.
//
// Units: bytes, bytes per second. Threading: none; the caller holds the lock of the channel. Ownership: plain
// values. Errors: add() returns false when the set is full.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace coop::sched {

constexpr std::size_t kMaxRails = 32;

using RailIndex = std::uint8_t;  // 0..kMaxRails-1
using RailMask = std::uint32_t;  // bit i: rail i
static_assert(kMaxRails == 8 * sizeof(RailMask));

constexpr RailMask bit_of(RailIndex rail) noexcept { return RailMask{1} << rail; }
constexpr RailMask first_rails(std::size_t count) noexcept {
    return count >= kMaxRails ? ~RailMask{0} : (RailMask{1} << count) - 1;
}
constexpr std::size_t count_of(RailMask rails) noexcept { return static_cast<std::size_t>(std::popcount(rails)); }

// Returns the first rail of a nonempty set, searching upwards from `from` and then from 0.
constexpr RailIndex first_from(RailMask rails, RailIndex from) noexcept {
    return static_cast<RailIndex>((from + std::countr_zero(std::rotr(rails, from))) % static_cast<int>(kMaxRails));
}
constexpr RailIndex after(RailIndex rail) noexcept { return static_cast<RailIndex>((rail + 1u) % kMaxRails); }

// A caller that keeps several streams on different rails gives each the number of a lane.
constexpr std::uint8_t kNoLane = 0xff;

// The rail with `n` rails of the set below it; the set has more than n.
constexpr RailIndex nth_of(RailMask rails, std::size_t n) noexcept {
    for (; n > 0; --n) rails &= rails - 1;
    return static_cast<RailIndex>(std::countr_zero(rails));
}

// Iterates over a set of rails in ascending order: for (RailIndex rail : each(mask)).
struct RailIterator {
    RailMask left;
    constexpr RailIndex operator*() const noexcept { return static_cast<RailIndex>(std::countr_zero(left)); }
    constexpr RailIterator& operator++() noexcept {
        left &= left - 1;
        return *this;
    }
    constexpr bool operator!=(RailIterator other) const noexcept { return left != other.left; }
};
struct EachRail {
    RailMask rails;
    constexpr RailIterator begin() const noexcept { return {rails}; }
    constexpr RailIterator end() const noexcept { return {0}; }
};
constexpr EachRail each(RailMask rails) noexcept { return {rails}; }

enum class RailState : std::uint8_t {
    kUp,
    kSuspect,  // has had errors: used only if no rail is up
    kDown,     // never used
};

// The way that the data take on a link. Links carry both at once, so what goes one way does not delay the other.
enum class Direction : std::uint8_t {
    kOut,  // sends, writes, atomic operations
    kIn,   // reads
};
constexpr std::size_t kDirections = 2;

// Constant properties of a rail.
struct RailInfo {
    std::uint16_t hca = 0;  // index among the opened HCAs
    std::uint8_t port = 1;  // port number, from 1 as in verbs
    std::uint8_t path = 0;  // LMC path bits
    std::uint8_t qp = 0;    // index among the queue pairs of this path
    std::uint32_t mtu_bytes = 4096;
    std::uint64_t bytes_per_s = 0;  // nominal; 0: unknown
};

// What is under way on a rail in one direction.
struct Traffic {
    std::uint64_t outstanding_bytes = 0;  // posted but not completed
    std::uint64_t waiting_bytes = 0;      // not posted yet
    std::uint32_t outstanding_stripes = 0;
    std::uint64_t begun_ns =
        0;  // when the oldest stripe in flight was posted, or when its predecessor completed, if later

    std::uint64_t backlog_bytes() const noexcept { return outstanding_bytes + waiting_bytes; }

    // The backlog less the estimated progress of the oldest stripe in flight, because a long stripe reports
    // nothing before it completes. If that stripe is overdue, the rate is no longer accurate: the estimate then
    // shrinks, down to no progress at twice the expected time. `rate`: bytes per ns.
    double left_bytes(std::uint64_t now_ns, double rate) const noexcept {
        const double all = static_cast<double>(backlog_bytes());
        if (outstanding_stripes == 0 || now_ns <= begun_ns) return all;
        const double stripe = static_cast<double>(outstanding_bytes) / outstanding_stripes;
        const double expected = rate * static_cast<double>(now_ns - begun_ns);
        return all - std::clamp(2 * stripe - expected, 0.0, std::min(expected, stripe));
    }
};

struct Rail {
    RailInfo info;
    RailState state = RailState::kUp;
    double weight = 0;        // measured, in parts of kTotalWeight (feedback.h)
    double first_weight = 0;  // initial `weight`, before any measurement
    double rate = 0;          // measured, bytes per ns, averaged as the weight is; 0: no measurement yet
    std::array<Traffic, kDirections> traffic{};

    Traffic& in(Direction direction) noexcept { return traffic[static_cast<std::size_t>(direction)]; }
    const Traffic& in(Direction direction) const noexcept { return traffic[static_cast<std::size_t>(direction)]; }
};

class RailSet {
public:
    // Adds a rail; returns false if the set is full. Rails are numbered in the order of addition.
    [[nodiscard]] bool add(const RailInfo& info, RailState state = RailState::kUp) noexcept {
        if (count_ == kMaxRails) return false;
        rails_[count_].info = info;
        rails_[count_].state = state;
        order_[count_] = static_cast<RailIndex>(count_);
        in_state_[index(state)] |= bit_of(static_cast<RailIndex>(count_));
        ++count_;
        return true;
    }

    std::size_t size() const noexcept { return count_; }
    Rail& operator[](RailIndex rail) noexcept { return rails_[rail]; }
    const Rail& operator[](RailIndex rail) const noexcept { return rails_[rail]; }

    void set_state(RailIndex rail, RailState state) noexcept {
        in_state_[index(rails_[rail].state)] &= ~bit_of(rail);
        in_state_[index(state)] |= bit_of(rail);
        rails_[rail].state = state;
    }

    RailMask all() const noexcept { return first_rails(count_); }

    // Sets the order in which the process prefers its rails: a permutation of all of them. The default is
    // ascending.
    template <class Indices>
    void set_order(const Indices& rails) noexcept {
        std::transform(rails.begin(), rails.end(), order_.begin(),
                       [](auto rail) { return static_cast<RailIndex>(rail); });
    }
    // The first ones in that order; rails that are down are skipped.
    RailIndex first() const noexcept {
        for (std::size_t i = 0; i < count_; ++i)
            if (rails_[order_[i]].state != RailState::kDown) return order_[i];
        return order_[0];
    }
    RailMask first(std::size_t count) const noexcept {
        RailMask rails = 0;
        for (std::size_t i = 0; i < count_ && count_of(rails) < count; ++i)
            if (rails_[order_[i]].state != RailState::kDown) rails |= bit_of(order_[i]);
        return rails;
    }

    // The rail's share of the weight of all usable rails; 0 if it is not usable.
    double share(RailIndex rail) const noexcept {
        double sum = 0;
        for (RailIndex each_rail : each(usable())) sum += rails_[each_rail].weight;
        return (usable() & bit_of(rail)) != 0 && sum > 0 ? rails_[rail].weight / sum : 0;
    }

    // The rails to send on: those that are up; if there are none, the suspect ones. Empty if all are down.
    RailMask usable() const noexcept {
        const RailMask up = in_state_[index(RailState::kUp)];
        return up != 0 ? up : in_state_[index(RailState::kSuspect)];
    }

private:
    static constexpr std::size_t index(RailState state) noexcept { return static_cast<std::size_t>(state); }

    std::array<Rail, kMaxRails> rails_{};
    std::array<RailIndex, kMaxRails> order_{};
    std::array<RailMask, 3> in_state_{};
    std::size_t count_ = 0;
};

}  // namespace coop::sched
