// SPDX-License-Identifier: BSD-3-Clause
//
// Packets of an MTU through input-buffered crossbars with credit-based flow control
// (IBTA 7.9), one virtual lane.
//
//     HCA       its queue pairs take turns, a packet each
//     cable     one packet at a time; it leaves when there is room for all of it in
//               the buffer at the other end
//     buffer    of a switch, for each cable into it: so many bytes. kInput: one
//               queue, and its first packet holds up those behind it. kOutput: a
//               queue for each way on, all in the same space, so that a packet is
//               held up only where the space has filled with others
//     output    the inputs that have a packet for it take turns
//
// A switch sends a packet on when it has all of it, and forgets it when it has
// left. A host takes what comes at the rate of its cable.
//
// A flow that is cut has packets on the way, which go on to where they were going.
//
// Units, threading: as network.h.
#pragma once

#include <deque>

#include "sim/agenda.h"
#include "sim/network.h"

namespace coop::sim {

enum class Queues : std::uint8_t { kInput, kOutput };

struct PacketRules {
    std::uint32_t mtu_bytes = 2048;
    std::uint64_t buffer_bytes = 16384;  // one packet at least
    Queues queues = Queues::kInput;
};

class PacketNetwork final : public Network {
public:
    PacketNetwork(const Topology& topology, const PacketRules& rules);

    FlowIndex begin(const Route& route, double bytes, std::uint32_t owner) override;
    void cut(FlowIndex flow) noexcept override;
    void begin_slice(double now_ns) override { now_ns_ = now_ns; }
    double next_ns() const noexcept override { return arrivals_.next_ns(); }
    void take_done(double end_ns, const OnDone& on_done) override;
    void end_slice(double end_ns) noexcept override { now_ns_ = end_ns; }
    std::uint32_t owner(FlowIndex flow) const noexcept override { return flows_[flow].owner; }
    std::vector<FlowIndex> flows_over(LinkIndex link) const override;
    double bytes_over(LinkIndex link) const noexcept override { return cables_[link].carried; }
    std::uint64_t work() const noexcept override { return arrivals_.entered(); }

private:
    struct Flow {
        Route route;
        std::uint64_t to_send = 0, under_way = 0;  // bytes
        std::uint32_t owner = 0;
        bool live = false, cut = false;
    };
    struct Packet {
        FlowIndex flow;
        std::uint32_t bytes;
        std::uint8_t hop;  // of its route: the link that it goes over, or waits for
    };
    struct Cable {
        double ns_per_byte;
        std::uint32_t first_queue = 0;  // of the buffer at its end
        std::uint32_t port = 0;         // its number among those that leave the same node
        bool from_host, to_host;
        bool busy = false;
        Packet packet{};                // on it, while it is busy
        std::uint32_t from_queue = 0;   // that it stands first in, unless it comes from a host
        std::uint64_t used = 0;         // bytes of the buffer at its end that are taken or promised
        std::deque<std::uint32_t> asking;  // queues whose first packet wants to go over it; of a host: flows
        double carried = 0;
    };
    struct Queue {
        LinkIndex cable;  // into the buffer that it is in
        std::deque<Packet> packets;
    };

    void send(LinkIndex link);
    void arrive(LinkIndex link, const OnDone& on_done);
    void leave_queue(std::uint32_t queue);
    void enter_queue(LinkIndex link, const Packet& packet);
    void ask(std::uint32_t queue);
    void deliver(const Packet& packet, const OnDone& on_done);
    void release(FlowIndex flow);

    PacketRules rules_;
    std::vector<Cable> cables_;  // by link
    std::vector<Queue> queues_;
    std::vector<Flow> flows_;
    std::vector<FlowIndex> free_;
    Agenda arrivals_;  // kLanded: of the packet on this link
    double now_ns_ = 0;
};

}  // namespace coop::sim
