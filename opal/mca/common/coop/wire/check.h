// SPDX-License-Identifier: BSD-3-Clause
//
// The check word of a header and the inline half of the eager path: a 16-byte
// header is sealed and verified with two multiplications, because it is paid
// for every short message.
//
// Not cryptography: it tells damage and version mix-ups from sense.
#pragma once

#include <cstring>

#include "coop/wire/headers.h"

namespace coop::wire {

// 64-bit multiply-fold over whole words (the construction of wyhash: each step
// is a bijection in the word, so that no single damaged word goes unseen
// before the final folding to 16 bits).
inline std::uint64_t mix(std::uint64_t state, std::uint64_t word) noexcept {
    state = (state ^ word) * 0x9E3779B97F4A7C15ull;
    return state ^ (state >> 29);
}

inline std::uint16_t fold(std::uint64_t state) noexcept {
    return static_cast<std::uint16_t>((state * 0xD6E8FEB86659FD93ull) >> 48);
}

constexpr std::uint64_t kSeed = 0x636f6f7000000000ull + kVersion;

inline std::uint16_t match_check(const MatchHeader& header) noexcept {
    std::uint64_t words[2];
    std::memcpy(words, &header, sizeof words);
    words[1] &= 0x0000FFFFFFFFFFFFull;  // without the check word itself
    return fold(mix(mix(kSeed, words[0]), words[1]));
}

inline void seal_match(MatchHeader& header) noexcept { header.check = match_check(header); }

// The eager path's test; valid_match() finds out what is wrong.
inline bool match_is_whole(const MatchHeader& header) noexcept {
    return header.kind == Kind::kMatch && header.source >= 0 && header.check == match_check(header);
}

}  // namespace coop::wire
