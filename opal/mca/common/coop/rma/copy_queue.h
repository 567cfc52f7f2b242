// SPDX-License-Identifier: BSD-3-Clause
//
// Short puts, or short gets, of a passive epoch that wait until the origin copies all of them in few system calls
// (coop/node/remote_copy.h). Of each it keeps the addresses only: MPI forbids the program to change the memory of a put,
// or to look at that of a get, before a call completes the operation. In MPI's order, such operations have none.
//
// The owner executes the queue when it is full, and in each call that completes operations at the origin or the target.
//
// Units: bytes. Threading: none. Ownership: the program owns the memory. Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace coop::rma {

class CopyQueue {
public:
    static constexpr std::size_t kMost = 256;
    // Of one copy. For a longer one, the system call itself takes less time than the copy.
    static constexpr std::uint64_t kLongest = 16 * 1024;

    struct Copy {
        std::byte* here;
        std::uint64_t offset;  // in the target's part; in dynamic windows: the address
        std::uint32_t bytes;
    };

    CopyQueue() noexcept {}  // leaves the array as it is
    CopyQueue(const CopyQueue&) = delete;
    CopyQueue& operator=(const CopyQueue&) = delete;

    static constexpr bool suits(std::uint64_t bytes) noexcept { return bytes > 0 && bytes <= kLongest; }
    bool is_full() const noexcept { return count_ == kMost; }
    bool empty() const noexcept { return count_ == 0; }
    // Preconditions: suits(bytes), and the queue is not full.
    void add(std::byte* here, std::uint64_t there, std::uint64_t bytes) noexcept {
        copies_[count_++] = {here, there, static_cast<std::uint32_t>(bytes)};
    }
    void clear() noexcept { count_ = 0; }
    // By offset instead of the order of the calls.
    void sort() noexcept {
        const std::span<Copy> all(copies_.data(), count_);
        const auto offset_of = [](const Copy& each) { return each.offset; };
        if (!std::ranges::is_sorted(all, {}, offset_of)) std::ranges::sort(all, {}, offset_of);
    }
    // In the order of the calls, unless they have been sorted.
    std::span<const Copy> copies() const noexcept { return {copies_.data(), count_}; }

private:
    std::array<Copy, kMost> copies_;
    std::size_t count_ = 0;
};

}  // namespace coop::rma
