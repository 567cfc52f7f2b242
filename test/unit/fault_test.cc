// SPDX-License-Identifier: BSD-3-Clause
//
// base/fault.h: the grammar of the knobs, which calls fail, which bits flip.
#include "coop/base/fault.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <thread>
#include <vector>

namespace coop {
namespace {

Faults armed_with(std::string_view spec) {
    auto result = Faults::parse(spec);
    if (const auto* wrong = std::get_if<std::string>(&result)) {
        ADD_FAILURE() << spec << ": " << *wrong;
        return {};
    }
    return std::get<Faults>(result);
}

std::string error_of(std::string_view spec) {
    const auto result = Faults::parse(spec);
    const auto* wrong = std::get_if<std::string>(&result);
    return wrong ? *wrong : "accepted";
}

// Of the first `calls` calls, the numbers (from 1) of those that fail.
std::vector<int> failing_calls(Faults& faults, Fault fault, int calls) {
    std::vector<int> failing;
    for (int call = 1; call <= calls; ++call)
        if (faults.hit(fault)) failing.push_back(call);
    return failing;
}

// The bit that corrupt() flips in a header of zeros, or -1.
int flipped_bit(Faults& faults, Fault fault, std::size_t header_bytes) {
    std::vector<unsigned char> header(header_bytes, 0);
    if (!faults.corrupt(fault, header.data(), header.size())) return -1;
    int bits = 0;
    int at = -1;
    for (std::size_t byte = 0; byte < header_bytes; ++byte) {
        bits += std::popcount(header[byte]);
        if (header[byte]) at = static_cast<int>(8 * byte) + std::countr_zero(header[byte]);
    }
    EXPECT_EQ(bits, 1);
    return at;
}

using Calls = std::vector<int>;

TEST(Faults, nothing_fails_by_default) {
    Faults none;
    EXPECT_FALSE(none.armed());
    EXPECT_EQ(failing_calls(none, Fault::kBusy, 100), Calls{});
    EXPECT_EQ(flipped_bit(none, Fault::kCorruptRts, 48), -1);
    EXPECT_FALSE(armed_with("").armed());
}

TEST(Faults, every_n_th_call_fails_from_the_n_th_on) {
    Faults faults = armed_with("busy:3");
    EXPECT_TRUE(faults.armed());
    EXPECT_EQ(failing_calls(faults, Fault::kBusy, 10), (Calls{3, 6, 9}));
    EXPECT_EQ(faults.injected(Fault::kBusy), 3u);
}

TEST(Faults, one_chosen_call_fails) {
    Faults faults = armed_with("get@4");
    EXPECT_EQ(failing_calls(faults, Fault::kGet, 10), (Calls{4}));
}

TEST(Faults, every_call_fails_with_a_period_of_one) {
    Faults faults = armed_with("alloc:1");
    EXPECT_EQ(failing_calls(faults, Fault::kAlloc, 3), (Calls{1, 2, 3}));
}

TEST(Faults, sites_are_counted_apart) {
    Faults faults = armed_with("busy:2,put@1");
    EXPECT_EQ(failing_calls(faults, Fault::kBusy, 3), (Calls{2}));
    EXPECT_EQ(failing_calls(faults, Fault::kPut, 3), (Calls{1}));
    EXPECT_EQ(failing_calls(faults, Fault::kSendi, 3), Calls{});
    EXPECT_EQ(faults.injected(Fault::kSendi), 0u);
}

TEST(Faults, every_fault_can_be_armed_by_its_label) {
    std::set<std::string> labels;
    for (std::size_t i = 0; i < kFaultCount; ++i) {
        Faults faults = armed_with(std::string(kFaultLabels[i]) + "@2");
        EXPECT_EQ(failing_calls(faults, static_cast<Fault>(i), 3), (Calls{2})) << kFaultLabels[i];
        labels.insert(kFaultLabels[i]);
    }
    EXPECT_EQ(labels.size(), kFaultCount);
}

TEST(Faults, corruption_walks_over_every_bit_of_the_header) {
    constexpr std::size_t kBytes = 6;
    Faults faults = armed_with("corrupt_cts:1");
    std::set<int> seen;
    for (std::size_t i = 0; i < 8 * kBytes; ++i) {
        const int bit = flipped_bit(faults, Fault::kCorruptCts, kBytes);
        EXPECT_EQ(static_cast<std::size_t>(bit) / 8, i % kBytes);
        seen.insert(bit);
    }
    EXPECT_EQ(seen.size(), 8 * kBytes);
}

TEST(Faults, corruption_counts_calls_and_flips_apart) {
    Faults faults = armed_with("corrupt_frag:2");
    EXPECT_EQ(flipped_bit(faults, Fault::kCorruptFrag, 24), -1);
    EXPECT_EQ(flipped_bit(faults, Fault::kCorruptFrag, 24), 0);
    EXPECT_EQ(flipped_bit(faults, Fault::kCorruptFrag, 24), -1);
    EXPECT_EQ(flipped_bit(faults, Fault::kCorruptFrag, 24), 8);
}

TEST(Faults, corruption_hits_the_byte_that_was_asked_for) {
    Faults faults = armed_with("corrupt_rts@3=17");
    EXPECT_EQ(flipped_bit(faults, Fault::kCorruptRts, 48), -1);
    EXPECT_EQ(flipped_bit(faults, Fault::kCorruptRts, 48), -1);
    EXPECT_EQ(flipped_bit(faults, Fault::kCorruptRts, 48) / 8, 17);
    EXPECT_EQ(flipped_bit(faults, Fault::kCorruptRts, 48), -1);
}

TEST(Faults, corruption_of_one_byte_goes_round_its_bits) {
    Faults faults = armed_with("corrupt_fin:1=2");
    for (int i = 0; i < 9; ++i) EXPECT_EQ(flipped_bit(faults, Fault::kCorruptFin, 32), 16 + i % 8);
}

TEST(Faults, corruption_hits_the_bit_that_was_asked_for) {
    Faults faults = armed_with("corrupt_match:2=7.6");
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(flipped_bit(faults, Fault::kCorruptMatch, 16), -1);
        EXPECT_EQ(flipped_bit(faults, Fault::kCorruptMatch, 16), 7 * 8 + 6);
    }
}

TEST(Faults, a_byte_beyond_the_header_is_its_last_one) {
    Faults faults = armed_with("corrupt_match:1=1000");
    EXPECT_EQ(flipped_bit(faults, Fault::kCorruptMatch, 16) / 8, 15);
}

TEST(Faults, an_empty_header_is_left_alone) {
    Faults faults = armed_with("corrupt_match:1");
    EXPECT_FALSE(faults.corrupt(Fault::kCorruptMatch, nullptr, 0));
}

TEST(Faults, names_an_unknown_fault_and_the_known_ones) {
    const std::string wrong = error_of("busy:1,bussy:2");
    EXPECT_NE(wrong.find("\"bussy\""), std::string::npos) << wrong;
    for (const char* label : kFaultLabels) EXPECT_NE(wrong.find(label), std::string::npos) << label;
}

TEST(Faults, names_the_rule_that_is_malformed) {
    EXPECT_EQ(error_of("busy"), "\"busy\" does not say when: append :n (every n-th) or @k (the k-th)");
    for (const char* rule : {"busy:", "busy:0", "busy@0", "busy:x", "busy:-1", "busy:1x", "busy:1:2", "busy@1@2",
                             "busy:99999999999999999999"})
        EXPECT_EQ(error_of(rule), '"' + std::string(rule) + "\" needs a number of calls, 1 or more, after : or @");
    EXPECT_EQ(error_of("busy@1=3"), "\"busy@1=3\" names a byte, which only corrupt_ faults accept");
    for (const char* rule :
         {"corrupt_rts@1=", "corrupt_rts@1=x", "corrupt_rts@1=-1", "corrupt_rts@1=9223372036854775808"})
        EXPECT_EQ(error_of(rule), '"' + std::string(rule) + "\" does not name a byte after =");
    for (const char* rule : {"corrupt_rts@1=2.", "corrupt_rts@1=2.x", "corrupt_rts@1=2.8", "corrupt_rts@1=2.1.1"})
        EXPECT_EQ(error_of(rule), '"' + std::string(rule) + "\" does not name a bit, 0 to 7, after the dot");
    EXPECT_EQ(error_of("busy:1,busy@2"), "\"busy\" has two rules");
    EXPECT_EQ(error_of("busy:1,"), "a rule is missing after the last comma");
    EXPECT_NE(error_of(",busy:1").find("unknown fault \"\""), std::string::npos);
    EXPECT_NE(error_of(" busy:1").find("unknown fault \" busy\""), std::string::npos);
}

TEST(Faults, threads_share_one_count) {
    Faults faults = armed_with("busy:10");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 10000; ++i) faults.hit(Fault::kBusy);
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(faults.injected(Fault::kBusy), 4000u);
}

}  // namespace
}  // namespace coop
