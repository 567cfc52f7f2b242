// SPDX-License-Identifier: BSD-3-Clause
//
// Notices a queue pair that has become mute: its requests neither complete nor fail, so that nothing else shows that
// they are lost. Failing firmware and Soft-RoCE behave like this.
//
// A queue pair that works, or reports its failure, completes something within the time of its retries. Not included in
// that time are the transfer of the data itself, which other traffic may slow down, and the wait of a message for a
// receive buffer, which a process that computes does not provide. So the limit is the sum of
//
//     1.25 x the time of the retries (4.096 us x 2^timeout x (retries + 1)) + 250 ms
//     64 x the time of the data at the rate of the rail
//     20 s if a message may wait for a buffer, unless the peer's process has been heard of meanwhile
//
// A wrong alarm closes a rail that works, and connects it again. It costs no data.
//
// Call look() from time to time, not for each message. Time: nanoseconds of any steady clock. Threading: the owner's
// lock. Ownership: values only. Errors: none.
#pragma once

#include <cstdint>

namespace coop::path {

constexpr std::uint64_t retry_time_ns(unsigned timeout, unsigned retries) noexcept {
    return (std::uint64_t{4096} << timeout) * (retries + 1);
}

// What a queue pair has to do, at one moment.
struct Pending {
    bool any = false;           // a request is posted that will complete
    bool needs_buffer = false;  // one of these may wait for a receive buffer
    std::uint64_t bytes = 0;    // of all posted requests
    std::uint64_t ended = 0;    // any value that differs after a request has ended
    std::uint64_t heard = 0;    // any value that differs after a message of the peer's process
};

class Silence {
public:
    static constexpr std::uint64_t kMargin = 250'000'000;
    static constexpr std::uint64_t kForBuffer = 20'000'000'000;
    static constexpr std::uint64_t kSlower = 64;               // other traffic may leave this part of the rate
    static constexpr std::uint64_t kUnknownRate = 10'000'000;  // bytes per second

    // Whether the queue pair has been silent for too long. Says so in each further look() until something ends.
    bool look(const Pending& now_pending, std::uint64_t retry_ns, std::uint64_t bytes_per_s,
              std::uint64_t now) noexcept {
        const auto ended = static_cast<std::uint32_t>(now_pending.ended);
        const auto heard = static_cast<std::uint32_t>(now_pending.heard) & kHeardBits;
        if (!now_pending.any || !watching_ || ended != ended_) {
            watching_ = now_pending.any;
            since_ = now;
            ended_ = ended;
            heard_ = heard;
            return false;
        }
        const bool may_wait = now_pending.needs_buffer && heard == heard_;
        return now - since_ > limit(now_pending.bytes, may_wait, retry_ns, bytes_per_s);
    }

    static constexpr std::uint64_t limit(std::uint64_t bytes, bool waits_for_buffer, std::uint64_t retry_ns,
                                         std::uint64_t bytes_per_s) noexcept {
        const std::uint64_t rate = bytes_per_s == 0 ? kUnknownRate : bytes_per_s;
        const auto transfer = static_cast<double>(bytes) * 1e9 * static_cast<double>(kSlower) /
                              static_cast<double>(rate);
        return retry_ns + retry_ns / 4 + kMargin + (waits_for_buffer ? kForBuffer : 0) +
               static_cast<std::uint64_t>(transfer);
    }

private:
    static constexpr std::uint32_t kHeardBits = 0x7fffffff;  // the lower bits suffice

    std::uint64_t since_ = 0;  // this and the rest: valid while watching_
    std::uint32_t ended_ = 0, heard_ : 31 = 0;
    bool watching_ : 1 = false;
};

}  // namespace coop::path
