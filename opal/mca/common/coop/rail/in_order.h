// SPDX-License-Identifier: BSD-3-Clause
//
// Requests that must be executed in the order in which they were started: atomic operations, and puts and gets beside
// them. A queue pair keeps that order, several do not. So all of them are on one rail at a time:
//
//     started ─────────────► on the rail ─► ended
//        │                        │
//        │ the rail has failed    │ leaves the rail that has failed, before or after it was posted
//        ▼                        ▼
//     waiting, in the order in which they were started
//        │
//        ▼ the last one has left the rail that has failed
//     all of them on one other rail
//
// Threading: none; the caller holds the lock of the channel. Ownership: requests belong to the caller.
#pragma once

#include <cstdint>
#include <optional>

#include "coop/base/list.h"
#include "coop/sched/rail_set.h"

namespace coop::rail {

template <class Work>
class InOrder {
public:
    // Gives the request its turn.
    void start(Work& work) noexcept { work.turn = next_++; }

    bool has_waiting() const noexcept { return !waiting_.empty(); }

    // The rail that a request has to take because others are on it; nothing: any.
    std::optional<sched::RailIndex> rail() const noexcept {
        return on_rail_ != 0 ? std::optional(rail_) : std::nullopt;
    }

    // The request that has waited for the longest time; null: none waits.
    Work* front() noexcept { return waiting_.front(); }
    Work* back() noexcept { return waiting_.back(); }  // the one that was started last

    // A request that has waited is on this rail now, posted or not. Precondition: rail() is this rail, or nothing.
    void enter(Work& work, sched::RailIndex rail) noexcept {
        waiting_.remove(&work);
        rail_ = rail;
        ++on_rail_;
    }
    // The request has left the rail.
    void leave() noexcept { --on_rail_; }

    // The request waits: behind those that were started earlier, before the others.
    void wait(Work& work) noexcept {
        Work* earlier = waiting_.back();
        while (earlier != nullptr && is_later(*earlier, work)) earlier = waiting_.prev(earlier);
        earlier != nullptr ? waiting_.insert_after(earlier, &work) : waiting_.push_front(&work);
    }

private:
    // Turns may wrap: never are so many requests under way.
    static bool is_later(const Work& a, const Work& b) noexcept {
        return static_cast<std::int32_t>(a.turn - b.turn) > 0;
    }

    List<Work, &Work::node> waiting_;
    std::uint32_t next_ = 0, on_rail_ = 0;
    sched::RailIndex rail_ = 0;
};

}  // namespace coop::rail
