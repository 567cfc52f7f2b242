// SPDX-License-Identifier: BSD-3-Clause
// rma/attachments.h: attached memory against one mark per byte, and the end of the address space.
#include "coop/rma/attachments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace coop::rma {
namespace {

TEST(RmaAttachments, neighbours_count_as_one_and_leave_alone) {
    Attachments attachments;
    EXPECT_TRUE(attachments.attach(200, 50));
    EXPECT_TRUE(attachments.attach(100, 100));
    EXPECT_TRUE(attachments.attach(250, 1));
    EXPECT_EQ(attachments.size(), 3u);
    EXPECT_TRUE(attachments.covers(100, 151));
    EXPECT_TRUE(attachments.covers(199, 2));
    EXPECT_FALSE(attachments.covers(99, 2));
    EXPECT_FALSE(attachments.covers(100, 152));
    EXPECT_FALSE(attachments.detach(150));
    EXPECT_TRUE(attachments.detach(200));
    EXPECT_FALSE(attachments.detach(200));
    EXPECT_FALSE(attachments.covers(199, 2));
    EXPECT_TRUE(attachments.covers(199, 1));
    EXPECT_TRUE(attachments.covers(250, 1));
    EXPECT_FALSE(attachments.covers(100, 151));
}

// As another process of the node asks, with its copy of the regions.
TEST(RmaAttachments, a_copy_of_the_regions_answers_for_blocks) {
    Attachments attachments;
    EXPECT_TRUE(are_attached(std::span<const rma::Run>(), attachments.regions()));
    for (const std::uint64_t base : {std::uint64_t{1000}, std::uint64_t{200}, std::uint64_t{600}, std::uint64_t{300}})
        EXPECT_TRUE(attachments.attach(base, 100));
    const std::vector<Region> copy(attachments.regions().begin(), attachments.regions().end());
    ASSERT_EQ(copy.size(), 4u);
    EXPECT_TRUE(attachments.detach(300));
    const auto all = [&](const rma::Run& run) { return are_attached({&run, 1}, copy); };
    EXPECT_TRUE(all({200, 200, 0, 1}));
    EXPECT_FALSE(all({200, 201, 0, 1}));
    EXPECT_TRUE(all({210, 10, 400, 3}));
    EXPECT_FALSE(all({210, 10, 400, 4}));
    EXPECT_TRUE(all({1090, 10, -400, 3}));
    EXPECT_FALSE(all({1091, 10, -400, 3}));
    EXPECT_TRUE(all({1050, 10, -400, 3}));
    EXPECT_FALSE(all({250, 0, 0, 1}));
    EXPECT_FALSE(all({UINT64_MAX - 5, 10, 0, 1}));
    const rma::Run gone{300, 10, 0, 1};
    EXPECT_FALSE(are_attached({&gone, 1}, attachments.regions()));
}

TEST(RmaAttachments, what_lies_between_blocks_may_be_attached) {
    const Region regions[] = {{100, 100}, {200, 50}, {300, 10}};
    const auto all = [&](std::vector<rma::Run> runs) {
        EXPECT_TRUE(are_attached(runs, regions));
        return is_all_attached(runs, regions);
    };
    EXPECT_TRUE(all({}));
    EXPECT_TRUE(all({{110, 8, 16, 8}}));
    EXPECT_TRUE(all({{240, 10, -140, 2}}));
    EXPECT_FALSE(all({{240, 10, 60, 2}}));
    EXPECT_FALSE(all({{300, 10, -60, 2}}));
    EXPECT_TRUE(all({{248, 2, 0, 1}, {100, 1, 0, 1}}));
    EXPECT_FALSE(all({{248, 2, 0, 1}, {300, 1, 0, 1}, {100, 1, 0, 1}}));
    EXPECT_FALSE(all({{300, 1, 0, 1}, {248, 2, 0, 1}}));
}

TEST(RmaAttachments, memory_without_bytes) {
    Attachments attachments;
    EXPECT_TRUE(attachments.attach(100, 10));
    // Anywhere, as often as wanted, also inside of attached memory.
    for (const std::uint64_t base : {std::uint64_t{0}, std::uint64_t{105}, std::uint64_t{500}, UINT64_MAX}) {
        EXPECT_FALSE(attachments.detach(base));
        EXPECT_TRUE(attachments.attach(base, 0));
        EXPECT_TRUE(attachments.attach(base, 0));
        EXPECT_FALSE(attachments.covers(base, 1) && base != 105);
        EXPECT_TRUE(attachments.detach(base));
        EXPECT_TRUE(attachments.detach(base));
        EXPECT_FALSE(attachments.detach(base));
    }
    EXPECT_EQ(attachments.size(), 1u);
    EXPECT_TRUE(attachments.covers(100, 10));
    // It does not keep others out.
    EXPECT_TRUE(attachments.attach(300, 0));
    EXPECT_TRUE(attachments.attach(295, 10));
    // No bytes are always attached.
    EXPECT_TRUE(attachments.covers(7777, 0));
    EXPECT_TRUE(Attachments().covers(0, 0));
}

TEST(RmaAttachments, the_end_of_the_address_space) {
    Attachments attachments;
    EXPECT_FALSE(attachments.attach(UINT64_MAX, 1));
    EXPECT_FALSE(attachments.attach(UINT64_MAX - 7, 8));
    EXPECT_FALSE(attachments.attach(16, UINT64_MAX));
    EXPECT_EQ(attachments.size(), 0u);
    EXPECT_TRUE(attachments.attach(UINT64_MAX - 8, 8));
    EXPECT_TRUE(attachments.attach(0, 16));
    EXPECT_TRUE(attachments.covers(UINT64_MAX - 8, 8));
    EXPECT_TRUE(attachments.covers(UINT64_MAX - 1, 1));
    // The access would go on at address 0.
    EXPECT_FALSE(attachments.covers(UINT64_MAX - 8, 9));
    EXPECT_FALSE(attachments.covers(UINT64_MAX - 8, 16));
    EXPECT_FALSE(attachments.covers(UINT64_MAX, 1));
    EXPECT_FALSE(attachments.covers(UINT64_MAX - 8, UINT64_MAX));
    EXPECT_FALSE(attachments.covers(0, UINT64_MAX));

    Attachments all;
    EXPECT_TRUE(all.attach(0, UINT64_MAX));
    EXPECT_FALSE(all.attach(5, 1));
    EXPECT_TRUE(all.covers(0, UINT64_MAX));
    EXPECT_FALSE(all.covers(1, UINT64_MAX));
    EXPECT_TRUE(all.detach(0));
    EXPECT_FALSE(all.covers(5, 1));
}

// The model: which attachment has each byte.
TEST(RmaAttachments, random_regions_against_one_mark_per_byte) {
    constexpr std::uint64_t kBytes = 64;
    for (const std::uint64_t start : {std::uint64_t{0}, std::uint64_t{1} << 40, UINT64_MAX - kBytes}) {
        std::mt19937 random(7);
        std::vector<bool> marked(kBytes);
        std::map<std::uint64_t, std::uint64_t> regions;
        Attachments attachments;
        std::size_t attached = 0, refused = 0, covered = 0;
        for (int i = 0; i < 30'000 && !HasFailure(); ++i) {
            const std::uint64_t base = random() % kBytes,
                                bytes = 1 + random() % std::min<std::uint64_t>(9, kBytes - base);
            const auto from = marked.begin() + static_cast<std::ptrdiff_t>(base);
            const auto to = from + static_cast<std::ptrdiff_t>(bytes);
            if (random() % 2 == 0) {
                const bool free = std::find(from, to, true) == to;
                EXPECT_EQ(attachments.attach(start + base, bytes), free) << base << ", " << bytes;
                if (free) {
                    std::fill(from, to, true);
                    regions[base] = bytes;
                }
                ++(free ? attached : refused);
            } else {
                const auto found = regions.find(base);
                EXPECT_EQ(attachments.detach(start + base), found != regions.end()) << base;
                if (found != regions.end()) {
                    std::fill_n(from, found->second, false);
                    regions.erase(found);
                }
            }
            EXPECT_EQ(attachments.size(), regions.size());
            const std::uint64_t first = random() % kBytes, count = random() % (kBytes - first + 1);
            const auto begin = marked.begin() + static_cast<std::ptrdiff_t>(first);
            const auto end = begin + static_cast<std::ptrdiff_t>(count);
            const bool all = std::find(begin, end, false) == end;
            EXPECT_EQ(attachments.covers(start + first, count), all) << first << ", " << count;
            covered += all && count > 4;
        }
        EXPECT_GT(attached, 1000u);
        EXPECT_GT(refused, 1000u);
        EXPECT_GT(covered, 300u);
    }
}

}  // namespace
}  // namespace coop::rma
