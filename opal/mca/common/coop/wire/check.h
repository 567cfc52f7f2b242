// SPDX-License-Identifier: BSD-3-Clause
//
// The check word of a header, and the inline half of the eager path: a 16-byte
// header is sealed and verified with two multiplications, because it is paid
// for every short message.
//
// A linear sum: one flipped bit p in the word that is k words from the end
// changes the state by 2^p * factor^k, so whether it shows in the upper 16
// bits is a property of the factor alone, and is proved below for every bit of
// the longest header. Not cryptography: it tells damage and version mix-ups
// from sense.
#pragma once

#include <cstring>

#include "coop/wire/headers.h"

namespace coop::wire {

constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15ull;
constexpr int kMostWords = static_cast<int>((kLargestHeader + kMaxHandleBytes + 7) / 8);

constexpr bool every_flipped_bit_shows(std::uint64_t factor, int words) {
    std::uint64_t power = 1;
    for (int k = 0; k < words; ++k) {
        power *= factor;
        for (int p = 0; p < 64; ++p)
            if (const auto top = (power << p) >> 48; top == 0 || top == 0xFFFF) return false;
    }
    return true;
}
static_assert(every_flipped_bit_shows(kFactor, kMostWords));

inline std::uint64_t mix(std::uint64_t state, std::uint64_t word) noexcept { return (state + word) * kFactor; }
inline std::uint16_t fold(std::uint64_t state) noexcept { return static_cast<std::uint16_t>(state >> 48); }

constexpr std::uint64_t kSeed = 0x636f6f7000000000ull + kVersion;

inline std::uint16_t match_check(const MatchHeader& header) noexcept {
    std::uint64_t words[2];
    std::memcpy(words, &header, sizeof words);
    words[1] &= 0x0000FFFFFFFFFFFFull;  // without the check word itself
    // mix(mix(kSeed, words[0]), words[1]), as a sum whose products do not wait for each other
    return fold((kSeed + words[0]) * (kFactor * kFactor) + words[1] * kFactor);
}

inline void seal_match(MatchHeader& header) noexcept { header.check = match_check(header); }

// The eager path's test; valid_match() finds out what is wrong.
inline bool match_is_whole(const MatchHeader& header) noexcept {
    return header.kind == Kind::kMatch && header.source >= 0 && header.check == match_check(header);
}

}  // namespace coop::wire
