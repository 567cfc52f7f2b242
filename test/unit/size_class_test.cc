// SPDX-License-Identifier: BSD-3-Clause
//
// base/size_class.h: the classes cover every size once, in order.
#include "coop/base/size_class.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace coop {
namespace {

TEST(SizeClass, each_class_holds_its_smallest_and_its_largest_size) {
    for (int c = 0; c < kSizeClasses; ++c) {
        EXPECT_EQ(size_class(size_class_min(c)), c) << size_class_label(c);
        EXPECT_EQ(size_class(kSizeClassMax[static_cast<std::size_t>(c)]), c) << size_class_label(c);
    }
}

TEST(SizeClass, classes_adjoin) {
    for (int c = 0; c + 1 < kSizeClasses; ++c)
        EXPECT_EQ(size_class(kSizeClassMax[static_cast<std::size_t>(c)] + 1), c + 1) << size_class_label(c);
}

TEST(SizeClass, agrees_with_a_search_of_the_table) {
    const auto search = [](std::uint64_t bytes) {
        int c = 0;
        while (bytes > kSizeClassMax[static_cast<std::size_t>(c)]) ++c;
        return c;
    };
    for (std::uint64_t bytes = 0; bytes < 70000; ++bytes) ASSERT_EQ(size_class(bytes), search(bytes)) << bytes;
    for (int shift = 0; shift < 64; ++shift) {
        const std::uint64_t power = std::uint64_t{1} << shift;
        for (std::uint64_t bytes : {power - 1, power, power + 1}) ASSERT_EQ(size_class(bytes), search(bytes)) << bytes;
    }
}

TEST(SizeClass, an_empty_message_is_a_class_of_its_own) {
    EXPECT_EQ(size_class(0), 0);
    EXPECT_NE(size_class(1), 0);
}

TEST(SizeClass, labels_differ_and_say_where_the_class_ends) {
    std::set<std::string> labels;
    for (int c = 0; c < kSizeClasses; ++c) labels.insert(size_class_label(c));
    EXPECT_EQ(labels.size(), static_cast<std::size_t>(kSizeClasses));
    EXPECT_STREQ(size_class_label(size_class(0)), "0 B");
    EXPECT_STREQ(size_class_label(size_class(64)), "<= 64 B");
    EXPECT_STREQ(size_class_label(size_class(4096)), "<= 4 KiB");
    EXPECT_STREQ(size_class_label(size_class(256 * 1024)), "<= 256 KiB");
    EXPECT_STREQ(size_class_label(size_class(8 << 20)), "<= 8 MiB");
    EXPECT_STREQ(size_class_label(size_class((64 << 20) + 1)), "> 64 MiB");
}

TEST(SizeClass, a_class_out_of_range_has_no_label) {
    EXPECT_STREQ(size_class_label(-1), "?");
    EXPECT_STREQ(size_class_label(kSizeClasses), "?");
}

}  // namespace
}  // namespace coop
