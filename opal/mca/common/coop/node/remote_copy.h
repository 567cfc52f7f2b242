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
    List here_, there_;
};

// Tests writing to another process: writes `value` to the word at `address` of `pid`, which belongs to this process alone,
// and reads it back. Returns 0, or an errno; ESRCH if another value comes back, and so it is another process.
COOP_EXPORT int try_write(std::int32_t pid, std::uint64_t address, std::uint64_t value) noexcept;
// Tests whether the byte at `address` of `pid` can be read. Returns 0, or an errno.
COOP_EXPORT int try_read(std::int32_t pid, std::uint64_t address) noexcept;

}  // namespace coop::node
