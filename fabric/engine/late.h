// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that the network still holds when their sender has given up on them, and
// that arrive later: ghosts. A switch that is congested, or a link that recovers,
// can delay a packet by more than a retry takes (InfiniBand 9.7.1: packets live for
// up to the packet lifetime of their path, longer than a short timeout).
//
// A late message has the data that it had when it left its sender, whose memory may
// be in use for something else, and whose queue pair may be in the error state or
// destroyed. The responder treats it as any request: it executes it if its queue
// pair can receive and expects this sequence number, and drops it otherwise. So a
// responder that moves its queue pair to the error state is safe from it.
//
// The process of the sender delivers it; if the process ends, the message is lost.
//
// Threading: any. Ownership: LateMessages owns what it was given until take().
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "fabric/engine/local_qp.h"

namespace coop::fabric {

struct LateMessage {
    std::int64_t due_ns = 0;
    QueuePair sender{};  // only the fields that a responder looks at
    Route route;
    SendWork work{};  // its data is inline, in `data`
    std::vector<std::byte> data;
};

// Copies a message as it leaves its sender. Returns null if its buffers cannot be read.
std::unique_ptr<LateMessage> capture(const Segment& subnet, const QueuePair& sender, const Route& route,
                                     const SendWork& work);

// Delivers it, or drops it, and records that in the trace.
void deliver_late(const Segment& subnet, std::uint32_t process, LateMessage& message) noexcept;

class LateMessages {
public:
    void add(std::unique_ptr<LateMessage> message);
    // The next one that is due at that time, in the order of the due times, or null.
    std::unique_ptr<LateMessage> take(std::int64_t now_ns);

private:
    std::mutex lock_;
    std::vector<std::unique_ptr<LateMessage>> messages_;
};

}  // namespace coop::fabric
