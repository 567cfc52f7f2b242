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
// Threading: none of its own. Ownership: a SharedMemory unmaps what it maps.
// Errors: nothing here is fatal; what is not there is null, or an errno.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coop/base/export.h"

namespace coop::node {

class SharedMemory {
public:
    SharedMemory() = default;
    // New memory, zeroed. Empty if the system has none.
    COOP_EXPORT static SharedMemory create(std::size_t bytes) noexcept;
    // The memory behind descriptor `fd` of process `pid`; empty if it cannot be
    // had, or is not what create(bytes) of the same user makes.
    COOP_EXPORT static SharedMemory attach(std::int32_t pid, std::int32_t fd, std::size_t bytes) noexcept;

    COOP_EXPORT ~SharedMemory();
    COOP_EXPORT SharedMemory(SharedMemory&& from) noexcept;
    COOP_EXPORT SharedMemory& operator=(SharedMemory&& from) noexcept;

    void* address() const noexcept { return address_; }
    std::int32_t fd() const noexcept { return fd_; }  // -1 of attached memory
    explicit operator bool() const noexcept { return address_ != nullptr; }

private:
    SharedMemory(void* address, std::size_t bytes, std::int32_t fd) noexcept : address_(address), bytes_(bytes), fd_(fd) {}
    void* address_ = nullptr;
    std::size_t bytes_ = 0;
    std::int32_t fd_ = -1;
};

// A real copy from another process: reads the word at `address` of `pid`.
// 0: it is `expected`. ESRCH: it is another word, so that is another process.
// Otherwise the errno of process_vm_readv.
COOP_EXPORT int try_copy(std::int32_t pid, std::uint64_t address, std::uint64_t expected) noexcept;

COOP_EXPORT bool is_alive(std::int32_t pid) noexcept;
COOP_EXPORT std::uint64_t random_word() noexcept;  // not 0

}  // namespace coop::node
