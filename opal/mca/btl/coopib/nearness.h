// SPDX-License-Identifier: BSD-3-Clause
//
// Which HCAs and ports this process uses, and in which order.
#pragma once

#include <optional>

#include "params.h"

namespace coop::ib {

struct Module;

// Drops the HCAs beyond kMaxHcas, the far ones first.
void keep_near_hcas(Module& m);
// Orders the ports by preference. To be called once the HCAs and Connections are open. Returns what is wrong with a
// parameter.
std::optional<ParamError> order_ports(Module& m);

}  // namespace coop::ib
