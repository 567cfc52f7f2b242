// SPDX-License-Identifier: BSD-3-Clause
//
// What other components ask about the atomic operations of a peer.
#include <algorithm>

#include "coop/path/pairing.h"
#include "extension.h"
#include "module.h"

namespace coop::ib {

bool reaches_atomics(mca_btl_base_module_t* btl, Endpoint* endpoint) {
    Module& m = Module::of(btl);
    Guard guard(m);
    if (endpoint->connected.load(std::memory_order_relaxed)) return endpoint->channel->atomic_rail.has_value();
    if (!endpoint->may_reach_atomics) {
        const auto paths = path::choose_paths(m.own, endpoint->remote);
        endpoint->may_reach_atomics = std::ranges::any_of(paths, [&](const path::PathChoice& path) {
            return !path.is_for_reads() && endpoint->remote.ports[path.remote_port].hca == endpoint->atomic_hca;
        });
    }
    return *endpoint->may_reach_atomics;
}

namespace {

bool has_waiting(const Rail& rail) noexcept { return !rail.waiting.empty() || rail.reads.has_waiting(); }

// Atomic operations whose rail has failed wait for it, or have gone to another one to the same HCA.
bool wait_after_failure(const Channel& channel) noexcept {
    if (!channel.repairs) return false;
    if (!channel.parked.empty() || channel.in_order.has_waiting()) return true;
    for (const Rail& rail : channel.rails)
        if (rail.remote_hca == channel.endpoint.atomic_hca && has_waiting(rail)) return true;
    return false;
}

}  // namespace

// Requests of other kinds count, too, since atomic operations keep their order behind them.
bool atomics_wait(mca_btl_base_module_t* btl, Endpoint* endpoint) {
    Module& m = Module::of(btl);
    Guard guard(m);
    if (!endpoint->connected.load(std::memory_order_relaxed) && !endpoint->waiting_ops.empty()) return true;
    if (!endpoint->channel || endpoint->channel->state != ChannelState::kConnected) return false;
    const Channel& channel = *endpoint->channel;
    const Rail* const rail = channel.atomic_rail ? channel.rails.find(*channel.atomic_rail) : nullptr;
    return (rail != nullptr && has_waiting(*rail)) || wait_after_failure(channel);
}

// All are on one queue pair, in order, also after the failure of a rail (rail/in_order.h). Not while they wait for a rail: a put
// that need not be beside atomic operations should take another one then.
bool atomics_keep_order(mca_btl_base_module_t* btl, Endpoint* endpoint) {
    Module& m = Module::of(btl);
    Guard guard(m);
    if (!endpoint->connected.load(std::memory_order_relaxed)) return false;
    const Channel& channel = *endpoint->channel;
    if (channel.state != ChannelState::kConnected || !channel.atomic_rail) return false;
    return !channel.repairs || (!channel.in_order.has_waiting() && channel.reaches_atomic_hca());
}

}  // namespace coop::ib
