// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/agenda.h"

#include <algorithm>
#include <functional>

namespace coop::fabric {

bool Agenda::plan(std::uint32_t qp, std::int64_t due_ns, std::int64_t latest_ns) {
    std::lock_guard guard(lock_);
    const Entry entry{due_ns, latest_ns, qp};
    entries_.push_back(entry);
    if (entry.can_wait()) ++patient_;
    std::push_heap(entries_.begin(), entries_.end(), std::greater<>());
    if (due_ns < earliest_ns()) earliest_ns_.store(due_ns, std::memory_order_release);
    if (latest_ns >= this->latest_ns()) return false;
    latest_ns_.store(latest_ns, std::memory_order_release);
    return true;
}

// Without patient entries (Entry::can_wait) the answer is the front of the heap. Only streams have patient entries
// (LocalQp::may_wait_until), and then few entries are planned, so a linear search is cheap.
std::int64_t Agenda::find_latest() const {
    if (entries_.empty()) return kNever;
    if (patient_ == 0) return entries_.front().due_ns;
    return std::min_element(entries_.begin(), entries_.end(),
                            [](const Entry& a, const Entry& b) { return a.latest_ns < b.latest_ns; })
        ->latest_ns;
}

std::uint32_t Agenda::take(std::int64_t now_ns) {
    std::lock_guard guard(lock_);
    if (entries_.empty() || entries_.front().due_ns > now_ns) return kNone;
    std::pop_heap(entries_.begin(), entries_.end(), std::greater<>());
    const Entry taken = entries_.back();
    entries_.pop_back();
    if (taken.can_wait()) --patient_;
    earliest_ns_.store(entries_.empty() ? kNever : entries_.front().due_ns, std::memory_order_release);
    latest_ns_.store(find_latest(), std::memory_order_release);
    return taken.qp;
}

}  // namespace coop::fabric
