// SPDX-License-Identifier: BSD-3-Clause
//
// base/param.h: declarations, their check, values and the texts generated from them.
#include "coop/base/param.h"

#include <gtest/gtest.h>

namespace coop {
namespace {

constexpr const char* kProtocols[] = {"hybrid", "rget", "rput"};

constexpr ParamRow kEager = {.name = "eager_limit",
                             .type = ParamType::kSize,
                             .unit = "bytes",
                             .default_value = 4096,
                             .min = 64,
                             .max = 1 << 20,
                             .help = "Largest message that travels in one fragment.",
                             .level = 4};
constexpr ParamRow kDepth = {.name = "depth", .default_value = 4, .min = -1, .max = 16, .help = "Depth.", .level = 6};
constexpr ParamRow kOpen = {.name = "open", .default_value = 3, .min = 2, .help = "No upper end.", .level = 9};
constexpr ParamRow kAsync = {.name = "async", .type = ParamType::kBool, .help = "Progress.", .level = 1};
constexpr ParamRow kProtocol = {.name = "protocol",
                                .type = ParamType::kChoice,
                                .default_value = 1,
                                .choices = kProtocols,
                                .help = "Protocol to use.",
                                .level = 3,
                                .settable_at_run_time = true};
constexpr ParamRow kFault = {.name = "fault", .type = ParamType::kString, .help = "Faults.", .level = 7};
constexpr ParamRow kTable[] = {kEager, kDepth, kOpen, kAsync, kProtocol, kFault};
static_assert(params_are_valid(kTable));

// A valid row with one error.
template <class Spoil>
std::string defect(ParamRow row, Spoil spoil) {
    spoil(row);
    const char* why = declaration_defect(row);
    return why ? why : "";
}

std::int64_t value(const ParamRow& row, std::string_view text) {
    const auto result = parse(row, text);
    if (const auto* bad = std::get_if<ParamError>(&result)) {
        ADD_FAILURE() << bad->message();
        return INT64_MIN;
    }
    return std::get<std::int64_t>(result);
}

bool refused(const ParamRow& row, std::string_view text) { return check(row, text).has_value(); }

TEST(ParamDeclaration, accepts_a_row_of_every_type) {
    for (const ParamRow& row : kTable) EXPECT_STREQ(declaration_defect(row), nullptr) << row.name;
}

TEST(ParamDeclaration, rejects_a_default_outside_its_range) {
    const char* const why = "default is outside the range";
    EXPECT_EQ(defect(kEager, [](ParamRow& r) { r.default_value = 63; }), why);
    EXPECT_EQ(defect(kDepth, [](ParamRow& r) { r.default_value = 17; }), why);
    EXPECT_EQ(defect(kAsync, [](ParamRow& r) { r.default_value = 2; }), why);
    EXPECT_EQ(defect(kProtocol, [](ParamRow& r) { r.default_value = 3; }), why);
    EXPECT_EQ(defect(kProtocol, [](ParamRow& r) { r.default_value = -1; }), why);
}

TEST(ParamDeclaration, rejects_a_name_that_is_not_lower_case) {
    for (const char* name : {"", "Eager", "eager-limit", "2nd", "_x", "x_", "a b"})
        EXPECT_EQ(defect(kEager, [&](ParamRow& r) { r.name = name; }), "name is not lower case") << name;
    EXPECT_EQ(defect(kEager, [](ParamRow& r) { r.name = nullptr; }), "name is not lower case");
}

TEST(ParamDeclaration, rejects_a_row_without_help) {
    EXPECT_EQ(defect(kEager, [](ParamRow& r) { r.help = ""; }), "help is empty");
    EXPECT_EQ(defect(kEager, [](ParamRow& r) { r.help = nullptr; }), "a text is null");
    EXPECT_EQ(defect(kEager, [](ParamRow& r) { r.unit = nullptr; }), "a text is null");
}

TEST(ParamDeclaration, rejects_a_level_that_mpi_t_does_not_have) {
    EXPECT_EQ(defect(kEager, [](ParamRow& r) { r.level = 0; }), "level is not in 1..9");
    EXPECT_EQ(defect(kEager, [](ParamRow& r) { r.level = 10; }), "level is not in 1..9");
}

TEST(ParamDeclaration, rejects_a_size_without_unit_or_below_zero) {
    EXPECT_EQ(defect(kEager, [](ParamRow& r) { r.unit = ""; }), "a size has no unit");
    EXPECT_EQ(defect(kEager, [](ParamRow& r) { r.min = -1; }), "a size may be negative");
}

TEST(ParamDeclaration, rejects_an_empty_range) {
    EXPECT_EQ(defect(kDepth, [](ParamRow& r) { r.min = 17; }), "range is empty");
}

TEST(ParamDeclaration, rejects_choices_that_are_missing_repeated_or_misplaced) {
    static constexpr const char* kTwice[] = {"a", "b", "a"};
    static constexpr const char* kHole[] = {"a", ""};
    EXPECT_EQ(defect(kProtocol, [](ParamRow& r) { r.choices = {}; }), "there are no choices");
    EXPECT_EQ(defect(kProtocol, [](ParamRow& r) { r.choices = kTwice; }), "a choice is empty or repeated");
    EXPECT_EQ(defect(kProtocol, [](ParamRow& r) { r.choices = kHole; }), "a choice is empty or repeated");
    EXPECT_EQ(defect(kDepth, [](ParamRow& r) { r.choices = kProtocols; }), "choices belong to a kChoice");
    EXPECT_EQ(defect(kDepth, [](ParamRow& r) { r.default_text = "x"; }), "default_text belongs to a kString");
}

TEST(ParamDeclaration, names_the_row_that_is_wrong) {
    const ParamRow rows[] = {kEager, kDepth, kEager};
    EXPECT_EQ(find_defect(rows).row, 2u);
    EXPECT_STREQ(find_defect(rows).why, "name is taken by an earlier row");
    EXPECT_FALSE(params_are_valid(rows));
}

TEST(ParamValue, accepts_both_ends_of_the_range_and_nothing_beyond) {
    EXPECT_FALSE(check(kEager, std::int64_t{64}));
    EXPECT_FALSE(check(kEager, std::int64_t{1} << 20));
    EXPECT_TRUE(check(kEager, std::int64_t{63}));
    EXPECT_TRUE(check(kEager, (std::int64_t{1} << 20) + 1));
    EXPECT_TRUE(check(kAsync, std::int64_t{2}));
    EXPECT_TRUE(check(kProtocol, std::int64_t{3}));
    EXPECT_FALSE(check(kProtocol, std::int64_t{2}));
    EXPECT_FALSE(check(kFault, std::int64_t{12345}));
}

TEST(ParamValue, reads_sizes_with_binary_suffixes) {
    EXPECT_EQ(value(kEager, "64"), 64);
    EXPECT_EQ(value(kEager, " 64k "), 65536);
    EXPECT_EQ(value(kEager, "64K"), 65536);
    EXPECT_EQ(value(kEager, "4KiB"), 4096);
    EXPECT_EQ(value(kEager, "4kb"), 4096);
    EXPECT_EQ(value(kEager, "1m"), 1 << 20);
    EXPECT_EQ(value(kEager, "128b"), 128);
    ParamRow huge = kEager;
    huge.max = INT64_MAX;
    EXPECT_EQ(value(huge, "3g"), std::int64_t{3} << 30);
    EXPECT_EQ(value(huge, "2T"), std::int64_t{2} << 40);
}

TEST(ParamValue, refuses_sizes_that_are_no_numbers_or_overflow) {
    for (const char* text : {"", "k", "64x", "64kk", "64 k", "0x40", "6.4k", "--64", "+-64", "64kibi",
                             "9223372036854775807k", "99999999999999999999", "64,"})
        EXPECT_TRUE(refused(kEager, text)) << text;
}

TEST(ParamValue, refuses_a_negative_size_in_the_words_of_the_user) {
    const auto bad = check(kEager, "-5");
    ASSERT_TRUE(bad);
    EXPECT_EQ(bad->name, "eager_limit");
    EXPECT_EQ(bad->value, "-5");
    EXPECT_EQ(bad->range, "64..1048576 bytes");
    EXPECT_EQ(bad->message("pml_coop_"),
              "pml_coop_eager_limit: the value \"-5\" is not allowed (allowed: 64..1048576 bytes)");
    EXPECT_EQ(check(kEager, "1k k")->value, "1k k");
    EXPECT_EQ(check(kEager, "32")->value, "32");
}

TEST(ParamValue, reads_integers_without_suffix) {
    EXPECT_EQ(value(kDepth, "-1"), -1);
    EXPECT_EQ(value(kDepth, "+7"), 7);
    EXPECT_TRUE(refused(kDepth, "1k"));
    EXPECT_TRUE(refused(kDepth, "17"));
    EXPECT_EQ(check(kOpen, "1")->range, "at least 2");
}

TEST(ParamValue, reads_booleans_as_open_mpi_does) {
    for (const char* yes : {"1", "true", "TRUE", "yes", "y", "t", "on", "enabled"})
        EXPECT_EQ(value(kAsync, yes), 1) << yes;
    for (const char* no : {"0", "false", "No", "n", "f", "off", "disabled"}) EXPECT_EQ(value(kAsync, no), 0) << no;
    EXPECT_EQ(check(kAsync, "2")->range, "true, false");
    EXPECT_TRUE(refused(kAsync, ""));
}

TEST(ParamValue, finds_a_choice_by_its_exact_word) {
    EXPECT_EQ(value(kProtocol, "hybrid"), 0);
    EXPECT_EQ(value(kProtocol, "rput"), 2);
    EXPECT_EQ(choice_index(kProtocol, "rget"), 1u);
    EXPECT_FALSE(choice_index(kProtocol, "rge"));
    const auto bad = check(kProtocol, "RGET");
    ASSERT_TRUE(bad);
    EXPECT_EQ(bad->message(), "protocol: the value \"RGET\" is not allowed (allowed: hybrid, rget, rput)");
    EXPECT_TRUE(refused(kProtocol, "1"));
}

TEST(ParamValue, takes_any_text_for_a_string) {
    EXPECT_EQ(value(kFault, ""), 0);
    EXPECT_EQ(value(kFault, "busy:3"), 0);
}

TEST(ParamText, help_ends_with_unit_default_and_range) {
    EXPECT_EQ(help_text(kEager),
              "Largest message that travels in one fragment. [unit: bytes; default: 4096; range: 64..1048576]");
    EXPECT_EQ(help_text(kDepth), "Depth. [default: 4; range: -1..16]");
    EXPECT_EQ(help_text(kOpen), "No upper end. [default: 3; range: at least 2]");
    EXPECT_EQ(help_text(kAsync), "Progress. [default: false; range: true, false]");
    EXPECT_EQ(help_text(kProtocol), "Protocol to use. [default: rget; choices: hybrid, rget, rput]");
    EXPECT_EQ(help_text(kFault), "Faults. [default: empty; range: any text]");
}

TEST(ParamText, a_string_shows_its_default_text) {
    ParamRow row = kFault;
    row.default_text = "busy:3";
    EXPECT_EQ(default_words(row), "busy:3");
}

TEST(ParamText, every_type_and_level_has_a_name) {
    for (const ParamRow& row : kTable) EXPECT_STRNE(type_name(row.type), "?");
    for (int level = 1; level <= 9; ++level) EXPECT_STRNE(level_name(level), "?");
    EXPECT_STREQ(level_name(0), "?");
    EXPECT_STREQ(level_name(4), "tuner/basic");
    EXPECT_STREQ(type_name(static_cast<ParamType>(99)), "?");
}

TEST(ParamText, reference_has_one_entry_per_row) {
    const ParamRow rows[] = {kEager, kProtocol};
    EXPECT_EQ(to_rst("Parameters", "pml_coop_", rows),
              "Parameters\n"
              "==========\n"
              "\n"
              "``pml_coop_eager_limit``\n"
              "   Largest message that travels in one fragment.\n"
              "\n"
              "   :type: size\n"
              "   :unit: bytes\n"
              "   :default: 4096\n"
              "   :range: 64..1048576\n"
              "   :level: 4 (tuner/basic)\n"
              "   :can be set: at start\n"
              "\n"
              "``pml_coop_protocol``\n"
              "   Protocol to use.\n"
              "\n"
              "   :type: choice\n"
              "   :default: rget\n"
              "   :choices: hybrid, rget, rput\n"
              "   :level: 3 (user/all)\n"
              "   :can be set: at start and while the job runs\n"
              "\n");
}

TEST(ParamText, reference_escapes_what_would_be_markup) {
    ParamRow row = kFault;
    row.help = "corrupt_* or `x` | trailing_ and pml_coop_fault \\.";
    EXPECT_NE(to_rst("T", "", {&row, 1}).find("corrupt\\_\\* or \\`x\\` \\| trailing\\_ and pml_coop_fault \\\\."),
              std::string::npos)
        << to_rst("T", "", {&row, 1});
}

}  // namespace
}  // namespace coop
