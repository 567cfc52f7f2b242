// SPDX-License-Identifier: BSD-3-Clause
//
// Synchronization of the processes of a window that all share memory: post, start, complete, wait, and a barrier. The
// counterpart of pscw.h, without packets.
//
//     exposed process                           accessing process
//     post() ──── posts[to][from] ────────────► has_post(), take_post()     before the first access
//     all_complete() ◄── completes[to][from] ── complete()
//     take_completes()   wait has ended
//
// Each word has one writer, so that a plain store suffices (no atomic read-modify-write). The barrier is a
// dissemination barrier: in step k a process tells the one 2^k ranks above it that it has come, and waits for the one
// 2^k ranks below.
//
// Units: ranks. Memory: bytes() in shared memory, and 8 bytes for each process in private memory. Threading: the
// caller's lock, except for the barrier, which only one thread of each process may be in. Errors: the constructor may
// throw std::bad_alloc.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace coop::rma {

class NodeSync {
public:
    static constexpr std::uint32_t kMostSteps = 30;

    // Of the shared memory, which begins at a multiple of kLine.
    static constexpr std::size_t kLine = 64;
    static constexpr std::uint64_t bytes(std::uint32_t processes) noexcept {
        return processes * record_bytes(processes);
    }
    // One process calls this before any other uses the memory.
    static void prepare(std::byte* memory, std::uint32_t processes) noexcept {
        for (std::uint64_t i = 0; i < bytes(processes) / sizeof(Word); ++i) new (memory + i * sizeof(Word)) Word(0);
    }

    NodeSync() = default;
    // All processes pass the same memory, and the number of processes.
    NodeSync(std::byte* memory, std::uint32_t processes, std::uint32_t rank)
        : memory_(memory), processes_(processes), rank_(rank), taken_(processes) {}

    // --- accessing process ---

    bool has_post(std::uint32_t source) const noexcept {
        return posts(rank_, source).load(std::memory_order_acquire) != taken_[source].posts;
    }
    void take_post(std::uint32_t source) noexcept { ++taken_[source].posts; }
    void complete(std::uint32_t target) noexcept { count(completes(target, rank_)); }

    // --- exposed process ---

    void post(std::uint32_t to) noexcept { count(posts(to, rank_)); }
    bool all_complete(std::span<const std::uint32_t> group) const noexcept {
        return std::ranges::all_of(group, [&](std::uint32_t source) {
            return completes(rank_, source).load(std::memory_order_acquire) != taken_[source].completes;
        });
    }
    // Precondition: all_complete(group).
    void take_completes(std::span<const std::uint32_t> group) noexcept {
        for (const std::uint32_t source : group) ++taken_[source].completes;
    }

    // --- barrier ---

    void begin_barrier() noexcept {
        ++barrier_;
        step_ = 0;
        tell();
    }
    // Whether all processes have begun it. Until then, call it again.
    bool passes_barrier() noexcept {
        for (; is_step(); ++step_, tell())
            if (static_cast<std::int32_t>(word(rank_, step_).load(std::memory_order_acquire) - barrier_) < 0)
                return false;
        return true;
    }

private:
    // A record for each process: the steps of the barrier, and by source the posts and the completes that came to it.
    using Word = std::atomic<std::uint32_t>;
    static_assert(Word::is_always_lock_free && sizeof(Word) == 4);
    struct Taken {
        std::uint32_t posts = 0, completes = 0;
    };
    static constexpr std::uint64_t in_lines(std::uint64_t words) noexcept {
        return (sizeof(Word) * words + kLine - 1) / kLine * (kLine / sizeof(Word));
    }
    static constexpr std::uint64_t record_bytes(std::uint32_t processes) noexcept {
        return sizeof(Word) * (in_lines(kMostSteps) + 2 * in_lines(processes));
    }

    Word& word(std::uint32_t rank, std::uint64_t index) const noexcept {
        return *std::launder(reinterpret_cast<Word*>(memory_ + rank * record_bytes(processes_) + index * sizeof(Word)));
    }
    Word& posts(std::uint32_t to, std::uint32_t from) const noexcept { return word(to, in_lines(kMostSteps) + from); }
    Word& completes(std::uint32_t to, std::uint32_t from) const noexcept {
        return word(to, in_lines(kMostSteps) + in_lines(processes_) + from);
    }
    // Precondition: no other process writes the word.
    static void count(Word& word) noexcept {
        word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    bool is_step() const noexcept { return step_ < kMostSteps && std::uint32_t{1} << step_ < processes_; }
    void tell() noexcept {
        if (!is_step()) return;
        const std::uint64_t to = (rank_ + (std::uint64_t{1} << step_)) % processes_;
        word(static_cast<std::uint32_t>(to), step_).store(barrier_, std::memory_order_release);
    }

    std::byte* memory_ = nullptr;
    std::uint32_t processes_ = 0, rank_ = 0;
    std::uint32_t barrier_ = 0, step_ = 0;
    std::vector<Taken> taken_;  // by source
};

}  // namespace coop::rma
