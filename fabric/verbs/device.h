// SPDX-License-Identifier: BSD-3-Clause
//
// The devices of a process: the HCAs of its host on the subnet. They live as long
// as the process, so they stay valid after the program has freed its list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/verbs/exports.h"

namespace coop::fabric {

struct VerbsDevice : ibv_device {
    // Providers of libibverbs read the private part after the public one to see whether a device is theirs; zeros match
    // none.
    std::byte behind[512];
    std::uint32_t hca;     // index on the subnet
    std::uint32_t number;  // within this host: the N of uverbsN
};

inline const VerbsDevice& to_device(const ibv_device* device) { return *static_cast<const VerbsDevice*>(device); }

// Empty without a subnet.
const std::vector<VerbsDevice*>& local_devices();

}  // namespace coop::fabric
