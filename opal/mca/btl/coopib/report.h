// SPDX-License-Identifier: BSD-3-Clause
//
// The report that the parameter `report` enables: the traffic of this process's rails.
#pragma once

namespace coop::ib {

struct Module;

void print_report(const Module& m);

}  // namespace coop::ib
