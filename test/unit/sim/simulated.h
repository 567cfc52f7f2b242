// SPDX-License-Identifier: BSD-3-Clause
//
// Runs of the simulator in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "sim/plan.h"
#include "sim/world.h"

namespace coop::sim {

// A whole run, or a failed test.
struct Simulated {
    WorldPlan plan;
    World world;
    explicit Simulated(const Options& o) : plan(take(o)), world(plan) {
        const Defect bad = world.run();
        EXPECT_FALSE(bad) << *bad;
    }
    static WorldPlan take(const Options& o) {
        auto made = make_plan(o);
        EXPECT_TRUE(std::holds_alternative<WorldPlan>(made)) << std::get<std::string>(made);
        return std::get<WorldPlan>(made);
    }
    const JobResult& result() const { return world.results()[0]; }
    double last_us() const {
        const auto& ends = result().iteration_end_ns;
        return (ends.back() - ends[ends.size() - 2]) / 1e3;
    }
    double carried() const {
        double bytes = 0;
        for (NodeIndex host = 0; host < world.topology().hosts; ++host)
            bytes += world.network().bytes_over(world.topology().host_link(host));
        return bytes;
    }
};

inline std::string flaw(const Options& o) {
    auto made = make_plan(o);
    const auto* bad = std::get_if<std::string>(&made);
    return bad != nullptr ? *bad : "";
}

}  // namespace coop::sim
