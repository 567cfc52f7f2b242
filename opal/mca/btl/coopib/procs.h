// SPDX-License-Identifier: BSD-3-Clause
//
// Peers: the ports that they have published, and whether a path leads there.
#pragma once

#include <cstdint>
#include <optional>

#include "endpoint.h"

namespace coop::ib {

struct Module;

// Call this with Module::lock held. Returns null if no path leads to the process. Ends the job if the process has
// another architecture, another version of btl/coopib or smaller fragments.
Endpoint* find_endpoint(Module& m, opal_proc_t* proc);
std::uint64_t id_of(const opal_process_name_t& name) noexcept;
opal_process_name_t name_of(std::uint64_t id) noexcept;
// Any thread may call this. Returns nothing if this process cannot use the published ports.
std::optional<path::PortList> published_ports(std::uint64_t id);
void publish_ports(Module& m);

}  // namespace coop::ib
