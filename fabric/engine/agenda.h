// SPDX-License-Identifier: BSD-3-Clause
//
// Which queue pairs of this process have work to do, and when: a heap by time.
// An entry is a hint: the queue pair itself knows what is due. It also says until
// when the engine's thread may leave it to somebody who is awake anyway.
//
// Threading: any. is_due() is a load, and a look at the clock if anything is
// planned at all.
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

    // Plans work of queue pair `qp` at `due_ns`, and not after `latest_ns`. True if nothing else has to be done so soon: the
    // engine must look again.
    bool plan(std::uint32_t qp, std::int64_t due_ns, std::int64_t latest_ns);
    // Takes the earliest queue pair that is due at `now_ns`, or kNone.
    std::uint32_t take(std::int64_t now_ns);

    std::int64_t earliest_ns() const { return earliest_ns_.load(std::memory_order_acquire); }
    // When something has to be done.
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
    std::size_t patient_ = 0;     // of them, those that can wait
    std::atomic<std::int64_t> earliest_ns_{kNever}, latest_ns_{kNever};
};

}  // namespace coop::fabric
