// SPDX-License-Identifier: BSD-3-Clause
//
// Bounce buffers: memory of a sender that all processes of its node can read, for messages that are too long for a
// first packet and too short for a cooperative copy. The sender copies the payload there and is done; the receiver
// copies it out once the message has matched a receive. Unexpected messages stay there without a further copy, so the
// messages of one sender take no more memory than its buffers.
//
//     free --acquire()--> taken --payload written, RTS--> contents() --empty()--> free
//                           | no room for the RTS: empty()                          ^
//                           +-------------------------------------------------------+
//
// Units: bytes. Threading: the pool belongs to the sender and needs a lock; the words of a buffer are atomics, changed
// by two processes. A receiver that has the RTS also sees the payload. Errors: a buffer is a peer's memory and is not
// read unless it holds the expected generation.
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
    alignas(64) std::atomic<std::uint32_t> taken{0};  // generation of the last message put into it
    std::atomic<std::uint32_t> emptied{0};            // generation that was emptied last; the same as `taken`: free
    alignas(64) unsigned char bytes[kBounceBytes];    // not initialized: unused pages take no memory
};
struct BounceBuffers {
    std::array<Bounce, kBounces> all;
};

inline void empty(Bounce& bounce, std::uint32_t generation) noexcept {
    bounce.emptied.store(generation, std::memory_order_release);
}

// Returns the payload; null if the buffer does not hold this generation.
inline const unsigned char* contents(const Bounce& bounce, std::uint32_t generation) noexcept {
    const bool here = bounce.taken.load(std::memory_order_acquire) == generation &&
                      bounce.emptied.load(std::memory_order_relaxed) != generation;
    return here ? bounce.bytes : nullptr;
}

// The sender's view of its own buffers.
class BouncePool {
public:
    struct Taken {
        std::uint32_t index, generation;
    };

    // Takes the buffers in rotation, because the receiver has most likely emptied the one that was used longest ago.
    // Skips a few that are still in use.
    std::optional<Taken> acquire(BounceBuffers& buffers) noexcept {
        for (std::uint32_t look = 0; look < kLooks; ++look) {
            const std::uint32_t index = next_;
            next_ = (next_ + 1) % kBounces;
            Bounce& bounce = buffers.all[index];
            const std::uint32_t last = bounce.taken.load(std::memory_order_relaxed);
            if (bounce.emptied.load(std::memory_order_acquire) != last) continue;
            bounce.taken.store(last + 1, std::memory_order_release);
            __builtin_prefetch(&buffers.all[next_], 1);  // its words are in the cache of the process that emptied it
            return Taken{index, last + 1};
        }
        return std::nullopt;
    }

private:
    static constexpr std::uint32_t kLooks = 4;
    std::uint32_t next_ = 0;
};

}  // namespace coop::rndv
