// SPDX-License-Identifier: BSD-3-Clause
//
// Operations on memory of other processes of the node that is not shared: windows of MPI_Win_create and dynamic memory.
// The origin reads and writes it by system calls (CMA); the target does nothing.
//
// A call costs a system call, and a quarter of one for each further block. So in passive epochs, short operations wait until
// one call executes several of them (cma_queued.cc). In active epochs, where the target takes part anyway, short blocks are
// collected as messages, and both processes copy a long one (rendezvous.cc).
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <sched.h>

#include "cma.h"
#include "coop/node/remote_copy.h"
#include "diagnose.h"
#include "element_writes.h"
#include "quick.h"
#include "window.h"

namespace coop::osc {
namespace {

using node::RemoteCopy;

constexpr std::uint64_t kShort = 512;       // bytes of a block that is packed here rather than listed
constexpr std::size_t kShortBlock = 256;    // bytes that an accumulate reads into an array here
constexpr std::size_t kBuffer = 64 * 1024;  // through which short blocks of the origin go

bool has_long_blocks(const rma::RunBuilder& layout) noexcept {
    const std::uint64_t blocks = rma::count_blocks(layout.runs());
    return blocks <= 2 || layout.bytes() / blocks >= kShort;
}

// The first `bytes` of the origin's data, as addresses. False: its blocks are short, or not regular.
bool list_origin(const Origin& origin, std::uint64_t bytes, rma::RunBuilder& to) {
    if (std::byte* const block = origin.contiguous()) {
        to.add(reinterpret_cast<std::uintptr_t>(block), bytes);
        return true;
    }
    const Target as_target{0, 0, origin.count, origin.type};
    if (!has_few_runs(as_target)) return false;
    flatten(as_target, reinterpret_cast<std::uintptr_t>(origin.address), bytes, to);
    return has_long_blocks(to);
}

// With `gaps`, a read.
bool copy_lists(RemoteCopy& copy, rma::RunCursor here, rma::RunCursor there, std::uint64_t base, bool gaps) noexcept {
    Gap gap;
    std::uint64_t end = UINT64_MAX;
    while (!there.at_end()) {
        const rma::Block mine = here.next(there.left_of_block());
        const rma::Block its = there.next(mine.bytes);
        if (gaps && !gap.add(copy, base, end, its.offset)) return false;
        if (!copy.add(reinterpret_cast<void*>(mine.offset), base + its.offset, its.bytes)) return false;
        end = its.offset + its.bytes;
    }
    return copy.flush();
}

}  // namespace

// Reads the regions that the target has attached, unless they are known. False: the kernel refuses.
bool Window::knows_attached(Peer& peer) const {
    constexpr std::uint64_t kMostRegions = std::uint64_t{1} << 24;
    const SharedLocks& words = *memory_.locks[peer.rank];
    for (;; sched_yield()) {
        const std::uint64_t version = words.attached_version.load(std::memory_order_acquire);
        if (version == peer.attached_version) return true;
        const std::uint64_t at = words.attached_at.load(std::memory_order_relaxed);
        const std::uint64_t count = words.attached_count.load(std::memory_order_relaxed);
        const auto is_current = [&] {
            std::atomic_thread_fence(std::memory_order_acquire);
            return version % 2 == 0 && words.attached_version.load(std::memory_order_relaxed) == version;
        };
        if (!is_current()) continue;
        if (count > kMostRegions) return false;
        peer.attached_version = UINT64_MAX;
        peer.attached.resize(count);
        RemoteCopy copy(cards_[peer.rank].pid, RemoteCopy::To::kHere);
        const bool copied = copy.add(peer.attached.data(), at, count * sizeof(rma::Region)) && copy.flush();
        if (!is_current()) continue;
        if (!copied) return false;
        peer.attached_version = version;
        return true;
    }
}

// The process attaches or detaches memory; others of the node may be reading what is attached.
bool Window::change_attached(bool attaches, const void* base, std::size_t bytes) {
    SharedLocks* const words = memory_.locks.empty() ? nullptr : memory_.locks[rank_];
    struct Change {
        SharedLocks* const words;
        const rma::Attachments& attachments;
        Change(SharedLocks* of, const rma::Attachments& all) noexcept : words(of), attachments(all) {
            if (!words) return;
            words->attached_version.fetch_add(1, std::memory_order_relaxed);
            // Who copies one of the changes that follow also finds another version.
            std::atomic_thread_fence(std::memory_order_release);
        }
        ~Change() {
            if (!words) return;
            words->attached_at.store(reinterpret_cast<std::uintptr_t>(attachments.regions().data()),
                                     std::memory_order_relaxed);
            words->attached_count.store(attachments.size(), std::memory_order_relaxed);
            words->attached_version.fetch_add(1, std::memory_order_release);
        }
        Change(const Change&) = delete;
        Change& operator=(const Change&) = delete;
    } const change(words, attachments_);
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    return attaches ? attachments_.attach(address, bytes) : attachments_.detach(address);
}

bool Window::may_copy(std::uint32_t rank, std::span<const rma::Run> runs) const {
    if (!cards_[rank].copies) return false;
    if (!is_dynamic()) return true;
    Peer& there = *peers_[rank];
    return knows_attached(there) && rma::are_attached(runs, there.attached);
}

bool Window::may_read_gaps(std::uint32_t rank, std::span<const rma::Run> runs) const noexcept {
    return !is_dynamic() || rma::is_all_attached(runs, peers_[rank]->attached);
}

std::optional<Window::Choice> Window::choose_near(const Origin& origin, std::uint32_t rank,
                                                  const rma::RunBuilder& layout) const {
    if (!may_copy(rank, layout.runs())) {
        const bool is_near = cards_[rank].pid != 0;
        if (is_refused_ && is_near && !by_hcas()) return Choice{Way::kMessage, Reason::kNotPermitted};
        return std::nullopt;
    }
    constexpr Choice kCopied{Way::kCma, Reason::kNotShared};
    if (is_passive()) return kCopied;
    if (is_long_block(origin, layout)) return Choice{Way::kMessage, Reason::kBothCopy};
    const std::uint64_t blocks = rma::count_blocks(layout.runs());
    const bool is_short = layout.bytes() / blocks < static_cast<std::uint64_t>(process.config.cma_min);
    return is_short ? Choice{Way::kMessage, Reason::kCollected} : kCopied;
}

// Returns 0, or an errno.
int Window::put_near(const Card& card, const Origin& origin, const rma::RunBuilder& layout) {
    RemoteCopy copy(card.pid, RemoteCopy::To::kThere);
    rma::RunBuilder here;
    rma::RunCursor there(layout.runs());
    if (list_origin(origin, layout.bytes(), here)) {
        copy_lists(copy, rma::RunCursor(here.runs()), there, card.base, false);
        return copy.error();
    }
    Packer packer(origin);
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(std::min<std::uint64_t>(kBuffer, layout.bytes()));
    for (std::uint64_t left = layout.bytes(); left > 0;) {
        const std::uint64_t part = std::min<std::uint64_t>(kBuffer, left);
        packer.take(buffer.get(), part);
        for (std::uint64_t at = 0; at < part;) {
            const rma::Block block = there.next(part - at);
            if (!copy.add(buffer.get() + at, card.base + block.offset, block.bytes)) return copy.error();
            at += block.bytes;
        }
        if (!copy.flush()) return copy.error();
        left -= part;
    }
    return 0;
}

// Returns 0, or an errno. With `gaps`, blocks that are close together are read with what lies between them.
int Window::get_near(const Card& card, const Origin& origin, const rma::RunBuilder& layout, bool gaps) {
    RemoteCopy copy(card.pid, RemoteCopy::To::kHere);
    rma::RunBuilder here;
    if (has_long_blocks(layout) && list_origin(origin, layout.bytes(), here)) {
        copy_lists(copy, rma::RunCursor(here.runs()), rma::RunCursor(layout.runs()), card.base, gaps);
        return copy.error();
    }
    std::byte* to = origin.contiguous();
    std::optional<Unpacker> unpacker;
    if (!to) unpacker.emplace(origin, nullptr);
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kBuffer);
    rma::Cover cover;
    std::uint64_t position = 0;
    for (rma::RunCursor there(layout.runs()); !there.at_end();) {
        cover.take(there, 0, kBuffer, gaps);
        for (const rma::Transfer& each : cover.transfers())
            if (!copy.add(buffer.get() + each.at, card.base + each.offset, each.bytes)) return copy.error();
        if (!copy.flush()) return copy.error();
        for (const rma::Piece& piece : cover.pieces()) {
            if (to) std::memcpy(to + position, buffer.get() + piece.at, piece.bytes);
            else unpacker->put(position, buffer.get() + piece.at, piece.bytes);
            position += piece.bytes;
        }
    }
    if (unpacker) unpacker->finish();
    return 0;
}

