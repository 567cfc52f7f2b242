// SPDX-License-Identifier: BSD-3-Clause
//
// What can be done to a running subnet, in words: the same on the command line
// and in a scenario.
//
//     port HOST/HCA[/PORT] up|down|rate R|latency T|loss P
//     link A-B[:K] up|down|rate R|latency T|loss P|load R [--one-way]
//     lid LID up|down
//     hca HOST/HCA up|down
//     sm change
//     fault TARGET KIND [--after N] [--count M] [--for T]      fault clear
//     kill HOST|PID
//
// Errors: what is wrong with the words comes out of parsing, against the subnet;
// what goes wrong later, out of the action.
#pragma once

#include <functional>
#include <string>

#include "fabric/tool/command.h"

namespace coop::fabric {

using Action = std::function<Error(const Segment& subnet)>;

// Whether an action begins with this word.
bool is_action(const std::string& word);
// "port, link, lid, …"
std::string action_words();

Error parse_action(const Segment& subnet, const Words& words, Action& action);

// The part of it that is in fault_action.cc; words[0] is 'fault'.
Error parse_fault(const Segment& subnet, const Words& words, Action& action);

}  // namespace coop::fabric
