// SPDX-License-Identifier: BSD-3-Clause
//
// Copies between memory of this process and that of another one of the node by CMA (process_vm_readv, process_vm_writev):
// many blocks in one system call. The other process does nothing. Linux only.
//
// The blocks of both sides are streams of bytes: bytes of this process's blocks go to, or come from, the bytes of the other
// one's blocks with the same position. Blocks that follow each other are one.
//
// Units: bytes. Threading: none. Errors: add() and flush() return false, and error() has the errno: EPERM where the kernel
// does not permit it, ESRCH if the process has ended, EFAULT for memory that does not exist or cannot be accessed so. What
// was copied before an error stays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <tuple>

#include <sys/uio.h>

#include "coop/base/export.h"

namespace coop::node {

class RemoteCopy {
public:
    enum class To : std::uint8_t { kHere, kThere };
    static constexpr std::size_t kMostBlocks = 256;  // of a side in one call; the kernel permits 1024

    RemoteCopy(std::int32_t pid, To to) noexcept : pid_(pid), to_(to) {}
    RemoteCopy(const RemoteCopy&) = delete;
    RemoteCopy& operator=(const RemoteCopy&) = delete;

    // Copies `bytes` more; perhaps only with flush().
    bool add(void* here, std::uint64_t there, std::uint64_t bytes) noexcept {
        if ((here_.is_full() || there_.is_full()) && !flush()) return false;
        here_.add(reinterpret_cast<std::uintptr_t>(here), bytes);
        there_.add(there, bytes);
        return true;
    }
    // Everything that was added has been copied.
    COOP_EXPORT bool flush() noexcept;
    int error() const noexcept { return error_; }
    // So many bytes of the streams have been copied; with an error, the first ones.
    std::uint64_t copied() const noexcept { return copied_; }

private:
    struct List {
        std::array<iovec, kMostBlocks> blocks;  // valid: the first `count`
        std::size_t count = 0;

        bool is_full() const noexcept { return count == kMostBlocks; }
        void add(std::uint64_t address, std::uint64_t bytes) noexcept {
            if (bytes == 0) return;
            if (count > 0) {
                iovec& last = blocks[count - 1];
                if (reinterpret_cast<std::uintptr_t>(last.iov_base) + last.iov_len == address) {
                    last.iov_len += bytes;
                    return;
                }
            }
            blocks[count++] = {reinterpret_cast<void*>(address), bytes};
        }
    };

    const std::int32_t pid_;
    const To to_;
    int error_ = 0;
    std::uint64_t copied_ = 0;
    List here_, there_;
};

// What a process tells others, so that they can try to copy from and to it: a word of it that holds a random number. The
// number shows that the process is the one that was meant: in another PID namespace, another process may have this id.
struct CopyProbe {
    std::int32_t pid;
    std::int32_t dumpable;  // PR_GET_DUMPABLE, on which the kernel's permission depends
    std::uint64_t address;
    std::uint64_t number;
};

// Tests copies from and to the process: reads the word, and if it holds the number, writes the same number there. Returns 0,
// or an errno; ESRCH if it holds another one. Then nothing is written.
COOP_EXPORT int try_both(const CopyProbe& process) noexcept;

// Tests copies once for each process: between the same two, the kernel does not change its mind unless one of them becomes
// dumpable, or no longer is. (A program that installs a seccomp filter refuses its own copies: try_both() with its own probe
// notices that.) Threading: any. Errors: attempt() may throw std::bad_alloc.
class CopyTrials {
public:
    COOP_EXPORT CopyTrials() noexcept;
    CopyTrials(const CopyTrials&) = delete;
    CopyTrials& operator=(const CopyTrials&) = delete;

    // Of this process. Valid as long as this object.
    COOP_EXPORT CopyProbe own() const noexcept;
    // As try_both().
    COOP_EXPORT int attempt(const CopyProbe& process);

private:
    using Pair = std::tuple<std::int32_t, std::uint64_t, std::int32_t, std::int32_t>;

    std::uint64_t number_;  // others write it, but no other value
    std::mutex mutex_;
    std::set<Pair> passed_;
};

// Tests whether the byte at `address` of `pid` can be read. Returns 0, or an errno.
COOP_EXPORT int try_read(std::int32_t pid, std::uint64_t address) noexcept;

}  // namespace coop::node
