// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network.h"

#include <algorithm>

#include "sim/agenda.h"

namespace coop::sim {
namespace {

std::vector<double> capacities(const Topology& t) {
    std::vector<double> found;
    for (const Link& link : t.links) found.push_back(link.bytes_per_s);
    return found;
}

}  // namespace

Network::Network(const Topology& topology) : shares_(capacities(topology)), carried_(topology.links.size(), 0), next_done_ns_(kNever) {}

FlowIndex Network::begin(const Route& route, double bytes, std::uint32_t owner, std::uint32_t bundle) {
    const FlowIndex flow = shares_.add(route.span(), bundle);
    if (flow >= pieces_.size()) pieces_.resize(flow + 1);
    pieces_[flow] = {bytes, bytes, kNever, owner, false};
    changed_ = true;
    return flow;
}

void Network::cut(FlowIndex flow) noexcept {
    shares_.remove(flow);
    changed_ = true;
}

void Network::begin_slice(double now_ns) {
    now_ns_ = now_ns;
    if (!changed_) return;
    changed_ = false;
    ++solved_;
    shares_.solve();
    next_done_ns_ = kNever;
    for (const FlowIndex flow : shares_.active()) {
        Piece& piece = pieces_[flow];
        piece.moves = true;
        piece.done_ns = now_ns + piece.left / shares_.rate(flow) * 1e9;
        next_done_ns_ = std::min(next_done_ns_, piece.done_ns);
    }
}

// Without a change the times of completion still hold, and what is left is found
// from them when rates change.
void Network::end_slice(double end_ns) noexcept {
    if (!changed_) return;
    for (const FlowIndex flow : shares_.active()) {
        Piece& piece = pieces_[flow];
        if (piece.moves) piece.left = std::max(0.0, (piece.done_ns - end_ns) * 1e-9 * shares_.rate(flow));
    }
}

std::vector<FlowIndex> Network::flows_over(LinkIndex link) const {
    std::vector<FlowIndex> found;
    for (const FlowIndex flow : shares_.active()) {
        const auto links = shares_.links(flow);
        if (std::find(links.begin(), links.end(), link) != links.end()) found.push_back(flow);
    }
    return found;
}

}  // namespace coop::sim
