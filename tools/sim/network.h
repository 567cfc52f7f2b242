// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes on their way: flows with what is left of each, and when each will be done
// at the present rates.
//
// Rates are found again at the end of a slice of time in which flows began or
// ended, not for each of them: with slices of length 0 the result is exact, with
// longer ones what ends leaves its share unused until the slice is over, and what
// begins waits for that.
//
// Units: bytes, nanoseconds, bytes per second. Threading: none.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/flows.h"

namespace coop::sim {

class Network {
public:
    explicit Network(const Topology& topology);

    // Begins at the end of this slice.
    FlowIndex begin(const Route& route, double bytes, std::uint32_t owner, std::uint32_t bundle = kNone);
    void cut(FlowIndex flow) noexcept;

    // The slice that begins at now_ns: rates, and times of completion.
    void begin_slice(double now_ns);
    double next_done_ns() const noexcept { return next_done_ns_; }
    // Flows that are done up to end_ns: (owner, when) for each; they are gone then.
    template <class OnDone>
    void take_done(double end_ns, OnDone on_done);
    // Time moves on to end_ns.
    void end_slice(double end_ns) noexcept;

    std::uint32_t owner(FlowIndex flow) const noexcept { return pieces_[flow].owner; }
    // The flows over a link, now.
    std::vector<FlowIndex> flows_over(LinkIndex link) const;

    double bytes_over(LinkIndex link) const noexcept { return carried_[link]; }  // of what is done
    std::uint64_t solved() const noexcept { return solved_; }

private:
    struct Piece {
        double bytes = 0, left = 0;
        double done_ns = 0;  // valid in a slice, of flows that had begun before it
        std::uint32_t owner = 0;
        bool moves = false;  // has a rate
    };

    FairShare shares_;
    std::vector<Piece> pieces_;
    std::vector<double> carried_;
    std::vector<FlowIndex> done_;  // scratch
    double now_ns_ = 0, next_done_ns_ = 0;
    std::uint64_t solved_ = 0;
    bool changed_ = true;
};

template <class OnDone>
void Network::take_done(double end_ns, OnDone on_done) {
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

}  // namespace coop::sim
