// SPDX-License-Identifier: BSD-3-Clause
//
// Operating-system services that let two processes of a node cooperate: shared memory, and copies from the
// memory of the other process. Linux only.
//
// The shared memory is a memfd: it has no name in the file system, so nothing remains in /dev/shm however a
// process ends. Another process opens it through /proc/<pid>/fd. It must belong to the same user and be sealed
// against changes of its size, so that no access to it can fault. Only the core dump of its
// creator contains it.
//
// A process id from another PID namespace may name an unrelated process here, and the descriptor may then be
// anything: a pipe, a terminal, a tape drive. So attach() opens a descriptor in two steps. The first (O_PATH)
// only locates the file, without any effect on it, and checks what it is. The second opens the file through the
// first descriptor, so that it is the file that was checked.
//
// Threading: none of its own. Ownership: a SharedMemory unmaps what it maps. Errors: never fatal; a
// SharedMemory that could not be created or attached is empty and holds an errno.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coop/base/export.h"

namespace coop::node {

class SharedMemory {
public:
    SharedMemory() = default;
    // Creates zeroed memory. Empty on failure; error() has the errno.
    COOP_EXPORT static SharedMemory create(std::size_t bytes) noexcept;
    // Maps the memory of descriptor `fd` in process `pid`. Empty on failure: error() has the errno, or EBADF if
    // the file is not memory that create(bytes) of the same user makes.
    // `keeps_descriptor`: fd() is the caller's own descriptor of it, open as long as the memory is attached.
    COOP_EXPORT static SharedMemory attach(std::int32_t pid, std::int32_t fd, std::size_t bytes,
                                           bool keeps_descriptor = false) noexcept;

    COOP_EXPORT ~SharedMemory();
    COOP_EXPORT SharedMemory(SharedMemory&& from) noexcept;
    COOP_EXPORT SharedMemory& operator=(SharedMemory&& from) noexcept;

    void* address() const noexcept { return address_; }
    std::int32_t fd() const noexcept { return fd_; }  // -1: attached without keeping it, or closed
    // Keeps the memory, but no other process can attach any more.
    COOP_EXPORT void close_descriptor() noexcept;
    int error() const noexcept { return error_; }  // errno of empty memory; 0: nothing was attempted
    explicit operator bool() const noexcept { return address_ != nullptr; }

private:
    SharedMemory(void* address, std::size_t bytes, std::int32_t fd) noexcept
        : address_(address), bytes_(bytes), fd_(fd) {}
    explicit SharedMemory(int error) noexcept : error_(error) {}
    void* address_ = nullptr;
    std::size_t bytes_ = 0;
    std::int32_t fd_ = -1;
    int error_ = 0;
};

// Tests copying from another process: reads the word at `address` of `pid`. Returns 0 if it is `expected`,
// ESRCH if it is another word and so another process, otherwise the errno of process_vm_readv.
COOP_EXPORT int try_copy(std::int32_t pid, std::uint64_t address, std::uint64_t expected) noexcept;

COOP_EXPORT bool is_alive(std::int32_t pid) noexcept;
COOP_EXPORT std::uint64_t random_word() noexcept;  // never 0

}  // namespace coop::node
