// SPDX-License-Identifier: BSD-3-Clause
//
// Builds a world from the command line: topology, routes, jobs, failures.
//
// Errors: a sentence about the first option that does not fit.
#pragma once

#include <string>
#include <variant>

#include "sim/options.h"
#include "sim/world.h"

namespace coop::sim {

std::variant<WorldPlan, std::string> make_plan(const Options& options);

}  // namespace coop::sim
