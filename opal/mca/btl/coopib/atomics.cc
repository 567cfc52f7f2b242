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

// Requests of other kinds count, too, since atomic operations keep their order behind them.
bool atomics_wait(mca_btl_base_module_t* btl, Endpoint* endpoint) {
    Module& m = Module::of(btl);
    Guard guard(m);
    if (!endpoint->connected.load(std::memory_order_relaxed)) return !endpoint->waiting_ops.empty();
    Channel& channel = *endpoint->channel;
    Rail* const rail = channel.atomic_rail ? channel.rails.find(*channel.atomic_rail) : nullptr;
    return rail != nullptr && (!rail->waiting.empty() || rail->reads.has_waiting());
}

}  // namespace coop::ib
