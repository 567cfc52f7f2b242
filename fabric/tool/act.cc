// SPDX-License-Identifier: BSD-3-Clause
//
// coop-fabric port, link, lid, hca, sm, fault, kill: perform one action at once.
#include <cstdio>
#include <limits>

#include "fabric/engine/faults.h"
#include "fabric/shm/trace.h"
#include "fabric/tool/action.h"
#include "fabric/tool/options.h"
#include "fabric/tool/table.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

void print_faults(const Segment& subnet) {
    clear_spent_faults(subnet);
    TextTable table("faults", {"target", "kind", "after", "count", "ends_in_ms"});
    for (const Fault& fault : subnet.ever_used<Fault>(kFaults)) {
        if (!Segment::in_use(fault)) continue;
        const std::int64_t count = fault.count, until_ns = fault.until_ns;
        table.row()
            .add(target_name(subnet, fault.scope, fault.target))
            .add(name_of(fault.kind) +
                 (fault.kind == FaultKind::late ? " " + time_text(fault.delay_ns) : std::string()))
            .add(fault.after.load())
            .add(count == std::numeric_limits<std::int64_t>::max() ? "any" : std::to_string(count))
            .add(until_ns == 0 ? "never" : std::to_string((until_ns - now_ns()) / 1'000'000));
    }
    std::fputs(table.empty() ? "no rules are in force\n" : table.text().c_str(), stdout);
}

// Takes only --subnet and --help out of `words`; the other options belong to the action.
Error take_subnet(const Command& command, Words& words, std::string& name) {
    Words rest, ours;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool is_subnet = words[i] == "--subnet";
        const bool is_ours = is_subnet || words[i].starts_with("--subnet=") || words[i] == "--help" || words[i] == "-h";
        (is_ours ? ours : rest).push_back(words[i]);
        if (is_subnet && i + 1 < words.size()) ours.push_back(words[++i]);
    }
    words = std::move(rest);
    const Option options[] = {text("--subnet", name)};
    return take_options(command, ours, options);
}

int act(const Command& command, Words words) {
    std::string name;
    if (Error error = take_subnet(command, words, name)) return misuse(command, error);
    Segment subnet;
    if (Error error = open_subnet(name, subnet)) return fail(command, error);
    if (&command == &kFaultCommand && words.empty()) {
        print_faults(subnet);
        return 0;
    }
    words.insert(words.begin(), command.name);
    Action action;
    if (Error error = parse_action(subnet, words, action)) return misuse(command, error);
    if (Error error = action(subnet)) return fail(command, error);
    return 0;
}

}  // namespace

const Command kPortCommand = {"port", "take a port down or up; its cable's rate, latency, loss",
                              R"(coop-fabric port HOST/HCA[/PORT] up|down|rate R|latency T|loss P
coop-fabric port HOST/HCA/PORT up [--lid LID|new] [--gid GID|new]

Takes a port, or all ports of an HCA, down or up: programs get PORT_ERR or PORT_ACTIVE, and packets through a port
that is down are lost. What has passed it before arrives: a request is executed, and its acknowledgement lost. rate, latency and loss apply to its cable, in each direction.

  coop-fabric port h1/coop0/1 down
  coop-fabric port h0/coop1 rate 100MB/s
  coop-fabric port h0/coop1 loss 1%
  coop-fabric port h1/coop0/1 up --lid new

  --lid LID|new   the port comes up with another base LID (LID_CHANGE); 'new' is the lowest that is free
  --gid GID|new   it comes up with another GID (GID_CHANGE), in the notation of IPv6
  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)
)",
                              [](Words words) { return act(kPortCommand, std::move(words)); }};

const Command kLinkCommand = {"link", "pull or plug a cable; its rate, latency, loss, load",
                              R"(coop-fabric link A-B[:K] up|down|rate R|latency T|loss P|load R [--one-way]

A and B are ports (HOST/HCA/PORT) or switches; K selects one of several cables between them (default: all). Routes do
not change when a cable is down. load is constant background traffic of others: a hot spot.

  coop-fabric link leaf0-spine1 down
  coop-fabric link h0/coop0/1-sw0 rate 1GB/s
  coop-fabric link leaf0-spine1 load 400MB/s --one-way

  --one-way       only from A to B
  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)
)",
                              [](Words words) { return act(kLinkCommand, std::move(words)); }};

const Command kLidCommand = {"lid", "take a LID down or up",
                             R"(coop-fabric lid LID up|down

Packets to and from a LID that is down are lost; the port's other LIDs still work. Programs get LID_CHANGE if it is
the port's base LID.

  coop-fabric lid 0x3 down

  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)
)",
                             [](Words words) { return act(kLidCommand, std::move(words)); }};

const Command kHcaCommand = {"hca", "take an HCA down or up",
                             R"(coop-fabric hca HOST/HCA up|down

An HCA that is down fails for the processes that have it open: DEVICE_FATAL.

  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)
)",
                             [](Words words) { return act(kHcaCommand, std::move(words)); }};

const Command kSmCommand = {"sm", "another subnet manager takes over",
                            R"(coop-fabric sm change

Programs get SM_CHANGE on every port. Nothing else changes.

  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)
)",
                            [](Words words) { return act(kSmCommand, std::move(words)); }};

const Command kFaultCommand = {"fault", "lose, damage, delay or refuse messages",
                               R"(coop-fabric fault TARGET KIND [--after N] [--count M] [--for T]
coop-fabric fault clear
coop-fabric fault

TARGET is 'all', HOST/HCA, HOST/HCA/PORT, a LID, a QP (qp:0x12), or 'link A-B[:K]' (from A to B). KIND is
  drop           the message is lost
  corrupt        it is damaged in transit (a symbol error is counted) and therefore lost
  lose-ack       it is executed, but its acknowledgement is lost
  rnr            the receiver is not ready
  reorder        a read's response is delayed; requests that need not wait for it overtake it. A datagram is delayed and
                 overtaken by later ones
  double         a datagram arrives twice
  cut            it is executed, but its acknowledgement is lost; after the last one TARGET goes down (with 'all' and
                 a QP: the port where the message arrives)
  mute-qp        the sending QP (or the QP that TARGET names) becomes mute: it neither sends nor answers, and nothing
                 of it completes until it is in the error state
  mute-qp-for-good   the same, but it completes nothing there either: only destroying it helps
  late T         it is executed, but only a time T after the sender has given up on it (status 12, or a flush); dropped
                 if the receiving QP is in the error state, reset or destroyed by then. Datagrams arrive T later
  ack-and-die    it is acknowledged, but does not reach memory; after the last one the receiving HCA goes down. Spares
                 what an HCA or a port as TARGET sends
  kill-qp        the receiving QP fails
  kill-process   the receiving process dies

  --after N       spare the first N messages
  --count M       apply to M messages (1; with --for: all)
  --for T         apply for this time, from now on
  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)

'clear' removes all rules; without arguments the rules in force are printed.
)",
                               [](Words words) { return act(kFaultCommand, std::move(words)); }};

const Command kKillCommand = {"kill", "kill the processes on a host, or one process (SIGKILL)",
                              R"(coop-fabric kill HOST|PID

Kills every process on HOST, or the process PID, if it is on the subnet.

  --subnet NAME   the subnet ($COOP_FABRIC, or the only one there is)
)",
                              [](Words words) { return act(kKillCommand, std::move(words)); }};

}  // namespace coop::fabric
