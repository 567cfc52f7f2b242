// SPDX-License-Identifier: BSD-3-Clause
//
// Up to which length a message is quicker through the lane than by a copy of the kernel, computed from what was measured.
//
//     lane(n)    =  byte_ns * (n + min(n, kLanePart))                both sides copy at once; the last part is then
//                                                                    still read
//                   + handshake + kFragmentNs * n / kLanePart        if n exceeds one packet
//     alone(n)   =  byte_ns * 2 n                                    one packet, of a sender that does not wait: the
//                                                                    receiver copies it when it is whole. Or long
//                                                                    messages go both ways (lane_traffic.h), or
//                                                                    processes share a CPU
//     read(n)    =  call_ns + kernel byte_ns * n                     the sender waits, and the receiver copies (lane_offer.h)
//     kernel(n)  =  call_ns + handshake + kernel byte_ns * n         the receiver copies
//                =  call_ns + handshake + kSharingNs + kernel byte_ns * n / 2
//                                                                    from shared_from on: both sides copy one half
//
// What a byte takes in the lane depends on how cache lines get from core to core, which a copy within one process does
// not show. So LanePace measures it where it happens: a sender times its first long messages, and later ones now and then.
//
// Units: bytes, nanoseconds. Threading: LaneFindings: any; the rest: none. Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coop/node/kernel_copy.h"
#include "coop/node/lane_parts.h"

namespace coop::node {

// Estimates. kHandshakeNs: between the first packet of a message and the start of its copy, for two packets and the
// choice of a protocol. kFragmentNs: what fragments take besides their copies, for each kLanePart bytes. (A fragment
// has several parts: kLaneFragment in pml/coop.) kSharingNs: what two copiers take to share a copy.
constexpr double kHandshakeNs = 1000, kFragmentNs = 150, kSharingNs = 1500;
// If processes share a CPU, each packet of a handshake may need another process to run first.
constexpr double kCrowdedHandshakeNs = 5000;
constexpr std::size_t kShortestOffer = 2048;
constexpr std::size_t kLaneLimitStep = 1024;

struct LaneBounds {
    std::size_t shortest = 0;      // messages up to this length always use the lane
    std::size_t packet = 0;        // the longest message in one packet
    std::size_t longest = 0;       // no message above this length uses the lane
    std::size_t alone = SIZE_MAX;  // alone_limit() is not above this, either
    double handshake_ns = kHandshakeNs;
};

constexpr double lane_ns(double byte_ns, std::size_t bytes, const LaneBounds& bounds) noexcept {
    const double copied = static_cast<double>(bytes + std::min<std::size_t>(bytes, kLanePart));
    if (bytes <= bounds.packet) return byte_ns * copied;
    return byte_ns * copied + bounds.handshake_ns + kFragmentNs * static_cast<double>(bytes) / kLanePart;
}

// One packet, while the receiver has no other one to copy.
constexpr double alone_ns(double byte_ns, std::size_t bytes) noexcept {
    return byte_ns * 2 * static_cast<double>(bytes);
}

constexpr double kernel_ns(const KernelCopy& kernel, std::size_t bytes, std::size_t shared_from,
                           const LaneBounds& bounds) noexcept {
    const double all = kernel.byte_ns * static_cast<double>(bytes);
    return kernel.call_ns + bounds.handshake_ns + (bytes >= shared_from ? kSharingNs + all / 2 : all);
}

constexpr double read_ns(const KernelCopy& kernel, std::size_t bytes) noexcept {
    return kernel.call_ns + kernel.byte_ns * static_cast<double>(bytes);
}

// Lengths of messages; none if from > to.
struct LaneRange {
    std::size_t from = SIZE_MAX, to = 0;

