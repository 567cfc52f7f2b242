// SPDX-License-Identifier: BSD-3-Clause
//
// The results of a run as JSON, from which coop-sim makes tables and figures.
#pragma once

#include <string>

#include "sim/options.h"
#include "sim/world.h"

namespace coop::sim {

// `wall_s`: real time of the run.
std::string to_json(const Options& options, const World& world, const WorldPlan& plan, double wall_s);

}  // namespace coop::sim
