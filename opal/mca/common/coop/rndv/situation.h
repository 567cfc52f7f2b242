// SPDX-License-Identifier: BSD-3-Clause
//
// Everything that the choice of a protocol depends on, for one message.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coop::rndv {

// The value of pml_coop_protocol, or of the communicator's info key coop_protocol, which takes precedence.
enum class Wish : std::uint8_t { kHybrid, kRget, kRput, kSend, kCoop, kCoopFixed, kCoopColl, kCoopLoad };
constexpr std::size_t kWishes = 8;
constexpr const char* kWishNames[kWishes] = {"hybrid", "rget",       "rput",      "send",
                                             "coop",   "coop_fixed", "coop_coll", "coop_load"};

// Whether the wish names one of the classic protocols: then no threshold holds.
constexpr bool is_classic(Wish wish) noexcept {
    return wish == Wish::kRget || wish == Wish::kRput || wish == Wish::kSend;
}

// The MPI call of each side. It tells whether the caller waits or may compute. Nonblocking synchronous and ready sends
// are kIsend.
enum class SendCall : std::uint8_t { kSend, kIsend, kBsend, kSsend, kRsend };
enum class RecvCall : std::uint8_t { kRecv, kIrecv };
constexpr std::size_t kSendCalls = 5;

constexpr bool sender_waits(SendCall call) noexcept {
    return call == SendCall::kSend || call == SendCall::kSsend || call == SendCall::kRsend;
}

// Of a message below Pace::kMostBytes for which nobody waits, to another node, if no parameter decides (pace.h).
enum class Link : std::uint8_t { kDoesNotMatter, kSlow, kFast };

struct Situation {
    // The message.
    std::size_t bytes = 0;
    bool synchronous = false;
    bool sender_contiguous = true;
    bool receiver_contiguous = true;  // the sender assumes so
    bool large_pieces = false;        // not contiguous, but its pieces are long enough for a copy each

    // Parameters.
    Wish wish = Wish::kHybrid;
    std::size_t eager_limit = 0;       // longest payload of an eager message
    std::size_t rdma_min = 0;          // shortest message for RDMA
    std::size_t isend_rdma_min = 0;    // the same between nodes for a sender that does not wait; 0 at the receiver
    Link link = Link::kDoesNotMatter;  // how `isend_rdma_min` follows from the link
    std::size_t coop_min = 0;          // shortest message for two copiers
    std::size_t bounce_max = 0;        // longest message for a bounce buffer
    std::size_t lane_max = 0;          // longest message for the lane; 0: there is none between the two processes

    // The transport.
    double rdma_share = 1.0;  // 0..1: share of the bandwidth to the peer that the RDMA transport has
    bool can_get = false;
    bool can_put = false;
    bool get_refused = false;  // tried for this message, and failed
    bool put_refused = false;
    bool kernel_copy_denied = false;  // the transport has RDMA, but the kernel denies copies between the two processes

    // Two processes of one node.
    bool same_node = false;
    bool can_share =
        false;  // both see the other's board, both may copy, and the sender finishes a chunk without another MPI call
    bool slot_free = true;         // the receiver has a slot for a cooperative copy
    bool offered = false;          // the sender has taken an offer of the receiver
    bool one_way = false;          // several messages in a row went from sender to receiver, and none came back
    bool receiver_sends = false;   // the receiver is itself sending by rendezvous
    bool lane_is_quicker = false;  // both sides wait, and the receiver has timed the two ways (long_way.h)
    bool crowded = false;          // more processes than CPUs or CPU time (node/cpu_limit.h): two copiers are no faster

    // What both sides do.
    SendCall send_call = SendCall::kIsend;
    RecvCall recv_call = RecvCall::kIrecv;
    std::uint64_t sender_load = 0;  // bytes that the sender still has to copy
    std::uint64_t receiver_load = 0;
    std::int64_t sender_surplus =
        0;  // bytes by which the sender's surplus (board.h) exceeds the receiver's; for coop_load
};

// Whether the message is long enough for two copiers, which need one more packet. On a crowded node only longer
// messages are.
constexpr std::size_t kCrowdedFactor = 2;
constexpr bool long_enough_for_two(const Situation& s) noexcept {
    return s.bytes >= (s.crowded ? kCrowdedFactor * s.coop_min : s.coop_min);
}

// Whether both sides may copy this message, at the same time or one for the other.
constexpr bool may_share(const Situation& s) noexcept {
    return s.can_share && s.wish != Wish::kRget && s.wish != Wish::kSend && !s.get_refused && !s.put_refused;
}

// True if the loads of the boards count the message: both sides could copy it, and under hybrid it is long enough to be
// worth the atomic operations.
constexpr bool load_matters(const Situation& s) noexcept {
    return s.can_share && (long_enough_for_two(s) || s.wish != Wish::kHybrid);
}

// Whether the two sides take turns; then the boards count each turn.
constexpr bool turns_matter(const Situation& s) noexcept { return s.can_share && s.wish == Wish::kCoopLoad; }

}  // namespace coop::rndv
