// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes in transit, and the times of their arrival. World uses one of two
// implementations:
//
//     FlowNetwork    each flow has a rate, max-min fair (flows.h); fast
//     PacketNetwork  each packet moves on its own, through buffers (packets.h)
//
// Time moves in slices. A flow that is added within a slice moves only from the end of
// that slice on. With slices of length 0 the results are exact.
//
// Units: bytes, nanoseconds, bytes per second. Threading: none.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/flows.h"

namespace coop::sim {

class Network {
public:
    using OnDone = std::function<void(std::uint32_t owner, double at_ns)>;

    Network() = default;
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;
    virtual ~Network() = default;

    // The flow starts at the end of this slice.
    virtual FlowIndex begin(const Route& route, double bytes, std::uint32_t owner) = 0;
    virtual void cut(FlowIndex flow) noexcept = 0;

    virtual void begin_slice(double now_ns) = 0;
    // Time of the next event; kNever if nothing is under way.
    virtual double next_ns() const noexcept = 0;
    // Reports flows that ended up to end_ns. They are removed before on_done is called.
    virtual void take_done(double end_ns, const OnDone& on_done) = 0;
    // Advances time to end_ns.
    virtual void end_slice(double end_ns) noexcept = 0;

    virtual std::uint32_t owner(FlowIndex flow) const noexcept = 0;
    // The flows that use a link now.
    virtual std::vector<FlowIndex> flows_over(LinkIndex link) const = 0;

    virtual double bytes_over(LinkIndex link) const noexcept = 0;  // completed flows, or transferred packets
    virtual std::uint64_t work() const noexcept = 0;               // how often rates were computed, or a packet moved
};

// Rates are computed at the end of a slice in which flows began or ended, not for
// each of them: the share of an ended flow is unused until the end of the slice.
class FlowNetwork final : public Network {
public:
    explicit FlowNetwork(const Topology& topology, Blocking blocking = Blocking::kOff);

    FlowIndex begin(const Route& route, double bytes, std::uint32_t owner) override;
    void cut(FlowIndex flow) noexcept override;
    void begin_slice(double now_ns) override;
    double next_ns() const noexcept override { return next_done_ns_; }
    void take_done(double end_ns, const OnDone& on_done) override;
    void end_slice(double end_ns) noexcept override;
    std::uint32_t owner(FlowIndex flow) const noexcept override { return pieces_[flow].owner; }
    std::vector<FlowIndex> flows_over(LinkIndex link) const override;
    double bytes_over(LinkIndex link) const noexcept override { return carried_[link]; }
    std::uint64_t work() const noexcept override { return solved_; }

private:
    struct Piece {
        double bytes = 0, left = 0;
        double done_ns = 0;  // valid during a slice, for flows that began before it
        std::uint32_t owner = 0;
        bool moves = false;  // has a rate
    };

    FairShare shares_;
    std::vector<Piece> pieces_;
    std::vector<double> carried_;
    std::vector<FlowIndex> done_;  // scratch
    double now_ns_ = 0, next_done_ns_;
    std::uint64_t solved_ = 0;
    bool changed_ = true;
};

}  // namespace coop::sim
