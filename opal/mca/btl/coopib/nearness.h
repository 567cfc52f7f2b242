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
// Orders the ports by preference. Call it when the HCAs and Connections are open. Returns the error of a parameter, if
// there is one.
std::optional<ParamError> order_ports(Module& m);

}  // namespace coop::ib
