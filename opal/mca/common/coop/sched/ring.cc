// SPDX-License-Identifier: BSD-3-Clause
#include "coop/sched/ring.h"

namespace coop::sched {

TailFlaw RingReceiver::flaw(const RingTail& tail, std::uint32_t least) const noexcept {
    if (tail.check != check_of(tail)) return TailFlaw::kCheck;
    if (tail.slot != static_cast<std::uint8_t>(next_.slot)) return TailFlaw::kSlot;
    if (tail.bytes < least || tail.bytes > shape_.most_bytes || written(tail.bytes) > shape_.most_bytes)
        return TailFlaw::kBytes;
    if (shape_.slots_of(next_.slot, written(tail.bytes)) > shape_.slots - in_use_) return TailFlaw::kBytes;
    return TailFlaw::kNone;
}

}  // namespace coop::sched
