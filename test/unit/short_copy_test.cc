// SPDX-License-Identifier: BSD-3-Clause
//
// base/short_copy.h: each length, exactly.
#include "coop/base/short_copy.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace coop {
namespace {

// Both buffers are exactly as long as the copy, so that AddressSanitizer notices a byte too many.
TEST(ShortCopy, copies_each_length_and_reads_no_more) {
    for (std::size_t bytes = 0; bytes <= kShortCopy; ++bytes) {
        const std::unique_ptr<std::byte[]> from(new std::byte[bytes]), to(new std::byte[bytes]);
        for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i + 1);
        copy_short(to.get(), from.get(), bytes);
        for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(to[i], static_cast<std::byte>(i + 1)) << bytes << " " << i;
    }
}

TEST(ShortCopy, writes_no_more_at_any_alignment) {
    constexpr std::byte kUntouched{0xee};
    for (std::size_t bytes = 0; bytes <= kShortCopy; ++bytes)
        for (std::size_t skew = 0; skew < 16; ++skew) {
            std::array<std::byte, kShortCopy + 32> from, to;
            to.fill(kUntouched);
            for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i);
            copy_short(to.data() + skew, from.data() + 1, bytes);
            for (std::size_t i = 0; i < to.size(); ++i) {
                const bool is_copied = i >= skew && i < skew + bytes;
                ASSERT_EQ(to[i], is_copied ? static_cast<std::byte>(i - skew + 1) : kUntouched) << bytes << " " << skew;
            }
        }
}

}  // namespace
}  // namespace coop
