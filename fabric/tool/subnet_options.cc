// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/subnet_options.h"

#include <algorithm>

#include "fabric/topo/topology_file.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

constexpr std::uint64_t kMostHosts = 4096, kMostHcas = 64, kMostSwitches = 1024;

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts(1);
    for (const char c : text)
        if (c == ',') parts.emplace_back();
        else parts.back() += c;
    return parts;
}

}  // namespace

const char* const kSubnetOptionsHelp =
    R"(Options, the subnet:
  --hosts N            hosts h0, h1, … (2)
  --hcas N             HCAs of each host: coop0, coop1, … (1)
  --ports N            ports of each HCA, 1..4 (1)
  --lmc N              2^N LIDs per port, 0..7 (0)
  --rate R[,R…]        per port and direction: 250MB/s, 2GB/s, 10Gbit/s, or 'unlimited' (default);
                       a list has one for each HCA of a host
  --loopback-rate R    per port, for messages to itself, which use no link (unlimited)
  --latency T          one way, from port to port: 1.5us, 800ns (0). In a fat tree: across a spine
  --register-cost B,P  processor time to register memory: B, and P for each page, such as 90us,0.3us (0,0)
  --mtu BYTES          256, 512, 1024, 2048 or 4096 (4096)
  --link-layer L       ib or roce (ib)
  --pkeys K[,K…]       table of P_Keys of each port, such as 0xffff,0x8001 (0xffff); full members have the upper bit
  --grh W              'required': ports drop packets without a global routing header; 'optional' (default)
  --profile P          abilities of the HCAs: default, nosrq, noapm, small, old, unordered,
                       nolastwqe
  --fat-tree L,S,H     L leaf switches with H hosts each, S spines; a cable between each leaf and each
                       spine with the (highest) rate. Default: one switch, every port on it
  --rail-optimised S   a leaf switch for each HCA of a host, with that HCA of every host on it, and S spines
  --topology FILE      read the topology from FILE instead ('coop-fabric show' prints one)
  --strict-mr          detect registered memory that is unmapped or replaced
  --strict-arm         arming a CQ while completions wait does not fire at once
  --strict-fork        a fork() without ibv_fork_init() makes all registered memory unusable, as can happen before
                       Linux 5.12
  --trace-messages     record begin, arrival and end of every message in the trace
  --memlock BYTES      memory that a process can register (its RLIMIT_MEMLOCK), or 'unlimited'
  --seed N             seed of the losses, and of the order in which packets land with --profile unordered (1)
  --name NAME          name of the subnet
)";

// Marks an option that sizes the topology: it cannot be combined with a topology file.
Option SubnetOptions::sizing(Option option) {
    return {option.name, option.has_value, [this, option](const std::string& value) {
                sized_by_ = option.name;
                return option.set(value);
            }};
}

Error SubnetOptions::set_rates(const std::string& value) {
    sizes_.rates.clear();
    for (const std::string& part : split(value)) {
        const auto rate = parse_rate(part);
        if (!rate) return bad_value("--rate", part, kRateWords);
        sizes_.rates.push_back(*rate);
    }
    return {};
}

Error SubnetOptions::set_fat_tree(const std::string& value) {
    const std::vector<std::string> parts = split(value);
    if (parts.size() != 3) return bad_value("--fat-tree", value, "LEAVES,SPINES,HOSTS_PER_LEAF");
    std::uint64_t leaves = 0, spines = 0, hosts = 0;
    if (Error error = parse_in_range("--fat-tree, leaves", parts[0], 1, kMostSwitches, leaves)) return error;
    if (Error error = parse_in_range("--fat-tree, spines", parts[1], 1, kMostSwitches, spines)) return error;
    if (Error error = parse_in_range("--fat-tree, hosts per leaf", parts[2], 1, kMostHosts, hosts)) return error;
    if (leaves * hosts > kMostHosts)
        return {"--fat-tree: " + std::to_string(leaves * hosts) + " hosts are more than " + std::to_string(kMostHosts)};
    sizes_.leaves = static_cast<std::uint32_t>(leaves);
    sizes_.spines = static_cast<std::uint32_t>(spines);
    sizes_.hosts_per_leaf = static_cast<std::uint32_t>(hosts);
    return {};
}

