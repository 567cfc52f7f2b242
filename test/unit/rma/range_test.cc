// SPDX-License-Identifier: BSD-3-Clause
// rma/range.h: small windows byte by byte, and numbers at the ends of their types.
#include "coop/rma/range.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace coop::rma {
namespace {

constexpr std::int64_t kMin = INT64_MIN, kMax = INT64_MAX;
constexpr std::uint64_t k2To63 = std::uint64_t{1} << 63;

// What MPI requires, asked of every byte.
std::optional<std::uint64_t> expected(int displacement, int unit, int low, int bytes, int size) {
    const int at = displacement * unit;
    if (displacement < 0 || (bytes == 0 && at > size)) return std::nullopt;
    for (int i = 0; i < bytes; ++i)
        if (at + low + i < 0 || at + low + i >= size) return std::nullopt;
    return at;
}

TEST(RmaRange, every_access_to_a_small_window) {
    int inside = 0, outside = 0;
    for (int size = 0; size <= 12; ++size)
        for (int unit = 1; unit <= 4; ++unit)
            for (int displacement = -3; displacement <= 14; ++displacement)
                for (int low = -14; low <= 14; ++low)
                    for (int bytes = 0; bytes <= 14; ++bytes) {
                        const auto want = expected(displacement, unit, low, bytes, size);
                        const auto got = offset_in(displacement, static_cast<std::uint32_t>(unit),
                                                   {low, static_cast<std::uint64_t>(bytes)},
                                                   static_cast<std::uint64_t>(size));
                        ASSERT_EQ(got, want) << displacement << " * " << unit << ", extent " << low << " + " << bytes
                                             << ", window of " << size;
                        ++(want ? inside : outside);
                    }
    EXPECT_GT(inside, 1000);
    EXPECT_GT(outside, 1000);
}

TEST(RmaRange, empty_accesses_may_lie_at_the_end) {
    EXPECT_EQ(offset_in(10, 1, {0, 0}, 10), 10u);
    EXPECT_EQ(offset_in(0, 1, {0, 0}, 0), 0u);
    EXPECT_EQ(offset_in(11, 1, {0, 0}, 10), std::nullopt);
    EXPECT_EQ(offset_in(-1, 1, {1, 0}, 10), std::nullopt);
    // An extent without bytes is nowhere, whatever its bound.
    EXPECT_EQ(offset_in(10, 1, {kMin, 0}, 10), 10u);
    EXPECT_EQ(offset_in(10, 1, {kMax, 0}, 10), 10u);
}

TEST(RmaRange, a_negative_lower_bound_counts_from_the_displacement) {
    EXPECT_EQ(offset_in(2, 4, {-8, 8}, 8), 8u);
    EXPECT_EQ(offset_in(2, 4, {-8, 9}, 8), std::nullopt);
    EXPECT_EQ(offset_in(2, 4, {-9, 8}, 8), std::nullopt);
    // The displacement itself may lie behind the window.
    EXPECT_EQ(offset_in(5, 4, {-20, 8}, 8), 20u);
    // A bound cannot bring a negative displacement back.
    EXPECT_EQ(offset_in(-1, 8, {8, 4}, 100), std::nullopt);
}

TEST(RmaRange, products_and_sums_that_exceed_64_bits) {
    EXPECT_EQ(offset_in(kMax, UINT32_MAX, {0, 1}, UINT64_MAX), std::nullopt);
    EXPECT_EQ(offset_in(kMin, UINT32_MAX, {0, 1}, UINT64_MAX), std::nullopt);
    EXPECT_EQ(offset_in(kMin, UINT32_MAX, {kMin, UINT64_MAX}, UINT64_MAX), std::nullopt);
    EXPECT_EQ(offset_in(kMax, UINT32_MAX, {kMax, UINT64_MAX}, UINT64_MAX), std::nullopt);
    EXPECT_EQ(offset_in(kMax, UINT32_MAX, {0, 0}, UINT64_MAX), std::nullopt);
    // 2^32 * 2^32 and 2^63 * 2 are 0 in 64 bits.
    EXPECT_EQ(offset_in(std::int64_t{1} << 33, 1u << 31, {0, 8}, 4096), std::nullopt);
    EXPECT_EQ(offset_in(std::int64_t{1} << 33, 1u << 31, {0, 0}, 4096), std::nullopt);
    // The end of the extent is 2^64 more than that of the window.
    EXPECT_EQ(offset_in(16, 1, {0, UINT64_MAX - 7}, 4096), std::nullopt);
    EXPECT_EQ(offset_in(16, 1, {-16, UINT64_MAX}, 4096), std::nullopt);
    EXPECT_EQ(offset_in(0, 1, {kMax, 1}, 4096), std::nullopt);
    EXPECT_EQ(offset_in(1, 1, {kMax, 1}, 4096), std::nullopt);
    EXPECT_EQ(offset_in(0, 1, {kMin, 1}, 4096), std::nullopt);
}

TEST(RmaRange, windows_of_2_to_63_bytes_and_more) {
    EXPECT_EQ(offset_in(kMax, 1, {0, 1}, k2To63), k2To63 - 1);
    EXPECT_EQ(offset_in(kMax, 1, {0, 2}, k2To63), std::nullopt);
    EXPECT_EQ(offset_in(kMax, 1, {1, 0}, k2To63), k2To63 - 1);
    EXPECT_EQ(offset_in(std::int64_t{1} << 62, 2, {0, 1}, k2To63), std::nullopt);
    EXPECT_EQ(offset_in(std::int64_t{1} << 62, 2, {0, 0}, k2To63), k2To63);
    EXPECT_EQ(offset_in(std::int64_t{1} << 62, 2, {0, 1}, k2To63 + 1), k2To63);
    EXPECT_EQ(offset_in(0, 1, {0, k2To63}, k2To63), 0u);
    EXPECT_EQ(offset_in(0, 1, {0, k2To63 + 1}, k2To63), std::nullopt);
    EXPECT_EQ(offset_in(0, 1, {0, UINT64_MAX}, UINT64_MAX), 0u);
    EXPECT_EQ(offset_in(1, 1, {0, UINT64_MAX}, UINT64_MAX), std::nullopt);
    EXPECT_EQ(offset_in(1, 1, {-1, UINT64_MAX}, UINT64_MAX), 1u);
    EXPECT_EQ(offset_in(kMax, 2, {0, 1}, UINT64_MAX), UINT64_MAX - 1);
    EXPECT_EQ(offset_in(kMax, 2, {0, 2}, UINT64_MAX), std::nullopt);
}

}  // namespace
}  // namespace coop::rma
