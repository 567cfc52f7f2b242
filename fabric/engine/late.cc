// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/late.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "fabric/engine/responder.h"
#include "fabric/shm/trace.h"

namespace coop::fabric {
namespace {

void copy_fields(const QueuePair& from, QueuePair& to) {
    to.number = from.number;
    to.type = from.type;
    to.process = from.process;
    to.hca = from.hca;
    to.pd = from.pd;
    to.port = from.port;
    to.destination = from.destination;
    to.path_mtu_bytes = from.path_mtu_bytes;
    to.primary = from.primary;
    to.migration.store(from.migration.load());
}

// A message that waits in the last switch needs the last cable, the port and the HCA.
bool is_open(const Segment& subnet, std::uint32_t port) {
    const Port& to = subnet.ports()[port];
    return to.down == 0 && subnet.hcas()[to.hca].down == 0 && subnet.links()[to.link_in].down == 0;
}

bool deliver_now(const Segment& subnet, std::uint32_t process, LateMessage& message) {
    if (!is_open(subnet, message.route.to)) return false;
    Notices notices;
    Arrival arrival{message.sender.number,
                    message.sender,
                    message.route,
                    message.work,
                    message.work.bytes,
                    0,
                    false,
                    kNoStrike,
                    notices};
    arrival.late = true;
    const bool datagram = message.sender.type == IBV_QPT_UD;
    const bool arrived = datagram ? deliver_datagram(subnet, process, arrival)
                                  : deliver(subnet, process, arrival) == Answer::ack;
    notices.flush(subnet);
    return arrived;
}

}  // namespace

std::unique_ptr<LateMessage> capture(const Segment& subnet, const QueuePair& sender, const Route& route,
                                     const SendWork& work) {
    auto message = std::make_unique<LateMessage>();
    message->data.resize(work.bytes);
    Buffers from;
    if (!find_local(subnet, sender, work, work.bytes, 0, from)) return nullptr;
    const Range to{reinterpret_cast<std::uint64_t>(message->data.data()), work.bytes, kNone};
    if (work.bytes > 0 && copy_from(getpid(), {&to, 1}, from.all()) != CopyResult::done) return nullptr;
    copy_fields(sender, message->sender);
    message->route = route;
    message->work = work;
    message->work.flags |= IBV_SEND_INLINE;
    message->work.inline_at = message->data.data();
    message->work.moved = 0;
    return message;
}

void deliver_late(const Segment& subnet, std::uint32_t process, LateMessage& message) noexcept {
    const bool arrived = deliver_now(subnet, process, message);
    const std::uint32_t to = message.sender.type == IBV_QPT_UD ? message.work.to_qp : message.sender.destination;
    trace(subnet, arrived ? TraceKind::late_arrived : TraceKind::late_dropped, message.sender.number, to,
          message.route.dlid, message.work.bytes);
}

void LateMessages::add(std::unique_ptr<LateMessage> message) {
    std::lock_guard guard(lock_);
    const auto later = std::ranges::upper_bound(messages_, message->due_ns, {},
                                                [](const auto& m) { return m->due_ns; });
    messages_.insert(later, std::move(message));
}

std::unique_ptr<LateMessage> LateMessages::take(std::int64_t now_ns) {
    std::lock_guard guard(lock_);
    if (messages_.empty() || messages_.front()->due_ns > now_ns) return nullptr;
    std::unique_ptr<LateMessage> first = std::move(messages_.front());
    messages_.erase(messages_.begin());
    return first;
}

}  // namespace coop::fabric
