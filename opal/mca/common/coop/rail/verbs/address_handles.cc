// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/address_handles.h"

namespace coop::rail {
namespace {

bool is_active(ibv_pd& pd, const path::PortRecord& local) {
    ibv_port_attr now{};
    return ibv_query_port(pd.context, local.port, &now) == 0 && now.state == IBV_PORT_ACTIVE;
}

}  // namespace

AddressHandles::Handle* AddressHandles::find_or_make(const path::PortRecord& local, const path::PortRecord& remote) {
    const Key key{remote.lid, remote.gid, local.gid_index};
    auto found = handles_.find(key);
    if (found == handles_.end()) {
        if (handles_.size() >= most_ && !make_room()) return nullptr;
        // The kernel resolves the Ethernet address of a RoCE port first. On a port that is down this would take seconds.
        if (!is_active(*pd_, local)) return nullptr;
        ibv_ah_attr address = address_of(local, remote, 0, 0, options_);
        Ah ah(ibv_create_ah(pd_, &address));
        if (!ah) return nullptr;
        found = handles_.emplace(key, Handle{std::move(ah), 0, 0}).first;
    }
    found->second.last_use = ++uses_;
    return &found->second;
}

// Destroys the least recently used handle that no send uses.
bool AddressHandles::make_room() {
    auto oldest = handles_.end();
    for (auto it = handles_.begin(); it != handles_.end(); ++it)
        if (it->second.in_flight == 0 && (oldest == handles_.end() || it->second.last_use < oldest->second.last_use))
            oldest = it;
    if (oldest == handles_.end()) return false;
    handles_.erase(oldest);
    return true;
}

}  // namespace coop::rail
