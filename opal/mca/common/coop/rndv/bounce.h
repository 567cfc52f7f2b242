// SPDX-License-Identifier: BSD-3-Clause
//
// Bounce buffers: memory of a sender that its node sees, for messages that are
// too long for a first packet and too short for two copiers. The sender leaves
// the payload there and is free; the receiver takes it from there once it has
// the receive for it. What is unexpected waits where it is, without a copy more,
// and takes no more memory than the buffers of one sender.
//
//     free --acquire()--> taken --payload written, RTS--> contents() --empty()--> free
//                           | no room for the RTS: empty()                          ^
//                           +-------------------------------------------------------+
//
// Units: bytes. Threading: the pool is the sender's and needs a lock; the words
// of a buffer are atomics, changed by two processes. Whoever reads the payload
// has had its RTS, and with it the payload. Errors: a buffer is a peer's memory:
// what does not hold the generation asked for is not read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace coop::rndv {

constexpr std::uint32_t kBounces = 32;
constexpr std::size_t kBounceBytes = 32 * 1024;

struct Bounce {
    alignas(64) std::atomic<std::uint32_t> taken{0};  // generation
    std::atomic<std::uint32_t> emptied{0};            // the same: free
    alignas(64) unsigned char bytes[kBounceBytes];    // left as they are: pages that no message touches take no memory
};
struct BounceBuffers {
    std::array<Bounce, kBounces> all;
};

inline void empty(Bounce& bounce, std::uint32_t generation) noexcept { bounce.emptied.store(generation, std::memory_order_release); }

// The payload; null: this generation is not in it.
inline const unsigned char* contents(const Bounce& bounce, std::uint32_t generation) noexcept {
    const bool here = bounce.taken.load(std::memory_order_acquire) == generation && bounce.emptied.load(std::memory_order_relaxed) != generation;
    return here ? bounce.bytes : nullptr;
}

// The sender's view of its own buffers.
class BouncePool {
public:
    struct Taken {
        std::uint32_t index, generation;
    };

    // One after the other, so that the receiver has long been done with the next
    // one; a few that are still in use are passed over.
    std::optional<Taken> acquire(BounceBuffers& buffers) noexcept {
        for (std::uint32_t look = 0; look < kLooks; ++look) {
            const std::uint32_t index = next_;
            next_ = (next_ + 1) % kBounces;
            Bounce& bounce = buffers.all[index];
            const std::uint32_t last = bounce.taken.load(std::memory_order_relaxed);
            if (bounce.emptied.load(std::memory_order_acquire) != last) continue;
            bounce.taken.store(last + 1, std::memory_order_release);
            __builtin_prefetch(&buffers.all[next_], 1);  // its words are in the cache of whoever emptied it
            return Taken{index, last + 1};
        }
        return std::nullopt;
    }

private:
    static constexpr std::uint32_t kLooks = 4;
    std::uint32_t next_ = 0;
};

}  // namespace coop::rndv
