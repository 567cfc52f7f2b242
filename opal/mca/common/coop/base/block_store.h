// SPDX-License-Identifier: BSD-3-Clause
//
// Memory from the heap for copies that live briefly. The heap gives free memory back to the system, which takes time
// for each page when it is needed again; a store keeps the blocks it gets back, up to a limit, for the next copies.
//
// Units: bytes. A block has a power of two from 256 B to 64 KiB, and kHeaderRoom more for the header of a message of
// such a length. Longer blocks come from the heap each time. Threading: any thread; `threads` is false if no other
// thread uses the store at the same time. Ownership: the caller's, between take() and give_back().
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "coop/base/spin_lock.h"

namespace coop {

class BlockStore {
public:
    static constexpr std::size_t kShortest = 256, kLongest = 64 * 1024, kHeaderRoom = 64;

    explicit BlockStore(std::size_t most_idle) noexcept : most_idle_(most_idle) {}
    BlockStore(const BlockStore&) = delete;
    BlockStore& operator=(const BlockStore&) = delete;
    ~BlockStore() { clear(); }

    // Returns memory for `bytes` bytes, aligned as by malloc(), or null if there is none.
    [[nodiscard]] void* take(std::size_t bytes, bool threads = true) noexcept {
        if (bytes > length_of(kClasses - 1)) return std::malloc(bytes);
        const std::size_t number = class_of(bytes);
        {
            const SpinGuard guard(lock_, threads);
            if (Idle* const block = idle_[number]) {
                idle_[number] = block->next;
                idle_bytes_ -= length_of(number);
                return block;
            }
        }
        return std::malloc(length_of(number));
    }

    // `bytes` as in take(); null does nothing. If there are too many idle blocks, those of other lengths go first: lengths
    // that are in use now are likely to be used next.
    void give_back(void* memory, std::size_t bytes, bool threads = true) noexcept {
        if (!memory) return;
        if (bytes <= length_of(kClasses - 1)) {
            const std::size_t number = class_of(bytes);
            const SpinGuard guard(lock_, threads);
            if (make_room_for(number)) {
                idle_[number] = new (memory) Idle{idle_[number]};
                idle_bytes_ += length_of(number);
                return;
            }
        }
        std::free(memory);
    }

    // Gives the blocks back to the heap. No other thread may use the store.
    void clear() noexcept {
        for (std::size_t number = 0; number < kClasses; ++number)
            while (idle_[number]) drop(number);
    }

    std::size_t idle_bytes() const noexcept { return idle_bytes_; }

    // The length of the block for `bytes` bytes.
    static constexpr std::size_t block_for(std::size_t bytes) noexcept {
        return bytes > length_of(kClasses - 1) ? bytes : length_of(class_of(bytes));
    }

private:
    struct Idle {
        Idle* next;
    };

    static constexpr std::size_t kClasses = std::bit_width(kLongest / kShortest);

    static constexpr std::size_t length_of(std::size_t number) noexcept { return (kShortest << number) + kHeaderRoom; }
    static constexpr std::size_t class_of(std::size_t bytes) noexcept {
        return bytes <= length_of(0) ? 0
                                     : static_cast<std::size_t>(std::bit_width((bytes - kHeaderRoom - 1) / kShortest));
    }

    void drop(std::size_t number) noexcept {
        Idle* const block = idle_[number];
        idle_[number] = block->next;
        idle_bytes_ -= length_of(number);
        std::free(block);
    }

    // Drops idle blocks of other lengths until there is room for one of this length. Returns false if that is not enough.
    bool make_room_for(std::size_t number) noexcept {
        if (length_of(number) > most_idle_) return false;
        for (std::size_t other = 0; other < kClasses; ++other)
            while (other != number && idle_[other] && idle_bytes_ + length_of(number) > most_idle_) drop(other);
        return idle_bytes_ + length_of(number) <= most_idle_;
    }

    SpinLock lock_;
    std::array<Idle*, kClasses> idle_{};
    std::size_t idle_bytes_ = 0;
    const std::size_t most_idle_;
};

}  // namespace coop
