// SPDX-License-Identifier: BSD-3-Clause
//
// Random faults for soak tests, as the text of a scenario. The same seed on the
// same subnet gives the same text.
//
// A rail is the HCA with the same ordinal on every host. A fault that impairs a rail
// lasts for an outage and then ends; the rail counts as whole again when a program
// has had time to take it back. Unless the plan permits it, at least one other rail
// is whole while a fault impairs one. A rail that is impaired may be struck again.
//
// Errors: a plan that the subnet does not permit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/shm/segment.h"

namespace coop::fabric {

struct StormPlan {
    std::uint64_t seed = 1;
    std::uint32_t faults = 20;
    std::int64_t every_ns = 500'000'000;     // mean time from one fault to the next
    std::int64_t outage_ns = 300'000'000;    // mean duration of a fault
    std::int64_t settle_ns = 1'000'000'000;  // from the end of a fault until its rail is whole again
    bool all_rails = false;                  // permits faults that leave no rail whole
    std::vector<std::string> kinds;          // empty: those that a program can survive without another HCA
};

Error make_storm(const Segment& subnet, const StormPlan& plan, std::string& scenario);

// "port, link, lid, …": all kinds, and those of an empty list.
std::string storm_kinds();
std::string usual_storm_kinds();

}  // namespace coop::fabric
