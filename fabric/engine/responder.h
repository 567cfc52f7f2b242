// SPDX-License-Identifier: BSD-3-Clause
//
// The responder's half of the transport (InfiniBand 9.7.4 reliable, 9.8.3
// datagrams): executes a request where it arrives. The requester's process does
// this, on the shared entry of the other QP, under its lock.
//
// A message arrives in chunks; all but the last only bring bytes. Until the last
// one the message can be sent again from its start: the receive that it took is
// kept, and the packet sequence number only moves at its end.
#pragma once

#include "fabric/engine/faults.h"
#include "fabric/engine/local_qp.h"

namespace coop::fabric {

enum class Answer : int {
    ack,
    none,              // no answer: the requester's timer will expire
    not_ready,         // RNR NAK
    invalid_request,   // NAK: not permitted by the QP, bad length, too many reads, misaligned
    access,            // NAK: remote access violation
    operation,         // NAK: the responder could not execute it
    local_protection,  // the requester's own buffers are invalid
};

struct Arrival {
    std::uint32_t source_qp;  // number
    QueuePair& requester;
    const Route& route;
    SendWork& work;
    std::uint64_t chunk;            // bytes of this chunk, which begins at work.moved
    std::uint32_t reads_in_flight;  // RDMA reads and atomics of the requester, including this one
    bool responding;                // a read whose request has arrived: the chunk returns to the requester
    const Strike& strike;
    Notices& notices;   // of the completions that this causes
    bool late = false;  // the requester has given up on it (late.h): it must not be answered
};

// Delivers a request of a connected QP, RC or UC.
Answer deliver(const Segment& subnet, std::uint32_t process, const Arrival& arrival) noexcept;
// Delivers a datagram, or drops it silently. Returns false if the sender's own buffers are invalid.
bool deliver_datagram(const Segment& subnet, std::uint32_t process, const Arrival& arrival) noexcept;

// A list of ranges, at most one for each scatter entry of a request.
struct Buffers {
    Range range[kMaxSges];
    std::uint32_t count = 0;
    std::span<const Range> all() const { return {range, count}; }
};
// The part of a list of ranges that begins at `offset` and has `bytes` bytes.
Buffers slice(std::span<const Range> ranges, std::uint64_t offset, std::uint64_t bytes) noexcept;
// Finds the requester's own buffers for the first `bytes` of a request. Returns false if a key, a bound or the access
// is wrong.
bool find_local(const Segment& subnet, const QueuePair& requester, const SendWork& work, std::uint64_t bytes,
                std::uint32_t access, Buffers& buffers) noexcept;

// Moves a QP of any process to the error state; its owner flushes it. `event`: IBV_EVENT_QP_FATAL, …; -1: none.
void fail(const Segment& subnet, QueuePair& qp, int event) noexcept;
void raise_for(const Segment& subnet, const QueuePair& qp, ibv_event_type event) noexcept;

// Completes the posted receives of a QP with WR_FLUSH_ERR, the held one first. The owner calls this, with the QP's lock
// held.
void flush_receives(const Segment& subnet, QueuePair& qp, Notices& notices) noexcept;

QueuePair* find_queue_pair(const Segment& subnet, std::uint32_t number) noexcept;
// Whether the QP takes requests, or refuses them. One in the error state, for instance, drops them silently.
bool listens(const Segment& subnet, std::uint32_t number) noexcept;

}  // namespace coop::fabric
