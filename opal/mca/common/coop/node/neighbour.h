// SPDX-License-Identifier: BSD-3-Clause
//
// What the operating system has to do so that two processes of a node can work
// together: a piece of memory that both see, and the permission to copy from one
// to the other. (Linux; this layer is the only part of the core that calls it.)
//
// The memory is a memfd: it has no name, so nothing stays behind in /dev/shm
// however a process ends. Another process opens it through /proc/<pid>/fd; it
// must belong to the same user and be sealed against changes of its size, so
// that no access to it can fault.
//
// A process id may name another process here than where it comes from (another
// PID namespace), and the descriptor may then be anything: a pipe, a terminal, a
// tape drive. So a descriptor is opened in two steps. The first (O_PATH) only
// finds the file, and it is checked; nothing happens to the file. Only what can
// be such memory is opened, through the first descriptor, so that it is the file
// that was checked.
//
// Threading: none of its own. Ownership: a SharedMemory unmaps what it maps.
// Errors: nothing here is fatal; what is not there is null, and says why by an errno.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coop/base/export.h"

namespace coop::node {

class SharedMemory {
public:
    SharedMemory() = default;
    // New memory, zeroed. Empty if the system gives none; error() says why.
    COOP_EXPORT static SharedMemory create(std::size_t bytes) noexcept;
    // The memory behind descriptor `fd` of process `pid`. Empty if it cannot be
    // had, or is not what create(bytes) of the same user makes (EBADF); error() says why.
    COOP_EXPORT static SharedMemory attach(std::int32_t pid, std::int32_t fd, std::size_t bytes) noexcept;

    COOP_EXPORT ~SharedMemory();
    COOP_EXPORT SharedMemory(SharedMemory&& from) noexcept;
    COOP_EXPORT SharedMemory& operator=(SharedMemory&& from) noexcept;

    void* address() const noexcept { return address_; }
    std::int32_t fd() const noexcept { return fd_; }  // -1 of attached memory
    int error() const noexcept { return error_; }     // of empty memory: an errno, or 0 where nothing was tried
    explicit operator bool() const noexcept { return address_ != nullptr; }

private:
    SharedMemory(void* address, std::size_t bytes, std::int32_t fd) noexcept : address_(address), bytes_(bytes), fd_(fd) {}
    explicit SharedMemory(int error) noexcept : error_(error) {}
    void* address_ = nullptr;
    std::size_t bytes_ = 0;
    std::int32_t fd_ = -1;
    int error_ = 0;
};

// A real copy from another process: reads the word at `address` of `pid`.
// 0: it is `expected`. ESRCH: it is another word, so that is another process.
// Otherwise the errno of process_vm_readv.
COOP_EXPORT int try_copy(std::int32_t pid, std::uint64_t address, std::uint64_t expected) noexcept;

COOP_EXPORT bool is_alive(std::int32_t pid) noexcept;
COOP_EXPORT std::uint64_t random_word() noexcept;  // not 0

}  // namespace coop::node
