// SPDX-License-Identifier: BSD-3-Clause
//
// For copies inside the node: the way to its processes by loopback, and the load
// of the HCAs (coop/node/loopback.h).
#include "loopback.h"

#include <algorithm>

#include "connect.h"
#include "coop/node/loopback.h"
#include "module.h"

namespace coop::ib {
namespace {

class OwnLoopback final : public node::Loopback {
public:
    const void* transport() const noexcept override { return &module.base; }

    Way way_to(void* endpoint) noexcept override {
        Endpoint& peer = *static_cast<Endpoint*>(endpoint);
        Guard guard(module);
        if (!peer.channel || peer.channel->state == ChannelState::kUnused) connect(module, peer);
        switch (peer.channel->state) {
        case ChannelState::kConnected: return Way::kReady;
        case ChannelState::kBroken: return Way::kBroken;
        case ChannelState::kUnused:
        case ChannelState::kConnecting: break;
        }
        return Way::kConnecting;
    }

    std::uint32_t operations(void* endpoint) noexcept override {
        rndv::HcaLoads* loads = node::hca_loads.load(std::memory_order_acquire);
        if (loads == nullptr) return 0;
        const Channel& channel = *static_cast<Endpoint*>(endpoint)->channel;
        std::uint32_t most = 0;
        Guard guard(module);
        for (const Rail& rail : channel.rails)
            if (const auto place = rndv::place_of(*loads, module.uses[rail.local_hca].guid)) most = std::max(most, rndv::operations_on(*loads, *place));
        return most;
    }
};

OwnLoopback own;

}  // namespace

void offer_loopback() noexcept { node::loopback = &own; }

void withdraw_loopback() noexcept {
    if (node::loopback == &own) node::loopback = nullptr;
}

void count_posted(Module& m, StripeWork& stripe, std::uint32_t hca) noexcept {
    stripe.load_place = 0;
    rndv::HcaLoads* loads = node::hca_loads.load(std::memory_order_acquire);
    if (loads == nullptr || stripe.op->bytes < m.sched.striping_threshold) return;
    const auto place = rndv::place_of(*loads, m.uses[hca].guid);
    if (!place) return;
    rndv::count_posted(*loads, *place);
    stripe.load_place = *place + 1;
}

// The board may have gone in between: then nobody looks at it any more.
void count_completed(StripeWork& stripe) noexcept {
    if (stripe.load_place == 0) return;
    if (rndv::HcaLoads* loads = node::hca_loads.load(std::memory_order_acquire)) rndv::count_completed(*loads, stripe.load_place - 1);
}

}  // namespace coop::ib