void Window::copy_near(Lock& lock, bool puts, const Origin& origin, const Target& target, const rma::RunBuilder& layout,
                       Request* request) {
    const Card& card = cards_[target.rank];
    const bool gaps = !puts && may_read_gaps(target.rank, layout.runs());
    lock.unlock();
    int error = process.faults.hit(puts ? Fault::kPut : Fault::kGet) ? EPERM
                : puts                                               ? put_near(card, origin, layout)
                                                                     : get_near(card, origin, layout, gaps);
    // What lies between the blocks may be no memory.
    if (error == EFAULT && gaps) error = get_near(card, origin, layout, false);
    if (error == ESRCH) copy_failed(target.rank, error);
    if (error == 0) {
        counts_.count(Way::kCma, Reason::kNotShared, layout.bytes());
        if (!puts) progress_sometimes();
        return;
    }
    counts_.count(Way::kMessage, Reason::kRefused, layout.bytes());
    lock.lock();
    if (puts) put_message(lock, peer(target.rank), origin, layout);
    else get_message(lock, peer(target.rank), origin, layout, request);
}

bool Window::accumulates_near(const Target& target, const Place& place) const {
    if (!by_words()) return false;
    // Accumulates keep their order.
    if (const Peer* const there = peers_[target.rank].get(); there && there->is_behind()) return false;
    rma::RunBuilder layout;
    if (is_dynamic()) flatten(target, place.offset, target.bytes(), layout);
    return may_copy(target.rank, layout.runs());
}

