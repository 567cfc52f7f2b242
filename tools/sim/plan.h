// SPDX-License-Identifier: BSD-3-Clause
//
// From the command line to a world: topology, routes, jobs, failures.
//
// Errors: a sentence, about whatever does not fit.
#pragma once

#include <string>
#include <variant>

#include "sim/options.h"
#include "sim/world.h"

namespace coop::sim {

std::variant<WorldPlan, std::string> make_plan(const Options& options);

}  // namespace coop::sim
