// SPDX-License-Identifier: BSD-3-Clause
//
// What a request does where it arrives: the responder's half of the transport
// (InfiniBand 9.7.4 reliable, 9.8.3 datagrams), executed by the requester's
// process on the shared entry of the other QP, under its lock.
//
// A message comes in chunks; all but the last only bring bytes. Until it has
// arrived whole it can be sent again from its start: the receive it was given
// is kept, and the packet sequence number moves only at its end.
#pragma once

#include "fabric/engine/faults.h"
#include "fabric/engine/local_qp.h"

namespace coop::fabric {

enum class Answer : int {
    ack,
    none,             // no answer: the requester's timer will run out
    not_ready,        // RNR NAK
    invalid_request,  // NAK: does not fit, too many reads, misaligned
    access,           // NAK: remote access
    operation,        // NAK: the responder could not do it
    local_protection, // the requester's own buffers are not what they should be
};

struct Arrival {
    std::uint32_t source_qp;       // number
    QueuePair& requester;
    const Route& route;
    SendWork& work;
    std::uint64_t chunk;           // bytes of it that arrive now, behind work.moved
    std::uint32_t reads_in_flight; // RDMA reads and atomics of the requester, this one included
    bool responding;               // a read whose request has arrived: the chunk goes back
    Strike strike;
    Notices& notices;              // of what it completes
};

// A request of a connected QP, RC or UC.
Answer deliver(const Segment& subnet, std::uint32_t process, const Arrival& arrival) noexcept;
// A datagram: it arrives, or nobody hears of it. False: the sender's own buffers are at fault.
bool deliver_datagram(const Segment& subnet, std::uint32_t process, const Arrival& arrival) noexcept;

// The requester's own buffers for the next `bytes` of a request. False: a key or a bound is wrong.
struct Buffers {
    Range range[kMaxSges];
    std::uint32_t count = 0;
    std::span<const Range> all() const { return {range, count}; }
};
// A part of a list of ranges: `bytes` from `offset` on.
Buffers slice(std::span<const Range> ranges, std::uint64_t offset, std::uint64_t bytes) noexcept;
bool find_local(const Segment& subnet, const QueuePair& requester, const SendWork& work, std::uint64_t bytes, std::uint32_t access,
                Buffers& buffers) noexcept;

// Moves a QP of any process to the error state and has its owner flush it. `event`: IBV_EVENT_QP_FATAL, …; -1: none.
void fail(const Segment& subnet, QueuePair& qp, int event) noexcept;
void raise_for(const Segment& subnet, const QueuePair& qp, ibv_event_type event) noexcept;

// Completes the posted receives of a QP with WR_FLUSH_ERR, the one held first. With its lock held, by its owner.
void flush_receives(const Segment& subnet, QueuePair& qp, Notices& notices) noexcept;

QueuePair* find_queue_pair(const Segment& subnet, std::uint32_t number) noexcept;

}  // namespace coop::fabric
