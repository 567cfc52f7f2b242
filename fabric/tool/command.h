// SPDX-License-Identifier: BSD-3-Clause
//
// A subcommand of coop-fabric: its name, its help text, and the function that
// runs it. Exit status: 0 success, 1 failure, 2 wrong usage.
#pragma once

#include <string>
#include <vector>

#include "fabric/shm/segment.h"

namespace coop::fabric {

using Words = std::vector<std::string>;

struct Command {
    const char* name;
    const char* summary;  // one line; empty: the command is not listed
    const char* help;
    int (*run)(Words words);
};

// Print the reason to stderr and return the exit status.
int fail(const Command& command, const Error& error);
int misuse(const Command& command, const Error& error);

extern const Command kRunCommand, kExecCommand, kCreateCommand, kShowCommand, kListCommand, kDestroyCommand,
    kPortCommand, kLinkCommand, kLidCommand, kHcaCommand, kSmCommand, kFaultCommand, kKillCommand, kCountersCommand,
    kTraceCommand, kScenarioCommand, kStormCommand, kCheckCommand, kAgentCommand;

}  // namespace coop::fabric
