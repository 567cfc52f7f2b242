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

FlowNetwork::FlowNetwork(const Topology& topology, Blocking blocking)
    : shares_(capacities(topology), blocking), carried_(topology.links.size(), 0), next_done_ns_(kNever) {}

FlowIndex FlowNetwork::begin(const Route& route, double bytes, std::uint32_t owner) {
    const FlowIndex flow = shares_.add(route.span());
    if (flow >= pieces_.size()) pieces_.resize(flow + 1);
    pieces_[flow] = {bytes, bytes, kNever, owner, false};
    changed_ = true;
    return flow;
}

void FlowNetwork::cut(FlowIndex flow) noexcept {
    shares_.remove(flow);
    changed_ = true;
}

void FlowNetwork::begin_slice(double now_ns) {
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

// While the rates do not change, the times of completion hold. The remaining bytes
// are computed from these times when the rates change.
void FlowNetwork::end_slice(double end_ns) noexcept {
    if (!changed_) return;
    for (const FlowIndex flow : shares_.active()) {
        Piece& piece = pieces_[flow];
        if (piece.moves) piece.left = std::max(0.0, (piece.done_ns - end_ns) * 1e-9 * shares_.rate(flow));
    }
}

void FlowNetwork::take_done(double end_ns, const OnDone& on_done) {
    if (next_done_ns_ > end_ns) return;
    done_.clear();
    for (const FlowIndex flow : shares_.active())
        if (pieces_[flow].moves && pieces_[flow].done_ns <= end_ns) done_.push_back(flow);
    for (const FlowIndex flow : done_) {
        for (const LinkIndex link : shares_.links(flow)) carried_[link] += pieces_[flow].bytes;
        const Piece piece = pieces_[flow];
        cut(flow);
        on_done(piece.owner, piece.done_ns);
    }
}

std::vector<FlowIndex> FlowNetwork::flows_over(LinkIndex link) const {
    std::vector<FlowIndex> found;
    for (const FlowIndex flow : shares_.active()) {
        const auto links = shares_.links(flow);
        if (std::find(links.begin(), links.end(), link) != links.end()) found.push_back(flow);
    }
    return found;
}

}  // namespace coop::sim