    constexpr bool has(std::size_t bytes) const noexcept { return bytes >= from && bytes <= to; }
};

// The messages that are quickest if the receiver reads them from the sender's memory, in steps of kLaneLimitStep.
// `byte_ns`: of the lane. `shared_from`: the shortest message that both sides would copy.
constexpr LaneRange offer_range(const KernelCopy& kernel, double byte_ns, std::size_t shared_from,
                                const LaneBounds& bounds) noexcept {
    LaneRange range;
    if (kernel.is_denied()) return range;
    for (std::size_t bytes = kShortestOffer; bytes <= std::min(bounds.packet, bounds.longest);
         bytes += kLaneLimitStep) {
        if (read_ns(kernel, bytes) <
            std::min(lane_ns(byte_ns, bytes, bounds), kernel_ns(kernel, bytes, shared_from, bounds))) {
            range.from = std::min(range.from, bytes);
            range.to = bytes;
        } else if (range.to > 0) {
            break;
        }
    }
    return range;
}

// The longest message up to which `lane(n)` is not more than a copy by the kernel at each length, in steps of
// kLaneLimitStep. `shared_from`: the shortest message that both sides would copy. If the kernel denies copies,
// bounds.longest.
template <class LaneNs>
constexpr std::size_t limit_of(const KernelCopy& kernel, std::size_t shared_from, const LaneBounds& bounds,
                               LaneNs&& lane) noexcept {
    const std::size_t longest = std::max(bounds.shortest, bounds.longest);
    if (kernel.is_denied()) return longest;
    for (std::size_t limit = bounds.shortest; limit < longest;) {
        const std::size_t next = std::min(limit + kLaneLimitStep, longest);
        if (lane(next) > kernel_ns(kernel, next, shared_from, bounds)) return limit;
        limit = next;
    }
    return longest;
}

// The limit of messages whose sender waits, and of those of a sender that does not, while the receiver is still busy with
// earlier ones. `byte_ns`: of the lane.
constexpr std::size_t lane_limit(const KernelCopy& kernel, double byte_ns, std::size_t shared_from,
                                 const LaneBounds& bounds) noexcept {
    return limit_of(kernel, shared_from, bounds, [&](std::size_t bytes) { return lane_ns(byte_ns, bytes, bounds); });
}

// The limit of a message of a sender that does not wait, while the receiver has no other one.
constexpr std::size_t alone_limit(const KernelCopy& kernel, double byte_ns, const LaneBounds& bounds) noexcept {
    LaneBounds shorter = bounds;
    shorter.longest = std::min(bounds.longest, bounds.alone);
    return limit_of(kernel, SIZE_MAX, shorter, [&](std::size_t bytes) { return alone_ns(byte_ns, bytes); });
}

// What the pages of so many more bytes of a ring cost on a crowded node: an estimate, of both processes together.
constexpr std::uint64_t cost_of_more_ring_ns(std::uint32_t bytes) noexcept {
    return bytes * std::uint64_t{4000} / 4096;
}
// What a message of this length saves there if it fits its ring: 5 us for the handshake, less what the second copy takes, which
// would be as much at 40 KiB. At least 1 us. A ring becomes longer when messages that did not fit have missed as much as its
// pages cost. So they cost at most twice as much as the better of "at once" and "never".
constexpr std::uint64_t saved_by_ring_ns(std::size_t bytes) noexcept {
    constexpr std::size_t kSavesLeast = 32 * 1024, kSavesNothing = 40 * 1024;
    const std::size_t counted = std::min(bytes, kSavesLeast);
    return static_cast<std::uint64_t>(kCrowdedHandshakeNs) * (kSavesNothing - counted) / kSavesNothing;
}

// What a byte takes on its way into a ring: the median over kMessages timed messages. At first these are consecutive
// ones, later one in kBetween + 1, because processes move to other CPUs, and virtual CPUs to other cores.
//
// The first lap is not timed: nobody has read the memory yet, so that writing it is too cheap. After kMostLeftOut
// messages that the limit has kept out of the lane, the measurement starts again: the limit should allow the next
// messages; one lap passes untimed, because the ring has left the caches, and then consecutive messages are timed.
// Otherwise a limit that is too short would never be corrected.
class LanePace {
public:
    static constexpr std::size_t kMessages = 15, kBetween = 31, kMostLeftOut = 1024;
    static constexpr std::size_t kShortest = 4096;  // bytes

    explicit LanePace(std::size_t ring_bytes) noexcept : ring_bytes_(ring_bytes), to_skip_(ring_bytes) {}

