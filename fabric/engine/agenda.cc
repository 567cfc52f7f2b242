// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/agenda.h"

namespace coop::fabric {

bool Agenda::plan(std::uint32_t qp, std::int64_t due_ns) {
    std::lock_guard guard(lock_);
    entries_.push({due_ns, qp});
    if (due_ns >= earliest_ns()) return false;
    earliest_ns_.store(due_ns, std::memory_order_release);
    return true;
}

std::uint32_t Agenda::take(std::int64_t now_ns) {
    std::lock_guard guard(lock_);
    if (entries_.empty() || entries_.top().due_ns > now_ns) return kNone;
    const std::uint32_t qp = entries_.top().qp;
    entries_.pop();
    earliest_ns_.store(entries_.empty() ? kNever : entries_.top().due_ns, std::memory_order_release);
    return qp;
}

}  // namespace coop::fabric
