// SPDX-License-Identifier: BSD-3-Clause
//
// sched/config.h and sched/policy.h: names, and errors in settings.
#include "coop/sched/config.h"

#include <gtest/gtest.h>

#include <set>

namespace coop::sched {
namespace {

template <class Change>
std::string wrong(Change change, std::size_t rails = 4) {
    SchedConfig config;
    change(config);
    return defect(config, rails).value_or("");
}

TEST(PolicyNames, are_found_again_and_differ) {
    std::set<std::string> names;
    for (const PolicyRow& row : kPolicyRows) {
        EXPECT_EQ(policy_named(row.name), row.policy);
        EXPECT_STREQ(kPolicyNames[static_cast<std::size_t>(row.policy)], name(row.policy));
        EXPECT_TRUE(names.insert(row.name).second);
    }
    EXPECT_EQ(policy_named("striping"), std::nullopt);
    EXPECT_EQ(policy_named(""), std::nullopt);
}

TEST(SchedConfig, the_defaults_fit_any_number_of_rails) {
    for (std::size_t rails = 1; rails <= kMaxRails; ++rails) EXPECT_EQ(wrong([](SchedConfig&) {}, rails), "");
    EXPECT_EQ(wrong([](SchedConfig&) {}, 0), "there is no rail");
    EXPECT_EQ(wrong([](SchedConfig&) {}, 33), "33 rails exceed the limit of 32 per channel");
}

TEST(SchedConfig, names_a_wrong_setting_its_value_and_the_allowed_ones) {
    EXPECT_EQ(wrong([](SchedConfig& c) { c.weights = {{3, 2, 1}, 3}; }), "weights: 3 given for 4 rails");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.weights = {{3, 2, 1, 0}, 4}; }), "weights: 0 is not allowed (1..1000000)");
    EXPECT_EQ(wrong([](SchedConfig& c) {
                  c.weights = {{3, 2, 1, 1000001}, 4};
              }),
              "weights: 1000001 is not allowed (1..1000000)");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.weights.count = 33; }),
              "weights: 33 given, but a channel has at most 32 rails");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.bss_paths = 2, c.bss_batch = 3; }),
              "n_batch: 3 is more than n_paths, which is 2");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.bss_batch = 5; }), "n_batch: 5 is more than n_paths, which is 4");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.bss_paths = 5; }), "n_paths: 5 wanted, but there are 4 rails");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.bss_paths = 33; }), "n_paths: 33 is not allowed (at most 32)");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.alignment = 96; }), "alignment: 96 is not a power of two");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.window = 0; }), "window: 0 is not allowed (at least 1 message)");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.alpha_percent = 0; }),
              "alpha: 0 % would never adapt (1..100; use weighted_striping for fixed weights)");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.alpha_percent = 101; }), "alpha: 101 % is not allowed (1..100)");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.small_policy = Policy::kBss; }),
              "small_policy: bss is not allowed (allowed: binding, round_robin, window_round_robin, "
              "weighted_round_robin, shortest_queue)");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.epc_striping = Policy::kEpc; }),
              "epc_striping: epc is not allowed (allowed: even_striping, weighted_striping, adaptive_striping, bss)");
    EXPECT_EQ(wrong([](SchedConfig& c) { c.epc_multiplexing = Policy::kEvenStriping; }),
              "epc_multiplexing: even_striping is not allowed (allowed: binding, round_robin, window_round_robin, "
              "weighted_round_robin, shortest_queue)");
}

TEST(SchedConfig, allows_the_configurations_of_the_paper) {
    for (const auto& [paths, batch] :
         {std::pair{4u, 2u}, std::pair{8u, 2u}, std::pair{12u, 3u}, std::pair{4u, 4u}, std::pair{1u, 1u}})
        EXPECT_EQ(wrong([n = paths, b = batch](SchedConfig& c) { c.bss_paths = n, c.bss_batch = b; }, 12), "");
}

TEST(SchedConfig, a_batch_has_four_paths_unless_asked_otherwise) {
    SchedConfig config;
    EXPECT_EQ(bss_batch(config, 2), 2u);
    EXPECT_EQ(bss_batch(config, 4), 4u);
    EXPECT_EQ(bss_batch(config, 12), 4u);
    config.bss_paths = 3;
    EXPECT_EQ(bss_batch(config, 12), 3u);
    config.bss_batch = 1;
    EXPECT_EQ(bss_batch(config, 12), 1u);
}

TEST(ParseWeights, reads_a_list) {
    const auto one = std::get<Weights>(parse_weights("62, 38 ,1000000"));
    ASSERT_EQ(one.count, 3u);
    EXPECT_EQ(one.of[0], 62u);
    EXPECT_EQ(one.of[1], 38u);
    EXPECT_EQ(one.of[2], 1000000u);
    EXPECT_EQ(std::get<Weights>(parse_weights("")).count, 0u);
    EXPECT_EQ(std::get<Weights>(parse_weights("  ")).count, 0u);
    EXPECT_EQ(std::get<Weights>(parse_weights("5")).count, 1u);
}

TEST(ParseWeights, refuses_what_is_not_a_list) {
    for (const char* text : {",", "1,", ",1", "1,,2", "1 2", "one", "1.5", "-1", "99999999999", "1;2"})
        EXPECT_EQ(std::get<std::string>(parse_weights(text)),
                  "weights: \"" + std::string(text) + "\" is not a list of whole numbers with commas between");
    EXPECT_EQ(std::get<std::string>(parse_weights("1,0")), "weights: 0 is not allowed (1..1000000)");
    std::string many = "1";
    for (std::size_t i = 0; i < kMaxRails; ++i) many += ",1";
    EXPECT_EQ(std::get<std::string>(parse_weights(many)), "weights: more than 32 given");
}

}  // namespace
}  // namespace coop::sched
