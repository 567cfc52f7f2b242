// SPDX-License-Identifier: BSD-3-Clause
//
// Handles that travel on the wire instead of pointers: a peer names a request
// by a 64-bit id, and an id that is stale, forged or damaged resolves to
// nothing instead of to memory.
//
// id = generation << 32 | (slot + 1); 0 is never an id. A slot's generation
// changes with every release, so an id outlives its object harmlessly.
//
// Threading: acquire and release take a spin lock, find takes none. Memory:
// chunks of 256 slots (4 KiB), allocated on demand and never moved.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "coop/base/spin_lock.h"

namespace coop {

template <class T>
class HandleTable {
public:
    static constexpr std::uint32_t kSlotsPerChunk = 256;
    static constexpr std::uint32_t kMaxChunks = 1024;
    static constexpr std::uint32_t kMaxSlots = kSlotsPerChunk * kMaxChunks;

    HandleTable() = default;
    HandleTable(const HandleTable&) = delete;
    HandleTable& operator=(const HandleTable&) = delete;

    ~HandleTable() {
        for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
    }

    // The id under which `object` is found until release(); 0 when all
    // 262144 slots are taken or memory is short: the caller retries later.
    // With `threads` false nobody else is inside the table.
    std::uint64_t acquire(T* object, bool threads = true) noexcept {
        Held held(lock_, threads);
        if (free_ == kNone && !grow()) return 0;
        const std::uint32_t index = free_;
        Slot& slot = at(index);
        free_ = slot.next_free;
        slot.object.store(object, std::memory_order_release);
        const std::uint32_t generation = slot.generation.load(std::memory_order_relaxed) | 1u;
        slot.generation.store(generation, std::memory_order_release);  // odd: in use
        in_use_.store(in_use_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return (std::uint64_t{generation} << 32) | (index + 1);
    }

    // Forgets `id`; an id that is not in use is ignored.
    void release(std::uint64_t id, bool threads = true) noexcept {
        Held held(lock_, threads);
        Slot* slot = live_slot(id);
        if (!slot) return;
        slot->generation.store(static_cast<std::uint32_t>(id >> 32) + 1, std::memory_order_release);
        slot->object.store(nullptr, std::memory_order_relaxed);
        slot->next_free = free_;
        free_ = static_cast<std::uint32_t>(id) - 1;
        in_use_.store(in_use_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
    }

    // The object behind `id`, or null when there is none (any more).
    T* find(std::uint64_t id) const noexcept {
        Slot* slot = live_slot(id);
        if (!slot) return nullptr;
        T* object = slot->object.load(std::memory_order_acquire);
        // Released meanwhile, and perhaps taken by another: not what was asked for.
        return slot->generation.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(id >> 32) ? object : nullptr;
    }

    std::uint32_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

private:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    class Held {
    public:
        Held(SpinLock& lock, bool threads) noexcept : lock_(threads ? &lock : nullptr) {
            if (lock_) lock_->lock();
        }
        ~Held() {
            if (lock_) lock_->unlock();
        }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;

    private:
        SpinLock* lock_;
    };

    struct Slot {
        std::atomic<T*> object{nullptr};
        std::atomic<std::uint32_t> generation{0};  // odd while in use
        std::uint32_t next_free = kNone;           // valid while free
    };

    Slot& at(std::uint32_t index) const noexcept {
        return chunks_[index / kSlotsPerChunk].load(std::memory_order_acquire)[index % kSlotsPerChunk];
    }

    Slot* live_slot(std::uint64_t id) const noexcept {
        const std::uint32_t index = static_cast<std::uint32_t>(id) - 1;  // 0 wraps to a huge index
        const std::uint32_t generation = static_cast<std::uint32_t>(id >> 32);
        if (index >= slots_.load(std::memory_order_acquire) || (generation & 1u) == 0) return nullptr;
        Slot& slot = at(index);
        return slot.generation.load(std::memory_order_acquire) == generation ? &slot : nullptr;
    }

    bool grow() noexcept {
        const std::uint32_t first = slots_.load(std::memory_order_relaxed);
        if (first == kMaxSlots) return false;
        Slot* chunk = new (std::nothrow) Slot[kSlotsPerChunk];
        if (!chunk) return false;
        for (std::uint32_t i = 0; i < kSlotsPerChunk; ++i)
            chunk[i].next_free = i + 1 < kSlotsPerChunk ? first + i + 1 : kNone;
        chunks_[first / kSlotsPerChunk].store(chunk, std::memory_order_release);
        slots_.store(first + kSlotsPerChunk, std::memory_order_release);
        free_ = first;
        return true;
    }

    std::array<std::atomic<Slot*>, kMaxChunks> chunks_{};
    std::atomic<std::uint32_t> slots_{0};
    SpinLock lock_;
    std::uint32_t free_ = kNone;
    std::atomic<std::uint32_t> in_use_{0};
};

}  // namespace coop
