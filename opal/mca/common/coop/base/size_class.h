// SPDX-License-Identifier: BSD-3-Clause
//
// Classes of message sizes for reports. The upper bound of a class is inclusive: a message of exactly 4 KiB is
// in "<= 4 KiB".
//
// Units: bytes. Threading: constants and pure functions; fast enough for a hot path (one bit scan and one table
// look-up; the only branch is for size 0).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace coop {

inline constexpr int kSizeClasses = 11;

// The largest size of each class.
inline constexpr std::array<std::uint64_t, kSizeClasses> kSizeClassMax = {
    0, 64, 1u << 10, 4u << 10, 16u << 10, 64u << 10, 256u << 10, 1u << 20, 8u << 20, 64u << 20, UINT64_MAX,
};

inline constexpr std::array<const char*, kSizeClasses> kSizeClassLabels = {
    "0 B",        "<= 64 B",  "<= 1 KiB", "<= 4 KiB",  "<= 16 KiB", "<= 64 KiB",
    "<= 256 KiB", "<= 1 MiB", "<= 8 MiB", "<= 64 MiB", "> 64 MiB",
};

namespace detail {

// Class by ceil(log2(size)) + 1; slot 0 is the empty message.
constexpr std::array<std::uint8_t, 66> make_size_class_table() {
    std::array<std::uint8_t, 66> table{};
    for (std::size_t slot = 1; slot < table.size(); ++slot) {
        // Every size of the slot lies in (2^(slot-2), 2^(slot-1)].
        std::size_t c = 1;
        while (c + 1 < kSizeClassMax.size() && (slot > 64 || kSizeClassMax[c] < (std::uint64_t{1} << (slot - 1)))) ++c;
        table[slot] = static_cast<std::uint8_t>(c);
    }
    return table;
}

inline constexpr auto kSizeClassTable = make_size_class_table();

}  // namespace detail

constexpr int size_class(std::uint64_t bytes) noexcept {
    const std::size_t slot = bytes == 0 ? 0 : 1 + static_cast<std::size_t>(std::bit_width(bytes - 1));
    return detail::kSizeClassTable[slot];
}

constexpr const char* size_class_label(int size_class) noexcept {
    return size_class >= 0 && size_class < kSizeClasses ? kSizeClassLabels[static_cast<std::size_t>(size_class)] : "?";
}

// The smallest size of a class.
constexpr std::uint64_t size_class_min(int size_class) noexcept {
    return size_class <= 0 ? 0 : kSizeClassMax[static_cast<std::size_t>(size_class) - 1] + 1;
}

static_assert(size_class(0) == 0 && size_class(1) == 1 && size_class(64) == 1 && size_class(65) == 2);
static_assert(size_class(64u << 20) == kSizeClasses - 2 && size_class((64u << 20) + 1) == kSizeClasses - 1);
static_assert(size_class(UINT64_MAX) == kSizeClasses - 1);

}  // namespace coop
