// SPDX-License-Identifier: BSD-3-Clause
//
// Short calls on memory that this process has mapped, without the detours of the general ones. They check as much: an
// epoch permits operations on the target (coop/rma/ready_targets.h), and the access lies inside of the window. Whatever
// is not as they expect is left to the general calls, which also find out what is wrong.
//
// Threading: any, without the mutex: what they read does not change, except for ReadyTargets, where only the end of an
// epoch makes a target unready, and no operation of the program runs beside that. flush_quickly() does need it, and is
// not for processes where threads meet in MPI. Errors: none.
#pragma once

#include <atomic>
#include <cstring>

#include "mapped.h"
#include "window.h"

namespace coop::osc {

// A program may poll memory that is mapped here until another process, which waits for this one, changes it. (Threads
// may lose each other's additions, which does not matter.)
inline void Window::progress_sometimes(std::uint32_t every) noexcept {
    const std::uint32_t calls = calls_.load(std::memory_order_relaxed);
    calls_.store(calls + 1, std::memory_order_relaxed);
    if (calls % every == 0) [[unlikely]]
        opal_progress();
}

// Where the first byte goes. Null: the access is not one block of mapped memory inside of the window, or the epoch does
// not permit it.
[[gnu::always_inline]] inline std::byte* Window::quick_place(const Target& target) noexcept {
    if (target.rank >= processes_) return nullptr;
    const Card& card = cards_[target.rank];
    if (!card.is_mapped || !target.is_contiguous()) return nullptr;
    const std::ptrdiff_t low = target.type->super.true_lb;
    const auto offset = rma::offset_in(target.displacement, card.unit, {low, target.bytes()}, card.bytes);
    if (!offset || (!ready_.has(target.rank) && !make_ready(target.rank))) return nullptr;
    return shifted(card.mapped + *offset, low);
}

[[gnu::always_inline]] inline bool Window::put_quickly(const Origin& origin, const Target& target) noexcept {
    const std::uint64_t bytes = origin.bytes();
    if (bytes == 0 || bytes > target.bytes()) return false;
    const std::byte* const from = origin.contiguous();
    std::byte* const there = from ? quick_place(target) : nullptr;
    if (!there) return false;
    counts_.count(Way::kMapped, why_mapped(target.rank), bytes);
    copy_block(there, from, bytes);
    return true;
}

[[gnu::always_inline]] inline bool Window::get_quickly(const Origin& origin, const Target& target) noexcept {
    const std::uint64_t bytes = target.bytes();
    if (bytes == 0 || bytes > origin.bytes()) return false;
    std::byte* const to = origin.contiguous();
    const std::byte* const there = to ? quick_place(target) : nullptr;
    if (!there) return false;
    counts_.count(Way::kMapped, why_mapped(target.rank), bytes);
    progress_sometimes();
    copy_block(to, there, bytes);
    return true;
}

// Only if all processes have mapped the window, both sides have the same predefined type without gaps, and the
// operation is defined for it.
[[gnu::always_inline]] inline bool Window::accumulate_quickly(const Origin& origin, const Origin* result,
                                                              const Target& target, ompi_op_t& op) noexcept {
    const std::uint64_t bytes = target.bytes();
    const bool reads_origin = &op != &ompi_mpi_op_no_op.op;
    if (!all_mapped_ || bytes == 0 || bytes > kMostUnderLock || !is_plain(*target.type)) return false;
    if (reads_origin && (origin.type != target.type || origin.count != target.count || !has_function(op, *origin.type)))
        return false;
    if (result && (result->type != target.type || result->count != target.count)) return false;
    std::byte* const there = quick_place(target);
    if (!there || !is_aligned(*target.type, there) || !is_aligned(*target.type, origin.address)) return false;
    counts_.count(Way::kMapped, why_mapped(target.rank), bytes);
    if (result) progress_sometimes();
    const AccumulateLock lock(memory_.locks[target.rank], mutex_);
    if (result) copy_block(static_cast<std::byte*>(result->address), there, bytes);
    if (&op == &ompi_mpi_op_replace.op) copy_block(there, static_cast<const std::byte*>(origin.address), bytes);
    else if (reads_origin)
        ompi_op_reduce(&op, origin.address, there, static_cast<std::size_t>(origin.count), origin.type);
    return true;
}

// Each call on memory that all have mapped has carried out its operation.
[[gnu::always_inline]] inline bool Window::flush_quickly(std::uint32_t rank) noexcept {
    if (!all_mapped_ || process.threads || epochs_.flush(rank) != rma::Verdict::kProceed) return false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    progress_sometimes();
    return true;
}

}  // namespace coop::osc
