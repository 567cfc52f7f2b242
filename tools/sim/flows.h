// SPDX-License-Identifier: BSD-3-Clause
//
// Max-min fair rates of flows over links: no flow can have more without one that
// has less, or as much, getting less. It is what round-robin arbitration at every
// switch and link-level flow control come to, as long as nothing waits behind what
// is blocked.
//
// Found by filling: the link with the smallest equal share of what is left settles
// its flows, then the next. Shares of the other links only grow by that, so an
// entry of the heap that has become too small is put back, and nothing else is
// looked for: O(flows · hops · log links).
//
// Credit-based flow control of links: what waits for a link that is taken fills the
// buffer at the end of the link before it, and all that comes through that buffer
// moves at the rate at which its first ones do (head-of-line blocking), so that
// the buffer before that one fills as well. kCables is this to its end: a flow has
// no more than the slowest one with which it shares a link before the place where
// that one is held. kHosts stops at the first link: the flows of a host have one
// rate. It is about rates only: what waits in a buffer, and for how long, is in
// packets.h.
//
// Units: capacities and rates in bytes per second. Threading: none. Ownership:
// flows are numbers; a number is used again after remove().
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

    // New rates for all flows.
    void solve();

    double rate(FlowIndex flow) const noexcept { return flows_[flow].rate; }  // since the last solve(); 0 before
    const std::vector<FlowIndex>& active() const noexcept { return active_; }
    std::span<const LinkIndex> links(FlowIndex flow) const noexcept { return {flows_[flow].links.data(), flows_[flow].hops}; }
    std::uint32_t flows_over(LinkIndex link) const noexcept { return links_[link].flows; }

private:
    struct Flow {
        std::array<LinkIndex, kMostHops> links;
        std::uint32_t hops = 0;
        std::uint32_t place = 0;  // in active_
        double rate = 0;
        bool settled = false;  // valid in solve()
    };
    struct LinkState {
        std::uint32_t flows = 0;    // over it
        std::uint32_t waiting = 0;  // of them not settled; valid in solve()
        std::uint32_t first = 0;    // of its flows in crossing_; valid in solve()
        double left = 0;            // bytes/s for those; valid in solve()
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
    std::vector<LinkIndex> used_;       // links with flows; valid in solve()
    std::vector<FlowIndex> crossing_;   // flows link by link; valid in solve()
    std::vector<Candidate> heap_;       // valid in solve()
    std::vector<LinkIndex> full_;       // whose buffers fill; valid in settle()
};

}  // namespace coop::sim
