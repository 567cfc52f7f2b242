// SPDX-License-Identifier: BSD-3-Clause
#include "coop/sched/ring.h"

namespace coop::sched {

std::uint16_t check_of(const RingTail& tail) noexcept {
    constexpr std::uint64_t kSeed = 0x636f6f7072696e67ull, kFactor = 0xBF58476D1CE4E5B9ull;
    const std::uint64_t place = std::uint64_t{tail.slot} << 8 | tail.lap;
    return static_cast<std::uint16_t>((kSeed + (place << 32 | tail.bytes)) * kFactor >> 48);
}

RingTail make_tail(std::uint32_t bytes, const RingPlace& place) noexcept {
    RingTail tail{bytes, 0, static_cast<std::uint8_t>(place.slot), place.lap};
    tail.check = check_of(tail);
    return tail;
}

TailFlaw RingReceiver::flaw(const RingTail& tail, std::uint32_t least) const noexcept {
    if (tail.check != check_of(tail)) return TailFlaw::kCheck;
    if (tail.slot != static_cast<std::uint8_t>(next_.slot)) return TailFlaw::kSlot;
    if (tail.bytes < least || tail.bytes > shape_.most_bytes || written(tail.bytes) > shape_.most_bytes)
        return TailFlaw::kBytes;
    if (shape_.slots_of(next_.slot, written(tail.bytes)) > shape_.slots - in_use_) return TailFlaw::kBytes;
    return TailFlaw::kNone;
}

}  // namespace coop::sched
