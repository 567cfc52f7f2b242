// SPDX-License-Identifier: BSD-3-Clause
//
// The report of the parameter `report`: what the rails of this process carried.
#pragma once

namespace coop::ib {

struct Module;

void print_report(const Module& m);

}  // namespace coop::ib
