// SPDX-License-Identifier: BSD-3-Clause
//
// message -> schedule -> stripes: the parts of a message, their rails, and the reason for the choice.
//
// Units: bytes. Threading: plain values. Allocates only in describe().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "coop/base/export.h"
#include "coop/sched/config.h"
#include "coop/sched/policy.h"
#include "coop/sched/rail_set.h"

namespace coop::sched {

struct Stripe {
    std::uint64_t offset_bytes;  // in the message
    std::uint64_t length_bytes;  // 0 only for an empty message
    std::uint32_t weight;        // its share of batch_weight()
    RailIndex rail;
    bool operator==(const Stripe&) const = default;
};

enum class Reason : std::uint8_t {
    kSmall,     // below the striping threshold
    kLarge,     // not below the striping threshold
    kBlocking,  // EPC, by its marker
    kNonblocking,
    kCollective,
    kVeryLarge,  // EPC: nonblocking, but at least epc_always_stripe
    kNoMarker,   // EPC: kind of call unknown, so the size alone decides
    kWhole,      // the caller does not permit stripes
    kNotWorth,   // stripes have taken longer (trials.h)
    kOneRail,    // no other rail is usable
    kNoRail,     // all rails are down, so there is no stripe
};
constexpr std::size_t kReasons = 11;

constexpr RailIndex kNoRailIndex = 0xff;

// Used as posting time of stripes that are not measured.
constexpr std::uint64_t kNotMeasured = UINT64_MAX;

// The stripes of one message, in ascending order and without gaps; at most one per rail.
class Schedule {
public:
    Schedule() noexcept {}  // leaves unused stripes uninitialized, to save time
    Schedule(const Schedule& other) noexcept { *this = other; }
    Schedule& operator=(const Schedule& other) noexcept {
        header = other.header;
        batch_weight_ = other.batch_weight_;
        count_ = other.count_;
        for (std::size_t i = 0; i < count_; ++i) stripes_[i] = other.stripes_[i];
        return *this;
    }

    struct Header {
        std::uint64_t bytes = 0;           // of the message
        Policy policy = Policy::kBinding;  // the policy applied; never kEpc
        bool by_epc = false;
        Reason reason = Reason::kNoRail;
        bool suspect = false;  // no rail was up
        Direction direction = Direction::kOut;
        RailIndex probed = kNoRailIndex;  // this rail has a stripe only to be measured again
    } header;

    // Adds a stripe; at most one per rail. The length may be 0 only in an empty message.
    void add(RailIndex rail, std::uint64_t offset_bytes, std::uint64_t length_bytes, std::uint32_t weight) noexcept {
        stripes_[count_++] = {offset_bytes, length_bytes, weight, rail};
        batch_weight_ += weight;
    }

    void clear() noexcept { count_ = batch_weight_ = 0; }

    // Whether its completions are measured (feedback.h).
    bool is_measured() const noexcept { return row_of(header.policy).measures; }

    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }  // no rail is left
    const Stripe& operator[](std::size_t i) const noexcept { return stripes_[i]; }
    const Stripe* begin() const noexcept { return stripes_.data(); }
    const Stripe* end() const noexcept { return stripes_.data() + count_; }
    RailMask rails() const noexcept {
        RailMask mask = 0;
        for (const Stripe& stripe : *this) mask |= bit_of(stripe.rail);
        return mask;
    }
    std::uint32_t batch_weight() const noexcept { return batch_weight_; }  // W_batch (8.2.1)

private:
    std::array<Stripe, kMaxRails> stripes_;  // the first count_ are valid
    std::uint32_t batch_weight_ = 0;
    std::uint32_t count_ = 0;
};

COOP_EXPORT const char* text(Reason reason) noexcept;

// Describes the schedule in one sentence, with the values that decided it.
COOP_EXPORT std::string describe(const Schedule& schedule, const SchedConfig& config);

}  // namespace coop::sched
