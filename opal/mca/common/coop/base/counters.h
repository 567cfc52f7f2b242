// SPDX-License-Identifier: BSD-3-Clause
//
// Counters and gauges of one process, and the table under which they are
// exported as MPI_T performance variables. Messages and bytes by protocol are
// not here: they derive from the usage table (usage.h).
//
// Units: events, bytes or clock ticks, as the counter's name says; objects at
// present. Threading: as Tally: call set_threads(true) before the first event if
// several threads count. Cheap enough for a hot path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coop/base/tally.h"

namespace coop {

// Events, counted since start.
enum class Counter : std::uint8_t {
    kRetrySendBusy,
    kRetryNoDescriptor,
    kRetryRegister,
    kRetryGet,
    kRetryPut,
    kOutOfOrder,
    kCopies,
    kCopiedBytes,
    kCopyTime,  // in ticks of the clock of the component that counts; it converts them to ns when it exports the value
    kOffers,
    kOffersTaken,
    kTakeovers,
    kOffloads,
    kOffloadedBytes,
    kOffloadsHeld,
    kOffloadsRefused,
    kCount
};

// Objects that exist at present, with their high-water mark.
enum class Gauge : std::uint8_t { kUnexpected, kRendezvous, kDeferred, kProcesses, kCount };

inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kCount);
inline constexpr std::size_t kGaugeCount = static_cast<std::size_t>(Gauge::kCount);

class Counters {
public:
    void set_threads(bool threads) noexcept { threads_ = threads; }

    void count(Counter counter, std::uint64_t n = 1) noexcept {
        counts_[static_cast<std::size_t>(counter)].add(n, threads_);
    }

    // One object more, or one less.
    void up(Gauge gauge) noexcept {
        Level& level = levels_[static_cast<std::size_t>(gauge)];
        level.high.raise_to(level.now.add(1, threads_), threads_);
    }
    void down(Gauge gauge) noexcept { levels_[static_cast<std::size_t>(gauge)].now.subtract(1, threads_); }

    std::uint64_t total(Counter counter) const noexcept { return counts_[static_cast<std::size_t>(counter)].read(); }
    std::uint64_t now(Gauge gauge) const noexcept { return levels_[static_cast<std::size_t>(gauge)].now.read(); }
    std::uint64_t high(Gauge gauge) const noexcept { return levels_[static_cast<std::size_t>(gauge)].high.read(); }

private:
    struct Level {
        Tally now;
        Tally high;
    };
    std::array<Tally, kCounterCount> counts_{};
    std::array<Level, kGaugeCount> levels_{};
    bool threads_ = false;
};

// --- as performance variables ---------------------------------------------

enum class VariableKind : std::uint8_t {
    kTotal,      // only grows:          MPI_T_PVAR_CLASS_COUNTER
    kLevel,      // at present:          MPI_T_PVAR_CLASS_LEVEL
    kHighWater,  // largest level so far: MPI_T_PVAR_CLASS_HIGHWATERMARK
};

struct Variable {
    const char* name;  // without the prefix of the component
    VariableKind kind;
    Counter counter;  // kTotal only
    Gauge gauge;      // kLevel and kHighWater only
    const char* help;
};

namespace detail {

constexpr Variable total_of(Counter counter, const char* name, const char* help) {
    return {name, VariableKind::kTotal, counter, Gauge::kCount, help};
}
constexpr Variable level_of(Gauge gauge, const char* name, const char* help) {
    return {name, VariableKind::kLevel, Counter::kCount, gauge, help};
}
constexpr Variable high_of(Gauge gauge, const char* name, const char* help) {
    return {name, VariableKind::kHighWater, Counter::kCount, gauge, help};
}

}  // namespace detail

inline constexpr std::size_t kVariableCount = kCounterCount + 2 * kGaugeCount;

