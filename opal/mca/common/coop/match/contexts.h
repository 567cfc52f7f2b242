// SPDX-License-Identifier: BSD-3-Clause
//
// Finds the communicator of an arriving message by its context id. A thread that handles messages may look up a
// communicator at any time, even while the application creates or frees others and the library takes no locks.
//
// Threading: publish() and withdraw() of one id by one thread at a time; find() by any thread at any time,
// without a lock. Writes made before publish() are visible to a thread that finds the object. Ownership: none;
// the caller of find() must know that the object lives while it is used. Memory: 8 bytes for each possible id;
// the system provides only the pages that are touched.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coop::match {

template <class Communicator>
class Contexts {
public:
    static constexpr std::size_t kIds = std::size_t{1} << 16;  // a match header has 16 bits for the id

    void publish(std::uint16_t id, Communicator* communicator) noexcept {
        at_[id].store(communicator, std::memory_order_release);
    }
    void withdraw(std::uint16_t id) noexcept { at_[id].store(nullptr, std::memory_order_release); }

    // Returns null if no communicator is published under this id.
    Communicator* find(std::uint16_t id) const noexcept { return at_[id].load(std::memory_order_acquire); }

private:
    std::array<std::atomic<Communicator*>, kIds> at_{};
};

}  // namespace coop::match
