// SPDX-License-Identifier: BSD-3-Clause
//
// Collective buffers: memory of the receiver into which its partners write the short
// steps of an allgather by RDMA, and which the receiver polls. (RDMA based allgather,
// section 4.2) There is one slot for each lap in use and each step. The tail after
// the data has a fixed place, so that one write carries both and the receiver knows
// where to look:
//
//     |<------------------- slot -------------------->|
//     |  not written  |   data   |   padding   | tail |
//                     |<---------- one write -------->|
//
// A write has whole cache lines, so the data are aligned. (Copies of memcpy by "rep movsb"
// are 20 times slower on some CPUs if the target lies a few bytes behind the source within
// its page, which unaligned slots and aligned user buffers are likely to meet.)
//
// The tail names the lap (inbox.h), so nothing is cleared between calls: a tail of an
// earlier lap is an empty slot. A slot may be written again as soon as inbox.h allows
// packets of the next lap that uses it.
//
// The receiver loads the tail with one acquire load of 8 aligned bytes, which no
// transport writes in two parts. The last bytes of a write must land last; the transport
// promises it (extension/btl_extension.h).
//
// Units: bytes. Threading: a slot has one writer and one reader. Ownership: the caller's
// memory. Errors: a tail is checked as a whole before its fields are used.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "coop/base/export.h"
#include "coop/coll/blocks.h"

namespace coop::coll {

using Tail = std::uint64_t;

constexpr std::uint64_t kMaxSlotBytes = 64 * 1024;  // of the data of a slot

COOP_EXPORT Tail make_tail(std::uint32_t lap, std::uint64_t bytes) noexcept;
// Whether the check word of the tail is right.
COOP_EXPORT bool is_whole(Tail tail) noexcept;
constexpr std::uint32_t lap_of(Tail tail) noexcept { return static_cast<std::uint32_t>(tail >> 32); }
constexpr std::uint64_t bytes_of(Tail tail) noexcept { return tail >> 15 & 0x1FFFF; }

// Bytes of the write that carries so many bytes of data.
constexpr std::uint64_t written(std::uint64_t data_bytes) noexcept {
    return (data_bytes + sizeof(Tail) + 63) / 64 * 64;
}

// Where the slots of a communicator lie. The same in all of its processes, so one address tells all.
struct BufferLayout {
    std::uint32_t laps = 0;
    std::uint32_t steps = 0;
    std::uint64_t data_bytes = 0;  // of the longest step; at most kMaxSlotBytes

    std::uint64_t stride() const noexcept { return written(data_bytes); }
    std::uint64_t bytes() const noexcept { return laps * steps * stride(); }
    std::uint32_t index_of(std::uint32_t lap, std::uint32_t step) const noexcept { return lap % laps * steps + step; }
    // The offset at which a write of so many bytes of data begins.
    std::uint64_t begin_of(std::uint32_t lap, std::uint32_t step, std::uint64_t data) const noexcept {
        return (index_of(lap, step) + 1) * stride() - written(data);
    }
    std::uint64_t tail_of(std::uint32_t lap, std::uint32_t step) const noexcept {
        return (index_of(lap, step) + 1) * stride() - sizeof(Tail);
    }
};

// Fills a slot of the sender in the way in which it will lie at the receiver. Returns where the write begins.
COOP_EXPORT std::uint64_t fill(const BufferLayout& layout, std::byte* slots, std::uint32_t lap, std::uint32_t step,
                               const std::byte* memory, const Pieces& pieces) noexcept;

// The slots of a receiver.
class Buffers {
public:
    enum class State : std::uint8_t { kEmpty, kFull, kDamaged };
    struct Slot {
        State state;
        std::uint64_t bytes;    // of the data, if full
        const std::byte* data;  // if full
    };

    Buffers() = default;
    // `slots`: layout.bytes() bytes, 8-aligned, which nobody writes yet.
    COOP_EXPORT Buffers(const BufferLayout& layout, std::byte* slots) noexcept;

    bool any() const noexcept { return slots_ != nullptr; }
    Slot look(std::uint32_t lap, std::uint32_t step) const noexcept {
        if (!any() || step >= layout_.steps) return {State::kEmpty, 0, nullptr};
        const Tail tail = std::atomic_ref<Tail>(tail_at(layout_.tail_of(lap, step))).load(std::memory_order_acquire);
        if (tail == 0) return {State::kEmpty, 0, nullptr};  // never written
        return lap_of(tail) == lap ? full(tail, lap, step) : other(tail, lap);
    }

private:
    Tail& tail_at(std::uint64_t offset) const noexcept { return *reinterpret_cast<Tail*>(slots_ + offset); }
    COOP_EXPORT Slot full(Tail tail, std::uint32_t lap, std::uint32_t step) const noexcept;
    COOP_EXPORT static Slot other(Tail tail, std::uint32_t lap) noexcept;

    BufferLayout layout_;
    std::byte* slots_ = nullptr;
};

}  // namespace coop::coll