// Counters in the order of their enum, then level and high-water by gauge.
inline constexpr std::array<Variable, kVariableCount> kVariables = {
    detail::total_of(Counter::kRetrySendBusy, "retries_send_busy",
                     "Sends tried again because the transport was out of resources."),
    detail::total_of(Counter::kRetryNoDescriptor, "retries_no_descriptor",
                     "Sends tried again because the transport had no descriptor."),
    detail::total_of(Counter::kRetryRegister, "retries_register",
                     "Registrations of memory that the transport refused."),
    detail::total_of(Counter::kRetryGet, "retries_get", "RDMA reads that the transport refused, for now or for good."),
    detail::total_of(Counter::kRetryPut, "retries_put", "RDMA writes that the transport refused, for now or for good."),
    detail::total_of(Counter::kOutOfOrder, "out_of_order",
                     "Messages that arrived before an earlier one of the same sender and communicator."),
    detail::total_of(Counter::kCopies, "copies",
                     "Copies between processes of this node that this process made; each chunk counts."),
    detail::total_of(Counter::kCopiedBytes, "copied_bytes", "Bytes of these copies."),
    detail::total_of(Counter::kCopyTime, "copy_time", "Nanoseconds spent in such copies of 16 KiB or more."),
    detail::total_of(Counter::kOffers, "offers", "Receives that were offered to their sender (RTR)."),
    detail::total_of(Counter::kOffersTaken, "offers_taken",
                     "Offered receives into which this process wrote as the sender."),
    detail::total_of(Counter::kTakeovers, "takeovers",
                     "Copies inside the node, or halves of them, that this process took over because the other side "
                     "made no progress."),
    detail::total_of(Counter::kOffloads, "offloads",
                     "Pieces of messages inside the node that an HCA read through loopback for this process."),
    detail::total_of(Counter::kOffloadedBytes, "offloaded_bytes", "Bytes of these pieces."),
    detail::total_of(Counter::kOffloadsHeld, "offloads_held",
                     "Messages, or remainders of messages, that were not given to an HCA because it was busy."),
    detail::total_of(Counter::kOffloadsRefused, "offloads_refused",
                     "Pieces that an HCA could not read and the CPU copied instead, and messages whose receive buffer "
                     "could not be registered for an HCA."),
    detail::level_of(Gauge::kUnexpected, "unexpected_now", "Messages that have arrived without a matching receive."),
    detail::high_of(Gauge::kUnexpected, "unexpected_high", "Largest number of unexpected messages at a time."),
    detail::level_of(Gauge::kRendezvous, "rendezvous_now", "Rendezvous transfers in flight."),
    detail::high_of(Gauge::kRendezvous, "rendezvous_high",
                    "Largest number of rendezvous transfers in flight at a time."),
    detail::level_of(Gauge::kDeferred, "deferred_now", "Operations that wait for resources of a transport."),
    detail::high_of(Gauge::kDeferred, "deferred_high",
                    "Largest number of operations that waited for resources at a time."),
    detail::level_of(Gauge::kProcesses, "processes_now",
                     "Processes to which this one has sent or prepared to send (also answers and offered receives). A "
                     "process of another job counts until the last communicator with it is freed."),
    detail::high_of(Gauge::kProcesses, "processes_high", "Largest number of such processes at a time."),
};

namespace detail {

constexpr bool variables_match_their_enums() {
    for (std::size_t i = 0; i < kCounterCount; ++i)
        if (kVariables[i].kind != VariableKind::kTotal || kVariables[i].counter != static_cast<Counter>(i))
            return false;
    for (std::size_t i = 0; i < kGaugeCount; ++i) {
        const Variable& now = kVariables[kCounterCount + 2 * i];
        const Variable& high = kVariables[kCounterCount + 2 * i + 1];
        if (now.kind != VariableKind::kLevel || now.gauge != static_cast<Gauge>(i)) return false;
        if (high.kind != VariableKind::kHighWater || high.gauge != static_cast<Gauge>(i)) return false;
    }
    return true;
}

}  // namespace detail

static_assert(detail::variables_match_their_enums(), "every counter and every gauge has its variables, in order");

// The value of a variable, read from the counters of a process.
inline std::uint64_t value_of(const Variable& variable, const Counters& counters) noexcept {
    switch (variable.kind) {
    case VariableKind::kTotal: return counters.total(variable.counter);
    case VariableKind::kLevel: return counters.now(variable.gauge);
    case VariableKind::kHighWater: return counters.high(variable.gauge);
    }
    return 0;
}

}  // namespace coop
