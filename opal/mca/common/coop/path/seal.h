// SPDX-License-Identifier: BSD-3-Clause
//
// The check word of packets of path/, computed as in wire/check.h over the whole packet; and bounds checks of
// received fields.
//
// Threading: pure. Not on the hot path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "coop/wire/check.h"

namespace coop::path {

// Not wire::kSeed, which changes with the version of pml/coop's headers.
constexpr std::uint64_t kSeed = 0x636f6f7000000007ull;

// The check word over `bytes`; the two bytes at `check_at` count as zero.
inline std::uint16_t check_of(std::span<const std::byte> bytes, std::size_t check_at, std::uint64_t seed) noexcept {
    std::uint64_t state = kSeed ^ (seed << 32) ^ bytes.size();
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
        std::byte word[8] = {};
        std::memcpy(word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
        for (std::size_t i = 0; i < 2; ++i)
            if (check_at + i >= at && check_at + i < at + 8) word[check_at + i - at] = std::byte{0};
        std::uint64_t number;
        std::memcpy(&number, word, 8);
        state = wire::mix(state, number);
    }
    return wire::fold(state);
}

// Checks fields against bounds and keeps an error message for the first invalid one.
class Fields {
public:
    explicit Fields(const char* of_what) noexcept : of_what_(of_what) {}

    // min and max are inclusive.
    Fields& in(const char* field, std::uint64_t value, std::uint64_t min, std::uint64_t max) {
        if (!ok() || (value >= min && value <= max)) return *this;
        wrong_ = std::string(of_what_) + ": " + field + " is " + std::to_string(value) + ", expected " +
                 std::to_string(min) + (min == max ? "" : ".." + std::to_string(max));
        return *this;
    }
    bool ok() const noexcept { return wrong_.empty(); }
    const std::string& wrong() const noexcept { return wrong_; }

private:
    const char* of_what_;
    std::string wrong_;
};

}  // namespace coop::path