// Returns how many bytes of the elements have been written. Ends the job if the kernel has stopped inside of an element, because
// nobody could execute the accumulate on it once then.
std::uint64_t Window::write_elements(std::uint32_t rank, std::byte* from, std::span<const rma::Transfer> writes,
                                     const ElementType& element) {
    const auto [error, copied] = copy_transfers(cards_[rank], RemoteCopy::To::kThere, from, writes);
    if (error == ESRCH || (error && copied % element.size != 0)) copy_failed(rank, error);
    return copied / element.size * element.span;
}

std::uint64_t Window::combine_block(std::uint32_t rank, const rma::Block& there, const std::byte* from,
                                    std::byte* result, const ElementType& element, std::uint8_t operation) {
    alignas(16) std::array<std::byte, kShortBlock> copy;
    const rma::Transfer all{there.offset, 0, static_cast<std::uint32_t>(there.bytes)};
    const AccumulateLock word(memory_.locks[rank], mutex_);
    if (result || operation != kReplace) {
        const int error = copy_transfers(cards_[rank], RemoteCopy::To::kHere, copy.data(), {&all, 1}).error;
        if (error == ESRCH) copy_failed(rank, error);
        if (error) return 0;
    }
    if (result) std::memcpy(result, copy.data(), there.bytes);
    if (!from) return there.bytes;
    reduce(operation, element, from, copy.data(), there.bytes);
    return write_elements(rank, copy.data(), {&all, 1}, element);
}

