// SPDX-License-Identifier: BSD-3-Clause
//
// Random faults: reproducible, parseable, and with a rail left.
#include "fabric/tool/storm.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "fabric/tool/scenario.h"
#include "fabric/topo/generate.h"
#include "fabric/topo/install.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

class Storm : public testing::Test {
protected:
    void install_subnet(const Sizes& sizes) {
        Topology t;
        ASSERT_EQ(generate(sizes, t).text, "");
        const Error error = install(t, {}, name(), false, subnet);
        ASSERT_EQ(error.text, "");
    }
    void TearDown() override { [[maybe_unused]] const Error none = Segment::remove(name()); }
    static std::string name() { return "unit-storm-" + std::to_string(getpid()); }

    std::string text(const StormPlan& plan) {
        std::string scenario;
        const Error error = make_storm(subnet, plan, scenario);
        return error ? error.text : scenario;
    }
    // For each rail the times from which and until which its ports are down, in order.
    std::map<char, std::vector<std::pair<std::int64_t, std::int64_t>>> outages(const StormPlan& plan) {
        std::map<char, std::vector<std::pair<std::int64_t, std::int64_t>>> found;
        std::map<std::string, std::int64_t> down;
        std::istringstream lines(text(plan));
        for (std::string at, time, what, port, state; lines >> at >> time >> what >> port;) {
            if (what != "port") break;  // fault clear
            lines >> state;
            const std::int64_t ns = parse_time_ns(time).value();
            if (state == "down") down.emplace(port, ns);
            else if (down.count(port) != 0) {
                found[port[port.find("coop") + 4]].emplace_back(down[port], ns);
                down.erase(port);
            }
        }
        EXPECT_TRUE(down.empty());  // everything comes up again
        return found;
    }
    // The number of outages that begin while every other rail is down, or was so less than `settle_ns` before.
    int alone(const StormPlan& plan, std::uint32_t rails) {
        const auto all = outages(plan);
        int count = 0;
        for (const auto& [rail, times] : all)
            for (const auto& [from, until] : times) {
                std::uint32_t impaired = 0;
                for (const auto& [other, others] : all)
                    if (other != rail)
                        impaired += std::ranges::any_of(others, [&, at = from](const auto& outage) {
                            return outage.first <= at && at < outage.second + plan.settle_ns;
                        });
                count += impaired + 1 == rails;
            }
        return count;
    }

    Segment subnet;
};

TEST_F(Storm, is_the_same_for_the_same_seed) {
    install_subnet({.hcas = 2});
    EXPECT_EQ(text({.seed = 5}), text({.seed = 5}));
    EXPECT_NE(text({.seed = 5}), text({.seed = 6}));
}

TEST_F(Storm, is_a_scenario_of_every_kind) {
    install_subnet({.hcas = 3, .lmc = 1});
    StormPlan plan{.faults = 400};
    std::istringstream kinds(storm_kinds());
    for (std::string word; kinds >> word;) plan.kinds.push_back(word.substr(0, word.find(',')));
    const std::string actions = text(plan);
    Scenario scenario;
    EXPECT_EQ(scenario.parse(subnet, "storm", actions).text, "");
    for (const char* word :
         {" up --lid new", " up --gid new", "lid 0x", "--one-way", "ack-and-die", "cut", "late", "mute-qp", "kill-qp",
          "lose-ack", "rnr", "drop", "latency", "rate", "loss", "hca h1/coop2 down"})
        EXPECT_NE(actions.find(word), std::string::npos) << word;
}

TEST_F(Storm, leaves_a_rail_at_any_time) {
    install_subnet({.hcas = 3});
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const StormPlan plan{.seed = seed, .faults = 100, .every_ns = 50'000'000, .kinds = {"port"}};
        EXPECT_EQ(alone(plan, 3), 0) << "seed " << seed;
    }
}

// A rule that takes something down may do that late.
TEST_F(Storm, brings_up_at_the_end_what_rules_may_have_taken_down) {
    install_subnet({.hcas = 2});
    const std::string actions = text({.faults = 50, .kinds = {"cut", "ack-and-die"}});
    const std::string end = actions.substr(actions.find(" fault clear"));
    int rules = 0;
    std::istringstream lines(actions);
    for (std::string line, at, time, what, port, kind; std::getline(lines, line);) {
        std::istringstream words(line);
        words >> at >> time >> what >> port >> kind;
        if (kind != "cut" && kind != "ack-and-die") continue;
        ++rules;
        const std::string hca = port.substr(0, port.rfind('/'));
        EXPECT_NE(end.find(kind == "cut" ? " port " + port + " up\n" : " hca " + hca + " up\n"), std::string::npos)
            << line;
    }
    EXPECT_EQ(rules, 50);
}

// Fewer messages may come than the rule counts.
TEST_F(Storm, takes_an_hca_down_that_may_have_lost_messages) {
    install_subnet({.hcas = 2});
    const std::string actions = text({.faults = 20, .kinds = {"ack-and-die"}});
    std::size_t downs = 0;
    for (std::size_t at = 0; (at = actions.find(" down\n", at)) != std::string::npos; ++at) ++downs;
    EXPECT_EQ(downs, 20u);
}

TEST_F(Storm, takes_all_rails_if_asked_to) {
    install_subnet({.hcas = 3});
    EXPECT_GT(alone({.faults = 100, .every_ns = 50'000'000, .all_rails = true, .kinds = {"port"}}, 3), 0);
}

TEST_F(Storm, needs_two_rails_or_permission) {
    install_subnet({.hcas = 1});
    EXPECT_EQ(text({}), "a host has one HCA, so that each fault would leave no rail: give --all-rails");
    EXPECT_EQ(text({.faults = 1, .all_rails = true}).find("at "), 0u);
    EXPECT_EQ(text({.faults = 1, .kinds = {"loss"}}).find("at "), 0u);  // does not take the rail away
}

TEST_F(Storm, refuses_unknown_kinds) {
    install_subnet({.hcas = 2});
    EXPECT_EQ(text({.kinds = {"hail"}}), "--kinds: 'hail' is not one of " + storm_kinds());
}

TEST_F(Storm, has_no_lids_with_roce) {
    Topology t;
    ASSERT_EQ(generate({.hcas = 2, .ethernet = true}, t).text, "");
    ASSERT_EQ(install(t, {}, name(), false, subnet).text, "");
    EXPECT_EQ(text({.kinds = {"lid"}}), "--kinds: lid: RoCE has no LIDs");
    EXPECT_EQ(text({.faults = 300}).find("lid "), std::string::npos);
}

}  // namespace
}  // namespace coop::fabric
