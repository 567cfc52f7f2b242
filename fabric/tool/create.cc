// SPDX-License-Identifier: BSD-3-Clause
//
// coop-fabric create, list, destroy: subnets that outlive the command.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fabric/shm/process.h"
#include "fabric/tool/subnet_options.h"
#include "fabric/tool/table.h"

namespace coop::fabric {
namespace {

constexpr const char* kDefaultName = "default";

int run_create(Words words) {
    SubnetOptions subnet_options;
    std::vector<Option> options;
    subnet_options.add_to(options);
    if (Error error = take_options(kCreateCommand, words, options)) return misuse(kCreateCommand, error);
    if (words.size() > 1) return misuse(kCreateCommand, {"'" + words[1] + "' is unexpected"});
    std::string name = words.empty() ? subnet_options.name() : words[0];
    if (const char* environment = std::getenv("COOP_FABRIC"); name.empty() && environment != nullptr)
        name = environment;
    if (name.empty()) name = kDefaultName;
    Topology topology;
    if (Error error = subnet_options.make(topology)) return fail(kCreateCommand, error);
    Segment subnet;
    if (Error error = install(topology, subnet_options.settings(), name, false, subnet))
        return fail(kCreateCommand, error);
    std::printf("%s\n", name.c_str());
    return 0;
}

int alive_processes(const Segment& subnet) {
    const auto processes = subnet.ever_used<Process>(kProcesses);
    return static_cast<int>(std::ranges::count_if(processes, is_alive));
}

const char* state_of(const Segment& subnet) {
    if (is_abandoned(subnet)) return "abandoned: 'coop-fabric run' was killed";
    return subnet.header().has_keeper != 0 ? "of a run" : "created";
}

int run_list(Words words) {
    if (Error error = take_options(kListCommand, words, {})) return misuse(kListCommand, error);
    if (!words.empty()) return misuse(kListCommand, {"'" + words[0] + "' is unexpected"});
    std::vector<std::string> names = Segment::list();
    std::ranges::sort(names);
    TextTable table("subnets", {"name", "hosts", "HCAs", "ports", "processes", "memory_KiB", "state"});
    for (const std::string& name : names) {
        Segment subnet;
        if (const Error error = subnet.attach(name)) {
            table.row().add(name).add(0).add(0).add(0).add(0).add(0).add(error.text);
            continue;
        }
        table.row()
            .add(name)
            .add(subnet.hosts().size())
            .add(subnet.hcas().size())
            .add(subnet.ports().size())
            .add(alive_processes(subnet))
            .add(subnet.file_bytes() / 1024)
            .add(state_of(subnet));
    }
    if (!table.empty()) std::fputs(table.text().c_str(), stdout);
    return 0;
}

// Removes a subnet, including one of another version that cannot be attached.
int run_destroy(Words words) {
    std::string name;
    bool abandoned = false;
    const Option options[] = {text("--subnet", name), flag("--abandoned", abandoned)};
    if (Error error = take_options(kDestroyCommand, words, options)) return misuse(kDestroyCommand, error);
    if (words.size() > 1) return misuse(kDestroyCommand, {"'" + words[1] + "' is unexpected"});
    if (abandoned) {
        for (const std::string& one : Segment::list()) {
            Segment subnet;
            if (subnet.attach(one) || !is_abandoned(subnet)) continue;
            if (Error error = Segment::remove(one)) return fail(kDestroyCommand, error);
        }
        return 0;
    }
    if (!words.empty()) name = words[0];
    if (const char* environment = std::getenv("COOP_FABRIC"); name.empty() && environment != nullptr)
        name = environment;
    if (name.empty())
        return misuse(kDestroyCommand, {"give a name, or set COOP_FABRIC"});  // never take the only subnet by default
    Segment subnet;
    if (!subnet.attach(name))
        if (const int alive = alive_processes(subnet); alive > 0)
            std::fprintf(stderr,
                         "coop-fabric destroy: %d processes are still on '%s'; they keep its memory until they end\n",
                         alive, name.c_str());
    if (Error error = Segment::remove(name)) return fail(kDestroyCommand, error);
    return 0;
}

const std::string kCreateHelp =
    std::string(
        "coop-fabric create [OPTIONS] [NAME]\n\n"
        "Makes a subnet that stays until 'coop-fabric destroy', and prints its name: NAME or that of --name, or\n"
        "$COOP_FABRIC, or 'default'. 'coop-fabric exec' runs programs on it.\n\n") +
    kSubnetOptionsHelp;

}  // namespace

const Command kCreateCommand = {"create", "make a subnet that stays", kCreateHelp.c_str(), run_create};

const Command kListCommand = {"list", "list the subnets",
                              R"(coop-fabric list

Prints this user's subnets: their sizes, the number of processes on them, the memory that they use, and how they were
made. A subnet is abandoned if the 'coop-fabric run' that made it was killed (SIGKILL); 'coop-fabric destroy
--abandoned' removes all abandoned subnets.
)",
                              run_list};

const Command kDestroyCommand = {"destroy", "remove a subnet",
                                 R"(coop-fabric destroy [NAME]
coop-fabric destroy --abandoned

Removes a subnet (NAME, or $COOP_FABRIC), or all abandoned ones ('coop-fabric list').
Processes that are on it can go on; no other process can join.
)",
                                 run_destroy};

}  // namespace coop::fabric
