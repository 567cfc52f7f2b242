// SPDX-License-Identifier: BSD-3-Clause
#include "coop/coll/buffers.h"

#include "coop/wire/check.h"

namespace coop::coll {
namespace {

constexpr int kCheckBits = 15;
constexpr Tail kCheckMask = (Tail{1} << kCheckBits) - 1;

// As in wire/check.h: whether a flipped bit of the other fields changes the check word depends on the factor alone.
constexpr bool every_flipped_bit_shows() {
    for (int p = kCheckBits; p < 64; ++p)
        if (const auto top = (wire::kFactor << p) >> (64 - kCheckBits); top == 0 || top == kCheckMask) return false;
    return true;
}
static_assert(every_flipped_bit_shows());

Tail check_of(Tail tail) noexcept { return wire::mix(wire::kSeed, tail & ~kCheckMask) >> (64 - kCheckBits); }

}  // namespace

Tail make_tail(std::uint32_t lap, std::uint64_t bytes) noexcept {
    const Tail tail = Tail{lap} << 32 | bytes << kCheckBits;
    return tail | check_of(tail);
}

bool is_whole(Tail tail) noexcept { return (tail & kCheckMask) == check_of(tail); }

std::uint64_t fill(const BufferLayout& layout, std::byte* slots, std::uint32_t lap, std::uint32_t step,
                   const std::byte* memory, const Pieces& pieces) noexcept {
    const std::uint64_t bytes = pieces.bytes(), begin = layout.begin_of(lap, step, bytes);
    std::byte* to = slots + begin;
    for (const Piece& piece : pieces) {
        std::memcpy(to, memory + piece.offset, piece.bytes);
        to += piece.bytes;
    }
    const Tail tail = make_tail(lap, bytes);
    std::memcpy(slots + layout.tail_of(lap, step), &tail, sizeof tail);
    return begin;
}

Buffers::Buffers(const BufferLayout& layout, std::byte* slots) noexcept : layout_(layout), slots_(slots) {
    for (std::uint32_t lap = 0; lap < layout.laps; ++lap)
        for (std::uint32_t step = 0; step < layout.steps; ++step) tail_at(layout.tail_of(lap, step)) = 0;
}

Buffers::Slot Buffers::full(Tail tail, std::uint32_t lap, std::uint32_t step) const noexcept {
    const std::uint64_t bytes = bytes_of(tail);
    if (!is_whole(tail) || bytes > layout_.data_bytes) return {State::kDamaged, 0, nullptr};
    return {State::kFull, bytes, slots_ + layout_.begin_of(lap, step, bytes)};
}

// The tail of an earlier lap is an empty slot. A later lap cannot come before this one has been read.
Buffers::Slot Buffers::other(Tail tail, std::uint32_t lap) noexcept {
    const bool earlier = static_cast<std::int32_t>(lap_of(tail) - lap) < 0;
    return {is_whole(tail) && earlier ? State::kEmpty : State::kDamaged, 0, nullptr};
}

}  // namespace coop::coll
