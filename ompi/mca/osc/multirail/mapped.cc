// SPDX-License-Identifier: BSD-3-Clause
//
// Operations on memory that this process has mapped: its own, and that of its node in allocated windows.
#include <algorithm>
#include <cstring>
#include <functional>

#include "quick.h"

namespace coop::osc {
namespace {

// Copies between memory of this process with any layouts.
int copy(const void* from, int from_count, ompi_datatype_t* from_type, void* to, int to_count,
         ompi_datatype_t* to_type) noexcept {
    return ompi_datatype_sndrcv(from, from_count, from_type, to, to_count, to_type);
}

// Copies between the blocks of a run and packed memory. kBytes: the size of a block, if known when compiling; else 0.
template <bool kPuts, std::size_t kBytes>
void copy_blocks(const rma::Run& run, std::byte* packed) noexcept {
    const std::size_t bytes = kBytes ? kBytes : run.bytes;
    for (std::uint64_t i = 0; i < run.repeat; ++i, packed += bytes) {
        auto* const block = reinterpret_cast<std::byte*>(run.offset + static_cast<std::uint64_t>(run.stride) * i);
        std::memmove(kPuts ? block : packed, kPuts ? packed : block, bytes);
    }
}

template <bool kPuts>
void copy_run(const rma::Run& run, std::byte* packed) noexcept {
    switch (run.bytes) {
    case 4: return copy_blocks<kPuts, 4>(run, packed);
    case 8: return copy_blocks<kPuts, 8>(run, packed);
    case 16: return copy_blocks<kPuts, 16>(run, packed);
    case 64: return copy_blocks<kPuts, 64>(run, packed);
    default: return copy_blocks<kPuts, 0>(run, packed);
    }
}

// The first `bytes` of the target's data, at `at`; a put does not write to `packed`.
template <bool kPuts>
void copy_runs(const Target& target, const std::byte* at, std::uint64_t bytes, std::byte* packed) {
    rma::RunBuilder layout;
    flatten(target, reinterpret_cast<std::uintptr_t>(at), bytes, layout);
    for (const rma::Run& run : layout.runs()) {
        copy_run<kPuts>(run, packed);
        packed += run.bytes * run.repeat;
    }
}

}  // namespace

void copy_long_block(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
    constexpr std::uint64_t kPiece = 128 * 1024;
    const bool overlap = std::less<>()(to, from + bytes) && std::less<>()(from, to + bytes);
    if (overlap) {
        std::memmove(to, from, bytes);
        return;
    }
    for (std::uint64_t done = 0; done < bytes; done += kPiece)
        std::memcpy(to + done, from + done, std::min(kPiece, bytes - done));
}

int Window::put_mapped(const Origin& origin, const Target& target, std::byte* at) {
    std::byte* const from = origin.contiguous();
    const bool one_block = target.is_contiguous();
    if (!from || (!one_block && !has_few_runs(target)))
        return copy(origin.address, origin.count, origin.type, at, target.count, target.type);
    if (one_block) {
        copy_block(shifted(at, target.type->super.true_lb), from, origin.bytes());
        return OMPI_SUCCESS;
    }
    copy_runs<true>(target, at, origin.bytes(), from);
    return OMPI_SUCCESS;
}

int Window::get_mapped(const Origin& origin, const Target& target, const std::byte* at) {
    std::byte* const to = origin.contiguous();
    const bool one_block = target.is_contiguous();
    if (!to || (!one_block && !has_few_runs(target)))
        return copy(at, target.count, target.type, origin.address, origin.count, origin.type);
    if (one_block) {
        copy_block(to, shifted(at, target.type->super.true_lb), target.bytes());
        return OMPI_SUCCESS;
    }
    copy_runs<false>(target, at, target.bytes(), to);
    return OMPI_SUCCESS;
}

void Window::accumulate_mapped(const Origin& origin, const Origin* result, const Target& target, std::byte* at,
                               const ElementType& element, std::uint8_t operation, SharedLocks* words) {
    const std::uint64_t bytes = operation == kNoOp ? target.bytes() : origin.bytes();
    // Fast path for the most frequent accumulates, without a list of blocks.
    if (!element.has_gap() && target.is_contiguous()) {
        const std::byte* const from = operation == kNoOp ? nullptr : origin.contiguous();
        std::byte* const to = result ? result->contiguous() : nullptr;
        if ((from || operation == kNoOp) && (to || !result)) {
            std::byte* const there = shifted(at, target.type->super.true_lb);
            const std::uint64_t most = kMostUnderLock / element.span * element.span;
            for (std::uint64_t done = 0; done < bytes; done += most) {
                const std::uint64_t part = std::min(most, bytes - done);
                const AccumulateLock lock(words, mutex_);
                if (to) std::memcpy(to + done, there + done, part);
                if (from) reduce(operation, element, from + done, there + done, part);
            }
            return;
        }
    }
    rma::RunBuilder layout;
    flatten_elements(target, element, reinterpret_cast<std::uintptr_t>(at), bytes, layout);
    const Operand operand(origin, element, operation);
    const std::byte* const from = operand.data();
    std::byte* to = result && !element.has_gap() ? result->contiguous() : nullptr;
    std::optional<Unpacker> unpacker;
    if (result && !to) unpacker.emplace(*result, element.has_gap() ? &element : nullptr);
    std::uint64_t position = 0;
    for (rma::RunCursor cursor(layout.runs()); !cursor.at_end();) {
        const rma::Block block = cursor.next(kMostUnderLock / element.span * element.span);
        auto* const there = reinterpret_cast<std::byte*>(block.offset);
        const AccumulateLock lock(words, mutex_);
        if (to) std::memcpy(to + position, there, block.bytes);
        else if (unpacker) unpacker->put(position, there, block.bytes);
        if (from) reduce(operation, element, from + position, there, block.bytes);
        position += block.bytes;
    }
    if (unpacker) unpacker->finish();
}

void Window::swap_mapped(const void* value, const void* comparand, void* result, std::size_t bytes, std::byte* at,
                         SharedLocks* words) {
    const AccumulateLock lock(words, mutex_);
    std::memcpy(result, at, bytes);
    if (std::memcmp(at, comparand, bytes) == 0) std::memcpy(at, value, bytes);
}

}  // namespace coop::osc
