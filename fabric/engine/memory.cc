// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/memory.h"

#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fabric/shm/process.h"

namespace coop::fabric {

namespace {

void wait_for_report(const Process& process) {
    while (process.memory_report.load(std::memory_order_seq_cst) != 0 && is_alive(process)) sched_yield();
}

}  // namespace

KeyError look_up(const Segment& subnet, std::uint32_t hca, std::uint32_t pd, std::uint32_t key, std::uint64_t address,
                 std::uint64_t bytes, std::uint32_t access, Range& range) noexcept {
    const std::uint32_t index = region_of_key(key);
    const auto regions = subnet.ever_used<MemoryRegion>(kMemoryRegions);
    if (index >= regions.size()) return KeyError::key;
    const MemoryRegion& region = regions[index];
    if (!Segment::in_use(region) || (region.tag & 0xfe) != (key & 0xfe)) return KeyError::key;
    if (region.hca != hca) return KeyError::key;
    if (region.pd != pd) return KeyError::domain;
    if ((region.access & access) != access) return KeyError::access;
    const std::uint64_t offset = address - region.iova;
    if (address < region.iova || offset > region.bytes || bytes > region.bytes - offset) return KeyError::bounds;
    if (subnet.header().strict_memory != 0) wait_for_report(subnet.processes()[region.process]);
    if (region.stale.load(std::memory_order_acquire) != 0) return KeyError::stale;
    range = {region.address + offset, bytes, index};
    return KeyError::none;
}

AtWork::AtWork(const Segment& subnet, std::uint32_t process, std::uint32_t region) noexcept : mark_(nullptr) {
    for (auto& mark : subnet.processes()[process].at_work) {
        std::uint32_t free = 0;
        if (mark.load(std::memory_order_relaxed) != 0) continue;
        if (!mark.compare_exchange_strong(free, region + 1, std::memory_order_seq_cst)) continue;
        mark_ = &mark;
        return;
    }
}

AtWork::~AtWork() {
    if (mark_ != nullptr) mark_->store(0, std::memory_order_release);
}

void wait_until_idle(const Segment& subnet, std::uint32_t region) noexcept {
    for (const Process& process : subnet.ever_used<Process>(kProcesses))
        for (const auto& mark : process.at_work)
            while (mark.load(std::memory_order_seq_cst) == region + 1 && is_alive(process)) sched_yield();
}

namespace {

constexpr std::size_t kMostRanges = 64;
using Vectors = std::array<iovec, kMostRanges>;

std::size_t to_vectors(std::span<const Range> ranges, Vectors& vectors) {
    std::size_t n = 0;
    for (const Range& range : ranges)
        if (range.bytes != 0 && n < kMostRanges) vectors[n++] = {reinterpret_cast<void*>(range.address), range.bytes};
    return n;
}

void take_off(Vectors& vectors, std::size_t& first, std::size_t n, std::size_t bytes) {
    while (bytes > 0 && first < n) {
        const std::size_t part = std::min(bytes, vectors[first].iov_len);
        vectors[first].iov_base = static_cast<std::byte*>(vectors[first].iov_base) + part;
        vectors[first].iov_len -= part;
        bytes -= part;
        if (vectors[first].iov_len == 0) ++first;
    }
}

// Tells on which side a fault was, by reading our own memory.
bool is_readable_here(const iovec& vector) {
    const long page = sysconf(_SC_PAGESIZE);
    char byte;
    iovec to{&byte, 1};
    auto at = reinterpret_cast<std::uintptr_t>(vector.iov_base);
    for (const std::uintptr_t end = at + vector.iov_len; at < end; at = (at / page + 1) * page) {
        iovec from{reinterpret_cast<void*>(at), 1};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1) return false;
    }
    return true;
}

void explain_refusal(std::int32_t pid) {
    static std::atomic<bool> said{false};
    if (said.exchange(true)) return;
    const std::string why = copy_refusal(pid);
    std::fprintf(stderr, "coop-fabric: cannot copy to or from process %d: %s\n", pid, why.c_str());
}

template <class Copy>
CopyResult copy(std::int32_t pid, Vectors& local, std::size_t locals, Vectors& remote, std::size_t remotes,
                Copy&& call) {
    std::size_t l = 0, r = 0;
    while (l < locals && r < remotes) {
        const ssize_t n = call(pid, &local[l], locals - l, &remote[r], remotes - r, 0);
        if (n > 0) {
            take_off(local, l, locals, static_cast<std::size_t>(n));
            take_off(remote, r, remotes, static_cast<std::size_t>(n));
            continue;
        }
        if (errno == ESRCH) return CopyResult::gone;
        if (errno == EINTR || errno == EAGAIN) continue;
        if (errno != EFAULT && errno != ENOMEM) {
            explain_refusal(pid);
            return CopyResult::gone;
        }
        return is_readable_here(local[l]) ? CopyResult::remote_fault : CopyResult::local_fault;
    }
    return CopyResult::done;
}

// Makes the end of the last range a range of its own, so that the kernel writes it after everything else.
void split_last(Vectors& vectors, std::size_t& n) {
    constexpr std::size_t kLast = 8;
    if (n == 0 || n >= kMostRanges || vectors[n - 1].iov_len <= 2 * kLast) return;
    vectors[n - 1].iov_len -= kLast;
    vectors[n] = {static_cast<std::byte*>(vectors[n - 1].iov_base) + vectors[n - 1].iov_len, kLast};
    ++n;
}

}  // namespace

CopyResult copy_to(std::int32_t pid, std::span<const Range> local, std::span<const Range> remote) noexcept {
    Vectors from, to;
    const std::size_t locals = to_vectors(local, from);
    std::size_t remotes = to_vectors(remote, to);
    split_last(to, remotes);
    return copy(pid, from, locals, to, remotes, process_vm_writev);
}

CopyResult copy_from(std::int32_t pid, std::span<const Range> local, std::span<const Range> remote) noexcept {
    Vectors to, from;
    const std::size_t locals = to_vectors(local, to);
    const std::size_t remotes = to_vectors(remote, from);
    return copy(pid, to, locals, from, remotes, process_vm_readv);
}

}  // namespace coop::fabric
