// SPDX-License-Identifier: BSD-3-Clause
#include "sim/flows.h"

#include <algorithm>

namespace coop::sim {

FlowIndex FairShare::add(std::span<const LinkIndex> links) {
    FlowIndex index;
    if (free_.empty()) {
        index = static_cast<FlowIndex>(flows_.size());
        flows_.emplace_back();
    } else {
        index = free_.back();
        free_.pop_back();
    }
    Flow& flow = flows_[index];
    flow.hops = static_cast<std::uint32_t>(links.size());
    std::copy(links.begin(), links.end(), flow.links.begin());
    flow.place = static_cast<std::uint32_t>(active_.size());
    flow.rate = 0;
    active_.push_back(index);
    for (const LinkIndex link : links) ++links_[link].flows;
    return index;
}

void FairShare::remove(FlowIndex index) noexcept {
    const Flow& flow = flows_[index];
    for (const LinkIndex link : links(index)) --links_[link].flows;
    active_[flow.place] = active_.back();
    flows_[active_[flow.place]].place = flow.place;
    active_.pop_back();
    free_.push_back(index);
}

// Lists the flows of each link in one array.
void FairShare::collect() {
    used_.clear();
    std::uint32_t crossings = 0;
    for (const FlowIndex index : active_) {
        flows_[index].settled = false;
        for (const LinkIndex link : links(index)) {
            LinkState& state = links_[link];
            if (state.waiting++ != 0) continue;
            used_.push_back(link);
            state.first = crossings;
            state.left = capacity_[link];
            crossings += state.flows;
        }
    }
    crossing_.resize(crossings);
    for (const LinkIndex link : used_) links_[link].waiting = 0;
    for (const FlowIndex index : active_)
        for (const LinkIndex link : links(index)) {
            LinkState& state = links_[link];
            crossing_[state.first + state.waiting++] = index;
        }
}

void FairShare::solve() {
    collect();
    const auto larger = [](const Candidate& a, const Candidate& b) { return a.share > b.share; };
    heap_.clear();
    for (const LinkIndex link : used_) heap_.push_back({links_[link].left / links_[link].waiting, link});
    std::make_heap(heap_.begin(), heap_.end(), larger);
    while (!heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end(), larger);
        Candidate& found = heap_.back();
        const LinkState& state = links_[found.link];
        if (state.waiting == 0) {
            heap_.pop_back();
            continue;
        }
        const double share = std::max(state.left, 0.0) / state.waiting;
        if (share > found.share * (1 + 1e-12)) {
            found.share = share;
            std::push_heap(heap_.begin(), heap_.end(), larger);
            continue;
        }
        const LinkIndex link = found.link;
        heap_.pop_back();
        settle(link, share);
    }
}

// With blocking, a flow at its limit fills the buffers upstream of it and so limits the flows through those buffers,
// too. They all get this share, because shares only grow from here on.
void FairShare::settle(LinkIndex link, double share) noexcept {
    full_.assign(1, link);
    while (!full_.empty()) {
        const LinkIndex at = full_.back();
        full_.pop_back();
        const LinkState& state = links_[at];
        if (state.waiting == 0) continue;
        for (std::uint32_t i = state.first; i < state.first + state.flows; ++i) {
            Flow& flow = flows_[crossing_[i]];
            if (flow.settled) continue;
            std::uint32_t hop = 0;
            while (flow.links[hop] != at) ++hop;
            settle_flow(flow, share);
            const std::uint32_t blocked = blocking_ == Blocking::kOff     ? 0
                                          : blocking_ == Blocking::kHosts ? std::min(hop, 1u)
                                                                          : hop;
            full_.insert(full_.end(), flow.links.begin(), flow.links.begin() + blocked);
        }
    }
}

void FairShare::settle_flow(Flow& flow, double share) noexcept {
    flow.settled = true;
    flow.rate = share;
    for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
        --links_[flow.links[hop]].waiting;
        links_[flow.links[hop]].left -= share;
    }
}

}  // namespace coop::sim