bool Window::accumulate_near(Lock& lock, const Origin& origin, const Origin* result, const Target& target,
                             const Place& place, const ElementType& element, std::uint8_t operation, Executed& done) {
    const Card& card = cards_[target.rank];
    SharedLocks* const words = memory_.locks[target.rank];
    rma::RunBuilder layout;
    flatten_elements(target, element, place.offset, operation == kNoOp ? target.bytes() : origin.bytes(), layout);
    const bool reads = result || operation != kReplace;
    bool gaps = reads && may_read_gaps(target.rank, layout.runs());
    lock.unlock();
    progress_sometimes();
    const Operand operand(origin, element, operation);
    const std::byte* const from = operand.data();
    std::byte* const to = result ? result->contiguous() : nullptr;
    const std::optional<rma::Block> block = element.has_gap() || (result && !to) ? std::nullopt : layout.single();
    if (block && block->bytes <= kShortBlock) {
        done.bytes = combine_block(target.rank, *block, from, to, element, operation);
    } else {
        if (result) done.unpacker = std::make_unique<Unpacker>(*result, element.has_gap() ? &element : nullptr);
        const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kMostUnderLock);
        rma::Cover cover;
        for (rma::RunCursor cursor(layout.runs()); !cursor.at_end();) {
            const rma::RunCursor before = cursor;
            cover.take(cursor, 0, kMostUnderLock, gaps, element.span);
            std::vector<rma::Transfer> writes;
            if (from) writes = writes_of(cover, element);
            const std::uint64_t start = done.bytes;
            const AccumulateLock word(words, mutex_);
            const int error = reads ? copy_transfers(card, RemoteCopy::To::kHere, buffer.get(), cover.transfers()).error
                                    : 0;
            if (error == ESRCH) copy_failed(target.rank, error);
            if (error == EFAULT && std::exchange(gaps, false)) {
                cursor = before;
                continue;
            }
            if (error) break;
            const std::uint64_t end = compute(cover, buffer.get(), from, operation, element, done.unpacker.get(),
                                              start);
            done.bytes = from ? start + write_elements(target.rank, buffer.get(), writes, element) : end;
            if (done.bytes < end) break;
        }
    }
    if (done.bytes < layout.bytes()) {
        lock.lock();
        return false;
    }
    if (done.unpacker) done.unpacker->finish();
    counts_.count(Way::kCma, Reason::kAtOrigin, target.bytes());
    return true;
}

bool Window::swap_near(Lock& lock, const void* value, const void* comparand, void* result, std::size_t bytes,
                       std::uint32_t rank, const Place& place) {
    const Card& card = cards_[rank];
    const rma::Transfer all{place.offset, 0, static_cast<std::uint32_t>(bytes)};
    lock.unlock();
    progress_sometimes();
    alignas(16) std::array<std::byte, 64> found, given;
    std::memcpy(given.data(), value, bytes);
    Copied copied{0, 0};
    {
        const AccumulateLock word(memory_.locks[rank], mutex_);
        copied = copy_transfers(card, RemoteCopy::To::kHere, found.data(), {&all, 1});
        const bool swaps = copied.error == 0 && std::memcmp(found.data(), comparand, bytes) == 0;
        if (swaps) copied = copy_transfers(card, RemoteCopy::To::kThere, given.data(), {&all, 1});
        if (copied.error == ESRCH || (swaps && copied.error && copied.bytes > 0)) copy_failed(rank, copied.error);
    }
    if (copied.error) {
        lock.lock();
        return false;
    }
    std::memcpy(result, found.data(), bytes);
    counts_.count(Way::kCma, Reason::kAtOrigin, bytes);
    return true;
}

}  // namespace coop::osc
