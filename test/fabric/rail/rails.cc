// SPDX-License-Identifier: BSD-3-Clause
// Two processes on two hosts connect over all rails of the subnet: on demand, simultaneously, despite losses.
#include <algorithm>
#include <string>
#include <tuple>

#include "coop/path/pairing.h"
#include "coop/rail/verbs/hcas.h"
#include "node.h"
#include "verbs_test.h"

using namespace coop;
using namespace railtest;
using verbstest::tool;

namespace {

std::string host_of(std::uint32_t number) { return "h" + std::to_string(number); }

// The number of paths on each host.
std::size_t paths_of(const path::PortList& list) {
    std::size_t paths = 0;
    for (const path::PortRecord& port : list.ports) paths += std::size_t{1} << port.lmc;
    return paths;
}

std::string ud_qp(const path::PortRecord& port) {
    char text[32];
    snprintf(text, sizeof text, "qp:0x%x", port.ud_qpn);
    return text;
}

// Connects two nodes with these limits and returns the number of rails.
std::size_t rails_with(path::Limits limits, Who who = Who::kFirst) {
    Crowd crowd({.who = who, .limits = limits}, host_of);
    const auto reports = crowd.connect();
    CHECK_EQ(reports[0].rails, reports[1].rails);
    for (const Report& report : reports) CHECK_EQ(report.queue_pairs, report.rails);
    return reports[0].rails;
}

}  // namespace

CASE(every_rail_carries_data) {
    Crowd crowd({}, host_of);
    const auto reports = crowd.connect();
    CHECK_EQ(reports[0].rails, paths_of(crowd.ports(0)));
    CHECK_EQ(reports[1].rails, paths_of(crowd.ports(0)));
}

CASE(two_queue_pairs_on_each_path) {
    Crowd crowd({.limits = {.qps_per_port = 2}}, host_of);
    CHECK_EQ(crowd.connect()[0].rails, 2 * paths_of(crowd.ports(0)));
}

CASE(limits_are_kept) {
    CHECK_EQ(rails_with({.num_rails = 1}), 1);
    const std::size_t pairs = rails_with({.max_paths = 1});
    CHECK_EQ(rails_with({.qps_per_port = 2, .max_paths = 1}), 2 * pairs);
}

CASE(both_that_ask_at_once_get_one_connection) {
    for (int round = 0; round < 5; ++round) rails_with({.qps_per_port = 2}, Who::kBoth);
}

CASE(peer_that_computes_is_waited_for) {
    Crowd crowd({.lazy_ms = 300}, host_of);
    const auto reports = crowd.connect();
    CHECK(reports[0].repeated >= 1);
}

// Loses three datagrams in a row, beginning with the first, second or third that a process sends over an HCA. One process waits for
// the other on most grounds, because the subnet does not matter here.
CASE(lost_datagrams_are_repeated) {
    const bool all = verbstest::ground() == "two";
    for (const Who who : {Who::kFirst, Who::kBoth})
        for (std::uint32_t loser = 0; loser < 2; ++loser)
            for (const char* after : {"0", "1", "2"}) {
                if (!all && (who == Who::kBoth || loser == 0)) continue;
                Crowd crowd({.who = who}, host_of);
                for (const path::PortRecord& port : crowd.ports(loser).ports)
                    if (port.ud_qpn != 0) tool({"fault", ud_qp(port), "drop", "--after", after, "--count", "3"});
                const auto reports = crowd.connect();
                if (*after == '0') CHECK(reports[0].repeated + reports[1].repeated >= 1);
                tool({"fault", "clear"});
            }
}

CASE(another_way_is_taken_if_one_hca_loses_everything) {
    Crowd crowd({}, host_of);
    const auto& ports = crowd.ports(0).ports;
    const auto with_ud = std::count_if(ports.begin(), ports.end(), [](const auto& port) { return port.ud_qpn != 0; });
    if (with_ud < 2) verbstest::skip("there is one HCA");
    const auto first = std::find_if(ports.begin(), ports.end(), [](const auto& port) { return port.ud_qpn != 0; });
    tool({"fault", ud_qp(*first), "drop", "--for", "100s"});
    crowd.connect();
    tool({"fault", "clear"});
}

// --- which HCAs and ports are opened -------------------------------------------------------------------------------

namespace {

std::vector<std::string> names(const rail::HcaOptions& options, std::vector<rail::Diagnostic>& said) {
    std::vector<std::string> all;
    for (const rail::Hca& hca : open_hcas(options, said))
        for (const path::PortRecord& port : hca.ports()) all.push_back(hca.name() + ":" + std::to_string(port.port));
    return all;
}

std::vector<std::string> names(const rail::HcaOptions& options) {
    std::vector<rail::Diagnostic> said;
    const auto all = names(options, said);
    for (const auto& [about, sentence] : said) verbstest::fail(__FILE__, __LINE__, sentence);
    return all;
}

}  // namespace

