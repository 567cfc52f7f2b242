// SPDX-License-Identifier: BSD-3-Clause
//
// Packets of one MTU through input-buffered crossbars with credit-based flow control
// (IBTA 7.9), on one virtual lane.
//
//     HCA       its queue pairs take turns, one packet each
//     cable     one packet at a time, which leaves when the buffer at the other end
//               has room for all of it
//     buffer    of a switch, one for each incoming cable. kInput: one queue, whose first
//               packet blocks the others. kOutput: a queue for each outgoing cable,
//               in a shared space, so that a packet is blocked only when other
//               packets fill the space
//     output    takes packets from the inputs in turn
//
// A switch stores a packet completely before it forwards it (store and forward), and
// frees its space when it has left. A host accepts packets at the rate of its cable.
//
// Packets of a cut flow that are already on the way still arrive.
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
    std::uint64_t buffer_bytes = 16384;  // at least one packet
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
        std::uint8_t hop;  // index in its route: the link that it uses or waits for
    };
    struct Cable {
        double ns_per_byte;
        std::uint32_t first_queue = 0;  // of the buffer at its far end
        std::uint32_t port = 0;         // its number among the links that leave the same node
        bool from_host, to_host;
        bool busy = false;
        Packet packet{};                   // the packet on it; valid while it is busy
        std::uint32_t from_queue = 0;      // the queue that the packet is first in; invalid on links from a host
        std::uint64_t used = 0;            // bytes used or reserved in the buffer at its far end
        std::deque<std::uint32_t> asking;  // queues whose first packet waits for this link; on links from a host: flows
        double carried = 0;
    };
    struct Queue {
        LinkIndex cable;  // that fills the buffer of this queue
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
    Agenda arrivals_;  // kLanded: the packet on this link
    double now_ns_ = 0;
};

}  // namespace coop::sim
