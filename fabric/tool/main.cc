// SPDX-License-Identifier: BSD-3-Clause
//
// coop-fabric: a software InfiniBand subnet on this machine. This file lists the
// subcommands; each has its own file.
#include <cstdio>

#include "coop_config.h"
#include "fabric/tool/command.h"

namespace coop::fabric {
namespace {

const Command* const kCommands[] = {
    &kRunCommand,      &kExecCommand,  &kCreateCommand, &kShowCommand,     &kListCommand,
    &kDestroyCommand,  &kPortCommand,  &kLinkCommand,   &kLidCommand,      &kHcaCommand,
    &kSmCommand,       &kFaultCommand, &kKillCommand,   &kCountersCommand, &kTraceCommand,
    &kScenarioCommand, &kStormCommand, &kCheckCommand,  &kAgentCommand,
};

const Command* find_command(const std::string& name) {
    for (const Command* command : kCommands)
        if (name == command->name) return command;
    return nullptr;
}

int show_help() {
    std::puts(
        "coop-fabric makes a software InfiniBand subnet on this machine and runs programs on it.\n\n"
        "    coop-fabric run --hosts 2 --hcas 2 --rate 250MB/s --latency 1.5us --virtual-hosts -- mpirun -n 2 "
        "./a.out\n\n"
        "Commands:");
    for (const Command* command : kCommands)
        if (*command->summary != '\0') std::printf("  %-10s %s\n", command->name, command->summary);
    std::puts(
        "\n'coop-fabric COMMAND --help' tells more. Names: hosts h0, h1, …; HCAs h0/coop0, …; ports h0/coop0/1, …;\n"
        "switches sw0, or leaf0, …, spine0, …. Commands for a running subnet take --subnet NAME; otherwise it is\n"
        "$COOP_FABRIC, or the only one there is.");
    return 0;
}

int main_with(Words words) {
    if (words.empty()) {
        show_help();
        return 2;
    }
    const std::string name = words[0];
    words.erase(words.begin());
    if (name == "--version") {
        std::puts("coop-fabric " COOP_VERSION);
        return 0;
    }
    if (name == "--help" || name == "-h" || name == "help") {
        const Command* about = words.empty() ? nullptr : find_command(words[0]);
        if (about == nullptr) return show_help();
        std::fputs(about->help, stdout);
        return 0;
    }
    const Command* command = find_command(name);
    if (command != nullptr) return command->run(std::move(words));
    std::fprintf(stderr, "coop-fabric: there is no command '%s' (coop-fabric --help)\n", name.c_str());
    return 2;
}

}  // namespace
}  // namespace coop::fabric

int main(int count, char** words) { return coop::fabric::main_with({words + (count > 0 ? 1 : 0), words + count}); }