void SubnetOptions::add_to(std::vector<Option>& options) {
    const auto add = [&](const char* name, auto&& set) { options.push_back(sizing({name, true, set})); };
    add("--hosts", [this](const std::string& value) {
        has_hosts_ = true;
        return number("--hosts", 1, kMostHosts, sizes_.hosts).set(value);
    });
    options.push_back(sizing(number("--hcas", 1, kMostHcas, sizes_.hcas)));
    options.push_back(sizing(number("--ports", 1, kMaxPortsPerHca, sizes_.ports)));
    options.push_back(sizing(number("--lmc", 0, kHighestLmc, sizes_.lmc)));
    add("--rate", [this](const std::string& value) { return set_rates(value); });
    add("--latency", [this](const std::string& value) {
        const auto ns = parse_time_ns(value);
        if (!ns) return bad_value("--latency", value, kTimeWords);
        sizes_.latency_ns = *ns;
        return Error{};
    });
    add("--register-cost", [this](const std::string& value) {
        const auto cost = parse_register_cost(value);
        if (!cost) return bad_value("--register-cost", value, kRegisterCostWords);
        sizes_.register_cost = *cost;
        return Error{};
    });
    add("--mtu", [this](const std::string& value) { return parse_mtu("--mtu", value, sizes_.mtu_bytes); });
    add("--link-layer", [this](const std::string& value) {
        if (value != "ib" && value != "roce") return bad_value("--link-layer", value, "'ib' or 'roce'");
        sizes_.ethernet = value == "roce";
        return Error{};
    });
    add("--pkeys", [this](const std::string& value) {
        auto keys = parse_pkeys(value);
        if (!keys) return bad_value("--pkeys", value, kPkeyWords);
        sizes_.pkeys = std::move(*keys);
        return Error{};
    });
    add("--grh", [this](const std::string& value) { return parse_grh("--grh", value, sizes_.grh_required); });
    add("--profile", [this](const std::string& value) {
        const Profile* profile = find_profile(value);
        if (profile == nullptr) return bad_value("--profile", value, "one of " + profile_names());
        sizes_.profile = profile;
        return Error{};
    });
    add("--fat-tree", [this](const std::string& value) { return set_fat_tree(value); });
    add("--rail-optimised", [this](const std::string& value) {
        sizes_.rail_optimised = true;
        return number("--rail-optimised", 1, kMostSwitches, sizes_.spines).set(value);
    });
    options.push_back(text("--topology", topology_file_));
    options.push_back(flag("--strict-mr", settings_.strict_memory));
    options.push_back(flag("--strict-arm", settings_.strict_arm));
    options.push_back(flag("--strict-fork", settings_.strict_fork));
    options.push_back(flag("--trace-messages", settings_.trace_messages));
    options.push_back({"--memlock", true, [this](const std::string& value) {
                           const auto bytes = value == "unlimited" ? std::optional(~std::uint64_t{0})
                                                                   : parse_size_bytes(value);
                           if (!bytes || *bytes == 0)
                               return bad_value("--memlock", value, std::string(kSizeWords) + ", or 'unlimited'");
                           settings_.memory_lock_limit = *bytes;
                           return Error{};
                       }});
    options.push_back({"--loopback-rate", true, [this](const std::string& value) {
                           const auto rate = parse_rate(value);
                           if (!rate) return bad_value("--loopback-rate", value, kRateWords);
                           settings_.loopback_rate = *rate;
                           return Error{};
                       }});
    options.push_back({"--seed", true, [this](const std::string& value) {
                           return parse_in_range("--seed", value, 0, ~std::uint64_t{0}, settings_.seed);
                       }});
    options.push_back(text("--name", name_));
}

Error SubnetOptions::make(Topology& topology) const {
    if (!topology_file_.empty()) {
        if (!sized_by_.empty()) return {sized_by_ + " cannot be combined with --topology: the file determines it"};
        return read_topology_file(topology_file_, topology);
    }
    if (sizes_.rail_optimised && sizes_.leaves != 0)
        return {"--rail-optimised cannot be combined with --fat-tree: both determine how the switches are connected"};
    if (has_hosts_ && sizes_.leaves != 0)
        return {"--hosts cannot be combined with --fat-tree, which determines the number of hosts"};
    const Flaw flaw = generate(sizes_, topology);
    return {flaw.text};
}

}  // namespace coop::fabric
