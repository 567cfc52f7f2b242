// SPDX-License-Identifier: BSD-3-Clause
//
// A counter word, used by the usage tables and the counters. All accesses are relaxed: a tally synchronizes
// nothing.
//
// Threading: with `threads` true every update is one atomic operation; with false the word has one writer, and
// an update is a load, an addition and a store. Reading is safe from any thread in both cases.
#pragma once

#include <atomic>
#include <cstdint>

namespace coop {

class Tally {
public:
    std::uint64_t read() const noexcept {
        return std::atomic_ref<std::uint64_t>(word_).load(std::memory_order_relaxed);
    }

    // Returns the value after the addition.
    std::uint64_t add(std::uint64_t n, bool threads) noexcept {
        std::atomic_ref<std::uint64_t> word(word_);
        if (threads) return word.fetch_add(n, std::memory_order_relaxed) + n;
        const std::uint64_t sum = word.load(std::memory_order_relaxed) + n;
        word.store(sum, std::memory_order_relaxed);
        return sum;
    }

    std::uint64_t subtract(std::uint64_t n, bool threads) noexcept { return add(std::uint64_t{0} - n, threads); }

    // Sets the word to the larger of its value and `value`.
    void raise_to(std::uint64_t value, bool threads) noexcept {
        std::atomic_ref<std::uint64_t> word(word_);
        std::uint64_t seen = word.load(std::memory_order_relaxed);
        if (!threads) {
            if (seen < value) word.store(value, std::memory_order_relaxed);
            return;
        }
        while (seen < value && !word.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
        }
    }

    void set(std::uint64_t value) noexcept {
        std::atomic_ref<std::uint64_t>(word_).store(value, std::memory_order_relaxed);
    }

private:
    alignas(8) mutable std::uint64_t word_ = 0;  // mutable: atomic_ref has no const form
};

}  // namespace coop