CASE(lists_choose_hcas_and_ports) {
    const auto all = names({});
    CHECK(!all.empty());
    CHECK(names({.include = "coop0:1"}) == std::vector<std::string>{"coop0:1"});
    CHECK(names({.include = "coop0:1, coop0"}).size() == names({.include = "coop0"}).size());
    CHECK_EQ(names({.include = "coop0"}).size() + names({.exclude = "coop0"}).size(), all.size());
    CHECK_EQ(names({.exclude = "coop0:1"}).size(), all.size() - 1);
}

CASE(interface_that_is_not_there_is_wrong) {
    std::vector<rail::Diagnostic> said;
    CHECK(names({.include = "coop0:1,mlx9_0,coop0:9,coop0:x"}, said) == std::vector<std::string>{"coop0:1"});
    CHECK_EQ(said.size(), 3);
    for (const auto& s : said) CHECK(s.about == rail::About::kInterfaces);
    CHECK(said[0].sentence == "the list of HCAs to include names 'mlx9_0', which this node does not have");
    said.clear();
    CHECK(names({.include = "coop0", .exclude = "coop1"}, said).empty());
    CHECK(said.size() == 1 && said[0].about == rail::About::kInterfaces);
}

CASE(port_that_is_down_is_not_used_and_that_is_reported) {
    const std::size_t all = names({}).size();
    const verbstest::Meanwhile down({"port", "h0/coop0/1", "down"}, {"port", "h0/coop0/1", "up"});
    std::vector<rail::Diagnostic> said;
    CHECK_EQ(names({}, said).size(), all - 1);
    CHECK_EQ(said.size(), 1);
    CHECK(said[0].about == rail::About::kDevice);
    CHECK(said[0].sentence.find("coop0 port 1 is not used: its state is") == 0);
}

CASE(capabilities_are_those_of_the_device) {
    std::vector<rail::Diagnostic> said;
    for (const rail::Hca& hca : open_hcas({}, said)) {
        CHECK_EQ(hca.caps().has_srq(), verbstest::ground() != "nosrq");
        CHECK(hca.caps().max_rd_atomic >= 1 && hca.caps().max_sge >= 1 && hca.caps().max_message_bytes > 0);
        CHECK(hca.sysfs_folder().find(hca.name()) != std::string::npos);
        const auto cq = rail::make_cq(hca.context(), 4);
        CHECK(static_cast<bool>(cq));
    }
}

CASE(limit_on_reads_is_kept_and_told_to_peers) {
    std::vector<rail::Diagnostic> said;
    for (const std::uint32_t most : {1u, 4u}) {
        for (const rail::Hca& hca : open_hcas({.most_reads = most}, said)) {
            CHECK(hca.caps().max_rd_atomic <= most && hca.caps().max_dest_rd_atomic <= most);
            for (const path::PortRecord& port : hca.ports())
                CHECK_EQ(port.max_dest_rd_atomic, hca.caps().max_dest_rd_atomic);
        }
    }
}

// On the ground 'pkeys' the tables are 0x7fff, 0, 0x8001.
CASE(site_19_key_is_found_by_its_value) {
    const bool keyed = verbstest::ground() == "pkeys";
    std::vector<rail::Diagnostic> said;
    for (const auto& [wanted, key, index] :
         {std::tuple(0, 0x8001, 2), {1, 0x8001, 2}, {0x8001, 0x8001, 2}, {0xffff, 0x7fff, 0}}) {
        if (!keyed && (wanted & 0x7fff) == 1) continue;
        for (const rail::Hca& hca : open_hcas({.ports = {.pkey = static_cast<std::uint16_t>(wanted)}}, said))
            for (const path::PortRecord& port : hca.ports()) {
                CHECK_EQ(port.pkey, keyed ? key : 0xffff);
                CHECK_EQ(port.pkey_index, keyed ? index : 0);
            }
    }
    CHECK(said.empty());
}

CASE(site_19_port_without_the_key_is_not_used_and_its_keys_are_reported) {
    std::vector<rail::Diagnostic> said;
    CHECK(names({.ports = {.pkey = 0x8123}}, said).empty());
    CHECK_EQ(said.size(), names({}).size());
    CHECK(said[0].about == rail::About::kPkey);
    CHECK(said[0].sentence == (verbstest::ground() == "pkeys" ? "coop0:1: 0x7fff, 0x8001" : "coop0:1: 0xffff"));
}

CASE(site_19_port_without_the_gid_is_not_used_and_its_indices_are_reported) {
    const bool roce = verbstest::ground() == "roce";
    std::vector<rail::Diagnostic> said;
    CHECK(names({.ports = {.gid_index = 7}}, said).empty());
    CHECK_EQ(said.size(), names({}).size());
    CHECK(said[0].about == rail::About::kGidIndex);
    CHECK(said[0].sentence == (roce ? "coop0:1: 0, 1" : "coop0:1: 0"));
    said.clear();
    for (const rail::Hca& hca : open_hcas({.ports = {.gid_index = 0}}, said))
        for (const path::PortRecord& port : hca.ports()) {
            CHECK_EQ(port.gid_index, 0);
            CHECK_EQ(port.roce, roce ? 1 : 0);  // its first GID is link-local
        }
    CHECK(said.empty());
}
