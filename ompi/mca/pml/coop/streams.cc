// SPDX-License-Identifier: BSD-3-Clause
#include "streams.h"

#include "async.h"
#include "coop/node/copy_rate.h"

namespace coop::pml {
namespace {

using rndv::Pace;

std::uint64_t copy_rate() noexcept {
    static const std::uint64_t measured = node::measure_copy_rate();
    return measured;
}

// What the ports of the transport say. Open MPI keeps it in Mbit/s.
std::uint64_t link_rate(const mca_btl_base_module_t& btl) noexcept {
    return std::uint64_t{btl.btl_bandwidth} * 1'000'000 / 8;
}

// Whether such a message may go either way.
bool is_paced(const rndv::Situation& s) noexcept {
    return !s.same_node && (s.can_get || s.can_put) && !rndv::sender_waits(s.send_call) && s.sender_contiguous &&
           s.bytes > s.eager_limit && s.bytes < Pace::kMostBytes;
}

}  // namespace

void start_pace(Process& process, const mca_bml_base_btl_t& rdma) noexcept {
    if (process.pace.is_started()) return;
    process.pace.start(link_rate(*rdma.btl), copy_rate());
}

void set_stream_limit(const SendRequest& r, rndv::Situation& s) noexcept {
    // With interrupts the receiver reads the message without further calls of ours.
    if (module.config.async != static_cast<std::int64_t>(Async::kOff)) return;
    s.isend_rdma_min = static_cast<std::size_t>(module.config.isend_rdma_min);
    if (s.isend_rdma_min != 0) return;
    const Pace& pace = r.peer->process->pace;
    const bool fast = pace.way() == Pace::Way::kRdma;
    if (!fast) s.isend_rdma_min = Pace::kMostBytes;
    if (pace.is_started() && is_paced(s)) s.link = fast ? rndv::Link::kFast : rndv::Link::kSlow;
}

void pace_begins(SendRequest& r, rndv::Reason reason) noexcept {
    const bool slow = reason == rndv::Reason::kSlowLink;
    if (!slow && reason != rndv::Reason::kFastLink) return;
    r.paced = true;
    r.way = slow ? Pace::Way::kFragments : Pace::Way::kRdma;
    Guard guard(module.lock);
    r.peer->process->pace.on_begun(now_ns());
}

void pace_ends(SendRequest& r) noexcept {
    if (!r.paced) return;
    r.paced = false;
    Guard guard(module.lock);
    r.peer->process->pace.on_ended(r.way, r.bytes(), now_ns());
}

}  // namespace coop::pml
