// SPDX-License-Identifier: BSD-3-Clause
//
// What a run has shown, as JSON: the tool coop-sim makes tables and figures of it.
#pragma once

#include <string>

#include "sim/options.h"
#include "sim/world.h"

namespace coop::sim {

// `wall_s`: how long it took.
std::string to_json(const Options& options, const World& world, const WorldPlan& plan, double wall_s);

}  // namespace coop::sim
