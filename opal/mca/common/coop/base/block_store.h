// SPDX-License-Identifier: BSD-3-Clause
//
// Memory from the heap for copies that live briefly. The heap gives free memory back to the system, which takes time
// for each page when it is needed again; a store keeps the blocks it gets back, up to a limit, for the next copies.
//
// Units: bytes. Blocks have 36 lengths, four for each power of two: the copy of a message with its header uses at least
// three quarters of its block, if it is not very short. A message whose length is a power of two fits a block of that
// length, which has kHeaderRoom more for the header. Longer blocks come from the heap each time. Threading: take() and give_back()
// by any thread; `threads` is false if no other thread uses the store at the same time. Ownership: the caller's, between
// take() and give_back().
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "coop/base/spin_lock.h"

namespace coop {

class BlockStore {
public:
    static constexpr std::size_t kHeaderRoom = 64, kLongest = 128 * 1024 + kHeaderRoom;

    explicit BlockStore(std::size_t most_idle = 0) noexcept : most_idle_(most_idle) {}
    BlockStore(const BlockStore&) = delete;
    BlockStore& operator=(const BlockStore&) = delete;
    ~BlockStore() { clear(); }

    // How much is kept at most. Before the first call of take().
    void limit(std::size_t most_idle) noexcept { most_idle_ = most_idle; }

    // Returns memory for `bytes` bytes, aligned as by malloc(), or null if there is none.
    [[nodiscard]] void* take(std::size_t bytes, bool threads = true) noexcept {
        if (bytes <= kLongest) {
            const std::size_t number = class_of(bytes);
            const SpinGuard guard(lock_, threads);
            if (idle_[number]) return pop(number);
        }
        if (void* memory = std::malloc(block_for(bytes))) return memory;
        {
            const SpinGuard guard(lock_, threads);
            clear();
        }
        return std::malloc(block_for(bytes));
    }

    // `bytes` as in take(); null does nothing. If there are too many idle blocks, those of other lengths go first: lengths
    // that are in use now are likely to be used next.
    void give_back(void* memory, std::size_t bytes, bool threads = true) noexcept {
        if (!memory) return;
        Idle* surplus = new (memory) Idle{nullptr};
        if (bytes <= kLongest && block_for(bytes) <= most_idle_) {
            const SpinGuard guard(lock_, threads);
            surplus = keep(surplus, class_of(bytes));
        }
        while (surplus) std::free(std::exchange(surplus, surplus->next));
    }

    // Gives the idle blocks back to the heap. Not while another thread uses the store.
    void clear() noexcept {
        for (std::size_t number = 0; number < kClasses; ++number)
            while (idle_[number]) std::free(pop(number));
    }

    std::size_t idle_bytes() const noexcept { return idle_bytes_; }  // for tests

    // The length of the block for `bytes` bytes.
    static constexpr std::size_t block_for(std::size_t bytes) noexcept {
        return bytes > kLongest ? bytes : length_of(class_of(bytes));
    }

private:
    struct Idle {
        Idle* next;
    };

    static constexpr std::size_t kShortest = 256;
    static constexpr std::size_t class_of(std::size_t bytes) noexcept {
        const std::size_t last = std::max(bytes, kShortest + kHeaderRoom + 1) - kHeaderRoom - 1;
        const auto power = static_cast<std::size_t>(std::bit_width(last)) - 1;  // 2^power <= last < 2 * 2^power
        const std::size_t quarter = last >> (power - 2) & 3;
        return 4 * (power - std::bit_width(kShortest) + 1) + quarter;
    }
    static constexpr std::size_t length_of(std::size_t number) noexcept {
        return ((kShortest / 4 * (5 + number % 4)) << number / 4) + kHeaderRoom;
    }
    static constexpr std::size_t kClasses = 36;

    void* pop(std::size_t number) noexcept {
        Idle* const block = idle_[number];
        idle_[number] = block->next;
        idle_bytes_ -= length_of(number);
        return block;
    }

    // Keeps the block, and returns the linked blocks that have to go instead: those of other lengths, the longest first. If
    // there is no room even then, the block itself goes as well.
    Idle* keep(Idle* block, std::size_t number) noexcept {
        const auto is_full = [&] { return idle_bytes_ + length_of(number) > most_idle_; };
        Idle* surplus = nullptr;
        for (std::size_t other = kClasses; other-- > 0 && is_full();)
            while (other != number && idle_[other] && is_full()) surplus = new (pop(other)) Idle{surplus};
        if (is_full()) return new (block) Idle{surplus};
        idle_[number] = new (block) Idle{idle_[number]};
        idle_bytes_ += length_of(number);
        return surplus;
    }

    SpinLock lock_;
    std::array<Idle*, kClasses> idle_{};
    std::size_t idle_bytes_ = 0;
    std::size_t most_idle_;
};

static_assert(BlockStore::block_for(BlockStore::kLongest) == BlockStore::kLongest);

}  // namespace coop
