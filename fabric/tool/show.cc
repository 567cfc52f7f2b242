// SPDX-License-Identifier: BSD-3-Clause
//
// coop-fabric show: prints the topology of a subnet as a topology file.
#include <cstdio>

#include "fabric/shm/process.h"
#include "fabric/shm/trace.h"
#include "fabric/tool/options.h"
#include "fabric/tool/table.h"
#include "fabric/topo/install.h"
#include "fabric/topo/topology_file.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

// The states that a topology file cannot express, as comments.
std::string states_text(const Segment& subnet) {
    std::string text;
    const auto say = [&](bool is_down, const std::string& what) { text += is_down ? "# down: " + what + "\n" : ""; };
    for (std::uint32_t i = 0; i < subnet.hcas().size(); ++i)
        say(subnet.hcas()[i].down != 0, "hca " + hca_name(subnet, i));
    for (std::uint32_t i = 0; i < subnet.ports().size(); ++i)
        say(subnet.ports()[i].down != 0, "port " + port_name(subnet, i));
    for (std::uint32_t i = 0; i < subnet.links().size(); ++i)
        say(subnet.links()[i].down != 0, "link " + link_name(subnet, i));
    for (std::uint32_t i = 0; i < subnet.lids().size(); ++i) say(subnet.lids()[i].down != 0, "lid " + hex_text(i));
    return text;
}

template <class T>
std::size_t count_used(const Segment& subnet, Table which) {
    std::size_t used = 0;
    for (const T& entry : subnet.ever_used<T>(which)) used += Segment::in_use(entry) ? 1 : 0;
    return used;
}

void print_memory(const Segment& subnet) {
    const Header& h = subnet.header();
    const auto add = [&](TextTable& table, const char* name, Table which, std::size_t used) {
        const TableAt& at = h.table[which];
        table.row().add(name).add(used).add(at.capacity).add(at.stride);
    };
    TextTable table("memory", {"what", "in_use", "room_for", "bytes_each"});
    add(table, "hosts", kHosts, subnet.hosts().size());
    add(table, "HCAs", kHcas, subnet.hcas().size());
    add(table, "ports", kPorts, subnet.ports().size());
    add(table, "switches", kSwitches, subnet.switches().size());
    add(table, "links", kLinks, subnet.links().size());
    add(table, "LIDs", kLids, subnet.lids().size());
    add(table, "forwarding entries", kForwards, subnet.forwards().size());
    add(table, "pinned routes", kPinnedRoutes, subnet.pinned_routes().size());
    add(table, "fault rules", kFaults, count_used<Fault>(subnet, kFaults));
    add(table, "processes", kProcesses, count_used<Process>(subnet, kProcesses));
    add(table, "open devices", kContexts, count_used<Context>(subnet, kContexts));
    add(table, "memory regions", kMemoryRegions, count_used<MemoryRegion>(subnet, kMemoryRegions));
    add(table, "completion queues", kCompletionQueues, count_used<CompletionQueue>(subnet, kCompletionQueues));
    add(table, "shared receive queues", kSharedReceiveQueues,
        count_used<SharedReceiveQueue>(subnet, kSharedReceiveQueues));
    add(table, "queue pairs", kQueuePairs, count_used<QueuePair>(subnet, kQueuePairs));
    std::printf("%s\nThe subnet takes %llu KiB of /dev/shm; %llu KiB of its heap are or were in use.\n",
                table.text().c_str(), static_cast<unsigned long long>(subnet.file_bytes() / 1024),
                static_cast<unsigned long long>((h.heap_top - h.heap) / 1024));
}

int run_show(Words words) {
    std::string name;
    bool memory = false;
    const Option options[] = {text("--subnet", name), flag("--memory", memory)};
    if (Error error = take_options(kShowCommand, words, options)) return misuse(kShowCommand, error);
    if (words.size() > 1) return misuse(kShowCommand, {"'" + words[1] + "' is unexpected"});
    if (!words.empty()) name = words[0];
    Segment subnet;
    if (Error error = open_subnet(name, subnet)) return fail(kShowCommand, error);
    if (memory) {
        reap(subnet);
        print_memory(subnet);
    } else {
        std::printf("# subnet %s\n%s%s", subnet.header().name, to_text(read_topology(subnet)).c_str(),
                    states_text(subnet).c_str());
    }
    return 0;
}

}  // namespace

const Command kShowCommand = {"show", "the topology of a subnet, as a file for --topology",
                              R"(coop-fabric show [NAME] [--memory]

Prints the subnet's topology with its current rates, latencies, losses and loads, in the form that --topology reads.
Comments list what is down.

  --memory   print instead the number of objects of each kind in use, and the memory that the subnet takes

The form: a line is a statement; '#' begins a comment.
  subnet  link-layer=ib|roce prefix=0xfe80000000000000 islands=no|yes
  switch  NAME…
  host    NAME…
  hca     HOST/NAME… ports=1..4 profile=P lmc=0..7 mtu=256..4096 pkeys=K,K… grh=optional|required prefix=P
          register-cost=B,P
  port    HOST/HCA/NUMBER… lid=L, and lmc= to prefix= as for hca: for ports that differ from their HCA
  link    A B rate=R latency=T loss=P load=R           A, B: HOST/HCA/NUMBER or a switch; two values: there,back
  route   SLID DLID via SWITCH…                        overrides the forwarding tables; SWITCH:K over the K-th cable to it
  route   SLID DLID nowhere                            packets from one to the other are lost
)",
                              run_show};

}  // namespace coop::fabric
