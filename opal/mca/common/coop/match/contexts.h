// SPDX-License-Identifier: BSD-3-Clause
//
// The communicators of a process by context id, for messages that arrive. A thread that takes in a message may look one up at
// any time, also while the application makes or frees others and the library takes no locks.
//
// Threading: publish() and withdraw() of one id by one thread at a time; find() by any thread at any time, without a lock. What
// was written before publish() is seen by whoever finds the object. Ownership: none; a caller of find() must know that the object
// lives while it is used. Memory: 8 bytes for each id there may be, of which the system provides only the pages that are used.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coop::match {

template <class Communicator>
class Contexts {
public:
    static constexpr std::size_t kIds = std::size_t{1} << 16;  // as many as a match header can name

    void publish(std::uint16_t id, Communicator* communicator) noexcept { at_[id].store(communicator, std::memory_order_release); }
    void withdraw(std::uint16_t id) noexcept { at_[id].store(nullptr, std::memory_order_release); }

    // Null: there is none, not yet or no more.
    Communicator* find(std::uint16_t id) const noexcept { return at_[id].load(std::memory_order_acquire); }

private:
    std::array<std::atomic<Communicator*>, kIds> at_{};
};

}  // namespace coop::match
