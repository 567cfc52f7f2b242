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
// Flows may be bound together: they have one rate, that of the slowest. So the
// packets of several queue pairs move that leave an HCA through one queue, when
// what is in front of it waits for a cable that is taken (head-of-line blocking).
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

class FairShare {
public:
    explicit FairShare(std::vector<double> capacities) : capacity_(std::move(capacities)), links_(capacity_.size()) {}

    // `bundle`: flows of the same number are bound together; kNone: by itself.
    FlowIndex add(std::span<const LinkIndex> links, std::uint32_t bundle = kNone);
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
        std::uint32_t bundle = kNone;
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

    std::vector<double> capacity_;
    std::vector<LinkState> links_;
    std::vector<Flow> flows_;
    std::vector<FlowIndex> free_, active_;
    std::vector<std::vector<FlowIndex>> bundles_;
    std::vector<LinkIndex> used_;       // links with flows; valid in solve()
    std::vector<FlowIndex> crossing_;   // flows link by link; valid in solve()
    std::vector<Candidate> heap_;       // valid in solve()
};

}  // namespace coop::sim
