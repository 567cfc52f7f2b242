// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/loopback.h"

namespace coop::node {

Loopback* loopback = nullptr;
std::atomic<rndv::HcaLoads*> hca_loads{nullptr};

}  // namespace coop::node
