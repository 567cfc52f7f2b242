// SPDX-License-Identifier: BSD-3-Clause
//
// Handles that travel on the wire instead of pointers: a peer names a request
// by a 64-bit id, and an id that is stale, forged or damaged resolves to
// nothing instead of to memory.
//
// id = generation << 32 | (slot + 1); 0 is never an id. A slot's generation
// changes with every release, so using an id after its release is harmless.
//
// Threading: acquire and release take a spin lock, find takes none. Memory: 16 bytes
// for each slot, in chunks that are allocated on demand and never move: the first has
// 256 slots, each further one twice as many as the previous one. Only memory limits their number.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "coop/base/spin_lock.h"

namespace coop {

namespace detail {

constexpr std::uint32_t kFirstChunk = 256;  // slots
constexpr std::uint32_t kChunks = 24;       // enough for all slots that 32 bits can number

}  // namespace detail

// Limit: maximum number of slots. Tests lower it to reach a full table.
template <class T, std::uint32_t Limit = UINT32_MAX - detail::kFirstChunk + 1>
class HandleTable {
public:
    static constexpr std::uint32_t kMaxSlots = Limit;

    HandleTable() = default;
    HandleTable(const HandleTable&) = delete;
    HandleTable& operator=(const HandleTable&) = delete;

    ~HandleTable() {
        for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
    }

    // Returns an id by which find() returns `object` until release(); 0 if there is no memory for another slot.
    // `threads` is false if no other thread uses the table at the same time.
    std::uint64_t acquire(T* object, bool threads = true) noexcept {
        const SpinGuard guard(lock_, threads);
        const std::uint32_t index = take_slot();
        if (index == kNone) return 0;
        Slot& slot = at(index);
        slot.object.store(object, std::memory_order_release);
        const std::uint32_t generation = slot.generation.load(std::memory_order_relaxed) | 1u;
        slot.generation.store(generation, std::memory_order_release);  // odd: in use
        in_use_.store(in_use_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return (std::uint64_t{generation} << 32) | (index + 1);
    }

    // Forgets `id`; ignores an id that is not in use.
    void release(std::uint64_t id, bool threads = true) noexcept {
        const SpinGuard guard(lock_, threads);
        Slot* slot = live_slot(id);
        if (!slot) return;
        slot->generation.store(static_cast<std::uint32_t>(id >> 32) + 1, std::memory_order_release);
        slot->object.store(nullptr, std::memory_order_relaxed);
        slot->next_free = free_;
        free_ = static_cast<std::uint32_t>(id) - 1;
        in_use_.store(in_use_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    }

    // Returns the object that `id` names, or null if the id is not in use.
    T* find(std::uint64_t id) const noexcept {
        Slot* slot = live_slot(id);
        if (!slot) return nullptr;
        T* object = slot->object.load(std::memory_order_acquire);
        // The slot may have been released and reused since live_slot() checked its generation.
        return slot->generation.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(id >> 32) ? object
                                                                                                        : nullptr;
    }

    std::uint32_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

private:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Slot {
        std::atomic<T*> object{nullptr};
        std::atomic<std::uint32_t> generation{0};  // odd while in use
        std::uint32_t next_free = 0;               // valid once the slot has been released
    };

    static constexpr std::uint32_t chunk_of(std::uint32_t index) noexcept {
        return static_cast<std::uint32_t>(std::bit_width(index / detail::kFirstChunk + 1)) - 1;
    }
    static constexpr std::uint32_t begin_of(std::uint32_t chunk) noexcept {
        return detail::kFirstChunk * ((1u << chunk) - 1);
    }
    static_assert(Limit > 0 && chunk_of(Limit - 1) < detail::kChunks);

    Slot& at(std::uint32_t index) const noexcept {
        const std::uint32_t chunk = chunk_of(index);
        return chunks_[chunk].load(std::memory_order_acquire)[index - begin_of(chunk)];
    }

    Slot* live_slot(std::uint64_t id) const noexcept {
        const std::uint32_t index = static_cast<std::uint32_t>(id) - 1;  // 0 wraps to a huge index
        const std::uint32_t generation = static_cast<std::uint32_t>(id >> 32);
        if (index >= slots_.load(std::memory_order_acquire) || (generation & 1u) == 0) return nullptr;
        Slot& slot = at(index);
        return slot.generation.load(std::memory_order_acquire) == generation ? &slot : nullptr;
    }

    // Returns a released slot or one that was never used; kNone if there is none.
    std::uint32_t take_slot() noexcept {
        if (free_ != kNone) {
            const std::uint32_t index = free_;
            free_ = at(index).next_free;
            return index;
        }
        return fresh_ < slots_.load(std::memory_order_relaxed) || grow() ? fresh_++ : kNone;
    }

    bool grow() noexcept {
        const std::uint32_t first = slots_.load(std::memory_order_relaxed);
        if (first == Limit) return false;
        const std::uint32_t chunk = chunk_of(first);
        const std::uint32_t count = std::min(detail::kFirstChunk << chunk, Limit - first);
        Slot* slots = new (std::nothrow) Slot[count];
        if (!slots) return false;
        chunks_[chunk].store(slots, std::memory_order_release);
        slots_.store(first + count, std::memory_order_release);
        return true;
    }

    std::array<std::atomic<Slot*>, detail::kChunks> chunks_{};
    std::atomic<std::uint32_t> slots_{0};  // allocated
    SpinLock lock_;
    std::uint32_t free_ = kNone;  // head of the list of released slots
    std::uint32_t fresh_ = 0;     // first slot that was never used
    std::atomic<std::uint32_t> in_use_{0};
};

}  // namespace coop
