// SPDX-License-Identifier: BSD-3-Clause
//
// base/param_table.h: rows with the locations of their values.
#include "coop/base/param_table.h"

#include <gtest/gtest.h>

#include "coop/base/setting.h"

namespace coop {
namespace {

struct Config {
    std::int64_t depth = -1;
    std::int64_t protocol = -1;
    const char* protocol_name = nullptr;
    const char* fault = nullptr;
};

constexpr const char* kProtocols[] = {"hybrid", "rget", "rput"};
constexpr ParamRow kRows[] = {
    {.name = "depth", .type = ParamType::kInt, .default_value = 4, .min = 1, .max = 8, .help = "Depth."},
    {.name = "protocol", .type = ParamType::kChoice, .default_value = 1, .choices = kProtocols, .help = "Protocol."},
    {.name = "fault", .type = ParamType::kString, .default_text = "none", .help = "Fault."},
};
constexpr ParamPlace<Config> kPlaces[] = {
    {&Config::depth, nullptr}, {&Config::protocol, &Config::protocol_name}, {nullptr, &Config::fault}};
constexpr ParamTable<Config> kTable(kRows, kPlaces);
static_assert(kTable.is_valid());

constexpr ParamPlace<Config> kNoText[] = {
    {&Config::depth, nullptr}, {&Config::protocol, nullptr}, {nullptr, &Config::fault}};
static_assert(!ParamTable<Config>(kRows, kNoText).is_valid(), "a choice needs a place for its word");
constexpr ParamPlace<Config> kNoNumber[] = {
    {&Config::depth, nullptr}, {nullptr, &Config::protocol_name}, {nullptr, &Config::fault}};
static_assert(!ParamTable<Config>(kRows, kNoNumber).is_valid(), "and one for its index");
static_assert(!ParamTable<Config>(kRows, std::span(kPlaces).first(2)).is_valid(), "each row has a place");

Config with_defaults() {
    Config config;
    for (std::size_t i = 0; i < kTable.rows().size(); ++i) kTable.set_default(config, i);
    return config;
}

TEST(ParamTable, fills_in_defaults_and_locations) {
    Config config;
    EXPECT_EQ(kTable.set_default(config, 0), &config.depth);
    EXPECT_EQ(kTable.set_default(config, 1), &config.protocol_name);
    EXPECT_EQ(kTable.set_default(config, 2), &config.fault);
    EXPECT_EQ(config.depth, 4);
    EXPECT_STREQ(config.protocol_name, "rget");
    EXPECT_STREQ(config.fault, "none");
}

TEST(ParamTable, a_check_turns_words_into_indices) {
    Config config = with_defaults();
    EXPECT_EQ(kTable.check(config), std::nullopt);
    EXPECT_EQ(config.protocol, 1);
    config.protocol_name = " rput ";
    EXPECT_EQ(kTable.check(config), std::nullopt);
    EXPECT_EQ(config.protocol, 2) << "blanks around a word are ignored";
    config.fault = nullptr;
    EXPECT_EQ(kTable.check(config), std::nullopt) << "a null text is an empty one";
}

TEST(ParamTable, a_check_names_what_is_not_allowed) {
    Config config = with_defaults();
    config.protocol_name = "fast";
    auto error = kTable.check(config);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->name, "protocol");
    EXPECT_EQ(error->value, "fast");
    EXPECT_EQ(error->range, "hybrid, rget, rput");
    config.protocol_name = nullptr;
    ASSERT_TRUE(kTable.check(config));
    config.depth = 9;
    error = kTable.check(config);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->name, "depth");
    EXPECT_EQ(error->value, "9");
}

// --- values that may change while they are read ---------------------------------

struct Live {
    Setting depth;
    Setting protocol;
    int protocol_index = -1;
};
constexpr ParamRow kLiveRows[] = {
    {.name = "depth",
     .type = ParamType::kInt,
     .default_value = 4,
     .min = 1,
     .max = 8,
     .help = "Depth.",
     .settable_at_run_time = true},
    {.name = "protocol",
     .type = ParamType::kChoice,
     .default_value = 1,
     .choices = kProtocols,
     .help = "Protocol.",
     .settable_at_run_time = true},
};
constexpr ParamPlace<Live, Setting> kLivePlaces[] = {{&Live::depth, nullptr},
                                                     {&Live::protocol, nullptr, &Live::protocol_index}};
constexpr ParamTable<Live, Setting> kLiveTable(kLiveRows, kLivePlaces);
static_assert(kLiveTable.is_valid());
constexpr ParamPlace<Live, Setting> kNoIndex[] = {{&Live::depth, nullptr}, {&Live::protocol, nullptr}};
static_assert(!ParamTable<Live, Setting>(kLiveRows, kNoIndex).is_valid(),
              "a choice that may be written has a place for its index");

TEST(Site09ParamTable, a_choice_that_may_be_written_is_given_as_its_index) {
    Live config;
    EXPECT_EQ(kLiveTable.set_default(config, 0), &config.depth);
    EXPECT_EQ(kLiveTable.set_default(config, 1), &config.protocol_index);
    EXPECT_EQ(kLiveTable.check(config), std::nullopt);
    EXPECT_EQ(config.protocol, 1);
    config.protocol_index = 2;
    EXPECT_EQ(kLiveTable.check(config), std::nullopt);
    EXPECT_EQ(config.protocol, 2);
    for (int wrong : {-1, 3}) {
        config.protocol_index = wrong;
        const auto error = kLiveTable.check(config);
        ASSERT_TRUE(error);
        EXPECT_EQ(error->name, "protocol");
        EXPECT_EQ(error->range, "hybrid, rget, rput");
    }
}

}  // namespace
}  // namespace coop
