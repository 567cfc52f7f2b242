// SPDX-License-Identifier: BSD-3-Clause
//
// The queue pairs of this process that have work to do, and when: a heap ordered
// by time. An entry is a hint: the queue pair itself knows what is due. An entry
// also holds the time until which the engine's thread may sleep; before that time a
// polling or posting thread may do the work, which saves a wake-up.
//
// Threading: any. is_due() costs one load, and a look at the clock if anything is
// planned.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "fabric/shm/segment.h"

namespace coop::fabric {

class Agenda {
public:
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

    // Plans work of queue pair `qp` at `due_ns`, at the latest at `latest_ns`. Returns true if this became the next
    // deadline, so that a sleeping engine has to be told.
    bool plan(std::uint32_t qp, std::int64_t due_ns, std::int64_t latest_ns);
    // Removes and returns the first queue pair that is due at `now_ns`, or kNone.
    std::uint32_t take(std::int64_t now_ns);

    std::int64_t earliest_ns() const { return earliest_ns_.load(std::memory_order_acquire); }
    // The next time at which the engine's thread has to work.
    std::int64_t latest_ns() const { return latest_ns_.load(std::memory_order_acquire); }
    bool is_due() const {
        const std::int64_t earliest = earliest_ns();
        return earliest != kNever && earliest <= now_ns();
    }

private:
    struct Entry {
        std::int64_t due_ns;
        std::int64_t latest_ns;
        std::uint32_t qp;
        bool can_wait() const { return latest_ns > due_ns; }
        bool operator>(const Entry& other) const { return due_ns > other.due_ns; }
    };
    std::int64_t find_latest() const;

    std::mutex lock_;
    std::vector<Entry> entries_;  // a heap, the earliest first
    std::size_t patient_ = 0;     // number of entries whose latest time is after their due time
    std::atomic<std::int64_t> earliest_ns_{kNever}, latest_ns_{kNever};
};

}  // namespace coop::fabric
