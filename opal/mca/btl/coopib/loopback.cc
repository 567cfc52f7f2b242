// SPDX-License-Identifier: BSD-3-Clause
//
// Supports copies inside the node: connections to its processes through an HCA, and
// the load of the HCAs (coop/rndv/hca_load.h).
#include "loopback.h"

#include <algorithm>

#include "connect.h"
#include "extension.h"
#include "module.h"

namespace coop::ib {

LoopbackWay loopback_way(mca_btl_base_module_t* btl, Endpoint* endpoint) {
    Module& m = Module::of(btl);
    Guard guard(m);
    if (!endpoint->channel || endpoint->channel->state == ChannelState::kUnused) connect(m, *endpoint);
    switch (endpoint->channel->state) {
    case ChannelState::kConnected: return LoopbackWay::kReady;
    case ChannelState::kBroken: return LoopbackWay::kBroken;
    case ChannelState::kUnused:
    case ChannelState::kConnecting: break;
    }
    return LoopbackWay::kConnecting;
}

std::uint32_t hca_operations(mca_btl_base_module_t* btl, Endpoint* endpoint) {
    Module& m = Module::of(btl);
    rndv::HcaLoads* loads = m.hca_loads.load(std::memory_order_acquire);
    if (loads == nullptr) return 0;
    std::uint32_t most = 0;
    Guard guard(m);
    for (const Rail& rail : endpoint->channel->rails)
        if (const auto place = rndv::place_of(*loads, m.uses[rail.local_hca].guid))
            most = std::max(most, rndv::operations_on(*loads, *place));
    return most;
}

void share_hca_loads(mca_btl_base_module_t* btl, rndv::HcaLoads* loads) {
    Module::of(btl).hca_loads.store(loads, std::memory_order_release);
}

void count_posted(Module& m, StripeWork& stripe, std::uint32_t hca) noexcept {
    stripe.load_place = 0;
    rndv::HcaLoads* loads = m.hca_loads.load(std::memory_order_acquire);
    if (loads == nullptr || stripe.op->bytes < m.sched.striping_threshold) return;
    const auto place = rndv::place_of(*loads, m.uses[hca].guid);
    if (!place) return;
    rndv::count_posted(*loads, *place);
    stripe.load_place = *place + 1;
}

// The board may have been withdrawn since the operation was counted. Then there is nothing to count.
void count_completed(const Module& m, StripeWork& stripe) noexcept {
    if (stripe.load_place == 0) return;
    if (rndv::HcaLoads* loads = m.hca_loads.load(std::memory_order_acquire))
        rndv::count_completed(*loads, stripe.load_place - 1);
}

}  // namespace coop::ib
