// SPDX-License-Identifier: BSD-3-Clause
//
// A heap of events in order of time. Events of the same time keep the order in
// which they were entered, so that a run is reproducible.
//
// Units: nanoseconds. Threading: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace coop::sim {

constexpr double kNever = std::numeric_limits<double>::infinity();

enum class EventKind : std::uint8_t {
    kSweep,     // a process: its progress engine polls
    kPosted,    // a stripe is on its queue pair
    kLanded,    // the last byte of a stripe is on its way
    kFailed,    // a stripe failed after all retries
    kTopology,  // a failure, a repair, or the subnet manager's reaction
};

struct Event {
    double at_ns;
    std::uint64_t order;
    std::uint32_t what;  // process, stripe, or number of the change
    EventKind kind;
};

class Agenda {
public:
    void add(double at_ns, EventKind kind, std::uint32_t what) {
        heap_.push_back({at_ns, order_++, what, kind});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
    double next_ns() const noexcept { return heap_.empty() ? kNever : heap_.front().at_ns; }
    Event take() noexcept {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const Event event = heap_.back();
        heap_.pop_back();
        return event;
    }
    std::uint64_t entered() const noexcept { return order_; }

private:
    static bool later(const Event& a, const Event& b) noexcept {
        return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.order > b.order;
    }

    std::vector<Event> heap_;
    std::uint64_t order_ = 0;
};

}  // namespace coop::sim
