// SPDX-License-Identifier: BSD-3-Clause
//
// Actions on a running subnet, as words. The command line and scenarios use the
// same ones.
//
//     port HOST/HCA[/PORT] up|down|rate R|latency T|loss P
//     port HOST/HCA/PORT up [--lid LID|new] [--gid GID|new]
//     link A-B[:K] up|down|rate R|latency T|loss P|load R [--one-way]
//     lid LID up|down
//     hca HOST/HCA up|down
//     sm change
//     fault TARGET KIND [T] [--after N] [--count M] [--for T]      fault clear
//     kill HOST|PID
//
// Errors: parsing checks the words against the subnet; the action itself reports
// what fails later.
#pragma once

#include <functional>
#include <string>

#include "fabric/tool/command.h"

namespace coop::fabric {

using Action = std::function<Error(const Segment& subnet)>;

// True if an action begins with this word.
bool is_action(const std::string& word);
// "port, link, lid, …"
std::string action_words();

Error parse_action(const Segment& subnet, const Words& words, Action& action);

// Parses the actions that begin with 'fault' (fault_action.cc).
Error parse_fault(const Segment& subnet, const Words& words, Action& action);

}  // namespace coop::fabric