    // Whether the next message need not be timed. If not, add() follows.
    bool leaves_out() noexcept {
        if (to_leave_out_ == 0) return false;
        --to_leave_out_;
        return true;
    }
    // `ns`: that the copy of `bytes` bytes into the ring took. Returns whether byte_ns() is new.
    bool add(std::size_t bytes, std::uint64_t ns) noexcept {
        if (to_skip_ > 0) {
            to_skip_ -= std::min(to_skip_, bytes);
            return false;
        }
        each_[messages_++] = static_cast<double>(ns) / static_cast<double>(bytes);
        if (messages_ == kMessages) find();
        if (byte_ns_ > 0) to_leave_out_ = kBetween;
        return messages_ == 0;
    }

    // The limit has kept a message out of the lane. Returns whether it should allow all until byte_ns() is new.
    bool limit_leaves_out() noexcept {
        if (++left_out_ < kMostLeftOut) return false;
        left_out_ = messages_ = to_leave_out_ = 0;
        to_skip_ = ring_bytes_;
        byte_ns_ = 0;
        return true;
    }

    double byte_ns() const noexcept { return byte_ns_; }  // 0: not found yet

private:
    void find() noexcept {
        std::nth_element(each_.begin(), each_.begin() + kMessages / 2, each_.end());
        byte_ns_ = std::max(each_[kMessages / 2], 1e-6);
        messages_ = left_out_ = 0;
    }

    const std::size_t ring_bytes_;
    std::size_t to_skip_, to_leave_out_ = 0;
    std::size_t messages_ = 0, left_out_ = 0;
    std::array<double, kMessages> each_{};
    double byte_ns_ = 0;
};

// What this process has found last, for reports and performance variables. 0: nothing yet.
struct LaneFindings {
    std::atomic<std::uint64_t> limit{0};
    std::atomic<std::uint64_t> unwaited_limit{0};
    std::atomic<std::uint64_t> alone_limit{0};
    std::atomic<std::uint64_t> lane_rate{0};
    std::atomic<std::uint64_t> kernel_rate{0};
    std::atomic<std::uint64_t> kernel_call{0};
    std::atomic<std::uint64_t> offers_from{0};
    std::atomic<std::uint64_t> offers_to{0};
};

struct LaneVariable {
    const char* name;
    std::atomic<std::uint64_t> LaneFindings::*value;
    const char* help;
};
inline constexpr LaneVariable kLaneVariables[] = {
    {"lane_limit", &LaneFindings::limit,
     "Longest message whose sender waits (MPI_Send) that is quicker through the lane than by a copy of the kernel, as "
     "found for pml_coop_lane_max -1; in bytes. 0: nothing was measured."},
    {"lane_unwaited_limit", &LaneFindings::unwaited_limit, "The same for messages whose sender does not wait."},
    {"lane_alone_limit", &LaneFindings::alone_limit,
     "The same for a message whose sender does not wait, if it is the first since the last message from the peer. On a "
     "crowded node it applies with and without waiting, up to 32 KiB, instead of the other two, if the kernel can "
     "copy."},
    {"lane_rate", &LaneFindings::lane_rate, "Measured: bytes per second that this process copies into the lane."},
    {"kernel_copy_rate", &LaneFindings::kernel_rate,
     "Measured: bytes per second of a copy by the kernel. 0 after a measurement: the kernel denies copies, or may not "
     "make any."},
    {"kernel_copy_call", &LaneFindings::kernel_call,
     "Measured: nanoseconds that a copy by the kernel takes before the first byte."},
    {"lane_offers_from", &LaneFindings::offers_from,
     "Shortest message whose sender waits (MPI_Send) that is quickest if the receiver reads it from the sender's "
     "memory, as "
     "found for pml_coop_lane_read_min -1; in bytes. 0: none."},
    {"lane_offers_to", &LaneFindings::offers_to, "Longest message of which that is true, in bytes. 0: none."},
};
static_assert(sizeof(LaneFindings) == sizeof kLaneVariables / sizeof *kLaneVariables * sizeof(std::uint64_t),
              "each has a name");

}  // namespace coop::node
