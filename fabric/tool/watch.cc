// SPDX-License-Identifier: BSD-3-Clause
//
// coop-fabric counters, trace, scenario: observe a subnet, and perform a list of
// actions on it.
#include <cstdio>

#include "fabric/shm/process.h"
#include "fabric/tool/options.h"
#include "fabric/tool/report.h"
#include "fabric/tool/scenario.h"

namespace coop::fabric {
namespace {

int run_counters(Words words) {
    std::string name;
    bool json = false;
    CounterChoice choice;
    const Option options[] = {text("--subnet", name), flag("--qp", choice.qps), flag("--links", choice.links),
                              flag("--json", json)};
    if (Error error = take_options(kCountersCommand, words, options)) return misuse(kCountersCommand, error);
    if (!words.empty()) return misuse(kCountersCommand, {"'" + words[0] + "' is unexpected"});
    Segment subnet;
    if (Error error = open_subnet(name, subnet)) return fail(kCountersCommand, error);
    reap(subnet);
    if (json) choice.links = choice.qps = true;
    print_counters(subnet, choice, json);
    return 0;
}

int run_trace(Words words) {
    std::string name;
    bool follow = false;
    const Option options[] = {text("--subnet", name), flag("--follow", follow)};
    if (Error error = take_options(kTraceCommand, words, options)) return misuse(kTraceCommand, error);
    if (!words.empty()) return misuse(kTraceCommand, {"'" + words[0] + "' is unexpected"});
    Segment subnet;
    if (Error error = open_subnet(name, subnet)) return fail(kTraceCommand, error);
    if (follow) follow_trace(subnet, stdout, {});
    else write_trace(subnet, stdout, 0);
    return 0;
}

int run_scenario(Words words) {
    std::string name;
    bool only_check = false;
    const Option options[] = {text("--subnet", name), flag("--check", only_check)};
    if (Error error = take_options(kScenarioCommand, words, options)) return misuse(kScenarioCommand, error);
    if (words.size() != 1) return misuse(kScenarioCommand, {"give one file"});
    Segment subnet;
    if (Error error = open_subnet(name, subnet)) return fail(kScenarioCommand, error);
    Scenario scenario;
    if (Error error = scenario.read(subnet, words[0])) return misuse(kScenarioCommand, error);
    if (!only_check) scenario.run(subnet, {});
    return 0;
}

}  // namespace

const Command kCountersCommand = {"counters", "print the counters of ports, links, queue pairs and processes",
                                  R"(coop-fabric counters [--links] [--qp] [--json] [--subnet NAME]

Prints, for each port, the traffic sent, received, lost and damaged, and how long messages waited for its link; for
each process, the CPU time of the thread that emulates its HCAs.

  --links         also each direction of each cable
  --qp            also each queue pair
  --json          everything, as JSON
  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)
)",
                                  run_counters};

const Command kTraceCommand = {"trace", "print the events on a subnet, with times",
                               R"(coop-fabric trace [--follow] [--subnet NAME]

Prints the subnet's latest events, at most 32768, with the time since the subnet was made: state changes, retries,
errors, migrations, asynchronous events, processes; also messages, if it was made with --trace-messages.

  --follow        keep printing new events until the subnet is removed
  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)
)",
                               run_trace};

const Command kScenarioCommand = {"scenario", "perform actions at given times or counts",
                                  R"(coop-fabric scenario FILE [--check] [--subnet NAME]

Performs the actions in FILE. Each line has a time or a count, followed by an action in the syntax of the commands
port, link, lid, hca, sm, fault and kill; '#' begins a comment:

  at 1.2s port h1/coop0/1 down
  at 1.5s port h1/coop0/1 up
  after 500 messages lid 0x3 down
  at 2s fault all rnr --count 20
  at 3s kill h1

Times are relative to the start of this command. A count is the number of messages that all ports together have sent
since then; it is checked every millisecond.
If a line is wrong, no action is performed.

  --check         only check the lines
  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)
)",
                                  run_scenario};

}  // namespace coop::fabric
