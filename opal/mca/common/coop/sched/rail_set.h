// SPDX-License-Identifier: BSD-3-Clause
//
// What a scheduler knows of the rails of one channel. A rail is one path with
// its own queue pair: the virtual subchannel of the dissertation (4.1.1), which
// makes several HCAs, ports, queue pairs per port and LMC paths look alike.
//
// Units: bytes, bytes per second. Threading: none; the caller holds the lock of
// the channel. Ownership: plain values. Errors: a set that is full says so.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace coop::sched {

constexpr std::size_t kMaxRails = 32;

using RailIndex = std::uint8_t;    // 0..kMaxRails-1
using RailMask = std::uint32_t;    // bit i: rail i
static_assert(kMaxRails == 8 * sizeof(RailMask));

constexpr RailMask bit_of(RailIndex rail) noexcept { return RailMask{1} << rail; }
constexpr RailMask first_rails(std::size_t count) noexcept { return count >= kMaxRails ? ~RailMask{0} : (RailMask{1} << count) - 1; }
constexpr std::size_t count_of(RailMask rails) noexcept { return static_cast<std::size_t>(std::popcount(rails)); }

// The first rail of a set that is not empty, looking from `from` upwards and
// then from 0.
constexpr RailIndex first_from(RailMask rails, RailIndex from) noexcept {
    return static_cast<RailIndex>((from + std::countr_zero(std::rotr(rails, from))) % static_cast<int>(kMaxRails));
}
constexpr RailIndex after(RailIndex rail) noexcept { return static_cast<RailIndex>((rail + 1u) % kMaxRails); }

// A set of rails, in the order of their numbers: for (RailIndex rail : each(mask)).
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
    kSuspect,  // has shown errors: used only while no rail is up
    kDown,     // never used
};

// As it was opened; does not change.
struct RailInfo {
    std::uint16_t hca = 0;   // index among the opened ones
    std::uint8_t port = 1;   // from 1, as verbs count
    std::uint8_t path = 0;   // LMC path bits
    std::uint8_t qp = 0;     // index among the queue pairs of this path
    std::uint32_t mtu_bytes = 4096;
    std::uint64_t bytes_per_s = 0;  // nominal; 0: not known
};

struct Rail {
    RailInfo info;
    RailState state = RailState::kUp;
    double weight = 0;  // measured, in parts of kTotalWeight (feedback.h)
    double first_weight = 0;  // what `weight` was before anything was measured
    std::uint64_t outstanding_bytes = 0;  // posted and not completed
    std::uint64_t waiting_bytes = 0;      // to be posted
    std::uint32_t outstanding_stripes = 0;
    double rate = 0;               // bytes per ns, as lately measured; 0: not yet
    std::uint64_t begun_ns = 0;    // when what it works at was posted, or what was before that completed

    std::uint64_t backlog_bytes() const noexcept { return outstanding_bytes + waiting_bytes; }

    // The same without what a stripe under way has already, as far as can be told: a long one is no news until it is complete.
    // One that is overdue says that the rate is no longer true; at twice its time nothing is taken for done.
    double left_bytes(std::uint64_t now_ns) const noexcept {
        const double all = static_cast<double>(backlog_bytes());
        if (outstanding_stripes == 0 || now_ns <= begun_ns) return all;
        const double stripe = static_cast<double>(outstanding_bytes) / outstanding_stripes;
        const double expected = rate * static_cast<double>(now_ns - begun_ns);
        return all - std::clamp(2 * stripe - expected, 0.0, std::min(expected, stripe));
    }
};

class RailSet {
public:
    // Whether there was room. Rails are numbered in the order in which they come.
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

    // The order in which the process would use its rails: each of them once. Without it, the order of their numbers.
    template <class Indices>
    void set_order(const Indices& rails) noexcept {
        std::transform(rails.begin(), rails.end(), order_.begin(), [](auto rail) { return static_cast<RailIndex>(rail); });
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

    // The part of the weight of all usable rails that one of them has.
    double share(RailIndex rail) const noexcept {
        double sum = 0;
        for (RailIndex each_rail : each(usable())) sum += rails_[each_rail].weight;
        return (usable() & bit_of(rail)) != 0 && sum > 0 ? rails_[rail].weight / sum : 0;
    }

    // The rails to send on: those that are up; without any, the suspect ones;
    // empty when all are down.
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
