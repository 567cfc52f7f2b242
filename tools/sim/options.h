// SPDX-License-Identifier: BSD-3-Clause
//
// The command line of the simulator. One row per option defines its parsing, its
// range and its --help text.
//
// Errors: a sentence that names the option, the value and the allowed range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/costs.h"
#include "sim/topology.h"

namespace coop::sim {

struct Options {
    std::string fat_tree = "12,12:12", dragonfly, topology;
    double host_rate = 1.4e9, switch_rate = 1.9e9;
    std::uint64_t lmc = 4;
    std::string routing = "scattered", forwarding;
    std::uint64_t seed = 1;

    std::string pattern = "alltoall", algorithm = "ring", announce = "step", await_sends = "call";
    std::uint64_t copy_below = 0;
    std::uint64_t ranks = 64, bytes = 262144, iterations = 6, messages = 1, only_step = 0, every = 1;
    std::string policy = "bss:12,3";
    bool as_in_paper = false;
    std::uint64_t alpha = 50, probe_every = 8, min_stripe = 8192;
    std::string mapping = "sequential";
    std::uint64_t cluster = 0, per_host = 1;

    std::uint64_t neighbours = 0, neighbour_ranks = 16, neighbour_bytes = 262144;
    std::string neighbour_policy = "original";

    std::string lose;  // "spine3", "leaf0-spine3"
    double lose_ns = 0, back_ns = 0;

    std::string blocking = "none";
    bool packets = false;
    std::uint64_t buffer_bytes = 16384, mtu_bytes = 2048;
    std::string queues = "input";
    double slice_ns = -1;  // below 0: 1/32 of a message's time on a host's cable
    std::uint64_t memory_mbytes = 4096;
    Costs costs;

    bool usage = false, progress = false, help = false;
};

Defect read_options(const std::vector<std::string>& words, Options& options);
std::string options_help();

}  // namespace coop::sim
