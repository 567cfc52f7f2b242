// SPDX-License-Identifier: BSD-3-Clause
//
// The scheduling policy of a job, in a word: a setting of the product's schedulers.
//
//     original     everything over path 0
//     hsam:4       adaptive striping over 4 paths (dissertation 7)
//     even:4       even striping over 4 paths
//     bss:12,3     batches of 3 of 12 paths (dissertation 8)
//     POLICY:N     any other policy of sched/policy.h over N paths
//
// Errors: a sentence.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "coop/sched/config.h"

namespace coop::sim {

struct Scheduling {
    std::string name;
    std::uint32_t paths = 1;
    sched::SchedConfig config;
};

std::variant<Scheduling, std::string> parse_scheduling(std::string_view word);

}  // namespace coop::sim
