// SPDX-License-Identifier: BSD-3-Clause
//
// The devices that a process sees: the HCAs of its own host on the subnet. They
// live as long as the process, so a list that was freed leaves nothing dangling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/verbs/exports.h"

namespace coop::fabric {

struct VerbsDevice : ibv_device {
    // Providers of libibverbs, asked whether a device is theirs, look behind its public part; they find nobody's.
    std::byte behind[512];
    std::uint32_t hca;     // index on the subnet
    std::uint32_t number;  // of this host: the N of uverbsN
};

inline const VerbsDevice& to_device(const ibv_device* device) { return *static_cast<const VerbsDevice*>(device); }

// Empty if there is no subnet.
const std::vector<VerbsDevice*>& local_devices();

}  // namespace coop::fabric
