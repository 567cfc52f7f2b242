// SPDX-License-Identifier: BSD-3-Clause
//
// Max-min fair rates of flows over links: no flow can have more unless a flow with
// at most the same rate gets less. This is the result of round-robin arbitration at
// every switch and link-level flow control, as long as there is no head-of-line
// blocking.
//
// Found by progressive filling: the link with the smallest equal share of its
// remaining capacity settles its flows, then the next. Shares of the other links only
// grow, so an outdated entry of the heap is too small and simply put back:
// O(flows · hops · log links).
//
// Head-of-line blocking with credit-based flow control: packets that wait for a busy
// link fill the buffer before it, and everything through that buffer moves at the rate
// of the blocked packets, so that the buffer before that one fills as well. kCables
// assumes the worst case: a flow limits, to its own rate, every flow with which it
// shares a link upstream of its bottleneck. kHosts assumes this for the first link of a
// flow only: all flows of a host have one rate. This is about rates only; packets.h
// simulates the buffers.
//
// Units: capacities and rates in bytes per second. Threading: none. Ownership:
// flows are numbers; remove() frees a number for reuse.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/routes.h"

namespace coop::sim {

using FlowIndex = std::uint32_t;

enum class Blocking : std::uint8_t { kOff, kHosts, kCables };

class FairShare {
public:
    explicit FairShare(std::vector<double> capacities, Blocking blocking = Blocking::kOff)
        : blocking_(blocking), capacity_(std::move(capacities)), links_(capacity_.size()) {}

    // The first link leaves the sender, the last one reaches the receiver.
    FlowIndex add(std::span<const LinkIndex> links);
    void remove(FlowIndex flow) noexcept;

    // Computes the rates of all flows.
    void solve();

    double rate(FlowIndex flow) const noexcept { return flows_[flow].rate; }  // since the last solve(); 0 before
    const std::vector<FlowIndex>& active() const noexcept { return active_; }
    std::span<const LinkIndex> links(FlowIndex flow) const noexcept {
        return {flows_[flow].links.data(), flows_[flow].hops};
    }
    std::uint32_t flows_over(LinkIndex link) const noexcept { return links_[link].flows; }

private:
    struct Flow {
        std::array<LinkIndex, kMostHops> links;
        std::uint32_t hops = 0;
        std::uint32_t place = 0;  // index into active_
        double rate = 0;
        bool settled = false;  // valid in solve()
    };
    struct LinkState {
        std::uint32_t flows = 0;    // over this link
        std::uint32_t waiting = 0;  // not yet settled; valid in solve()
        std::uint32_t first = 0;    // index of its first flow in crossing_; valid in solve()
        double left = 0;            // bytes/s left for the waiting flows; valid in solve()
    };
    struct Candidate {
        double share;
        LinkIndex link;
    };

    void collect();
    void settle(LinkIndex link, double share) noexcept;
    void settle_flow(Flow& flow, double share) noexcept;

    Blocking blocking_;
    std::vector<double> capacity_;
    std::vector<LinkState> links_;
    std::vector<Flow> flows_;
    std::vector<FlowIndex> free_, active_;
    std::vector<LinkIndex> used_;      // links with flows; valid in solve()
    std::vector<FlowIndex> crossing_;  // the flows of each link in turn; valid in solve()
    std::vector<Candidate> heap_;      // valid in solve()
    std::vector<LinkIndex> full_;      // links whose buffers fill; valid in settle()
};

}  // namespace coop::sim
