// SPDX-License-Identifier: BSD-3-Clause
//
// The check word of a header, and the inline half of the eager path. Sealing or verifying a 16-byte header
// takes two multiplications, because every short message pays for it.
//
// The check is a linear sum: flipping bit p of the word that is k words from the end changes the state by 2^p *
// factor^k. So whether the change shows in the upper 16 bits depends on the factor alone; a static_assert below
// proves that it does for every bit of the longest header and of all that may follow it. This is not cryptography: it
// detects damage and mixed-up versions.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "coop/wire/headers.h"

namespace coop::wire {

constexpr std::uint64_t kFactor = 0xBF58476D1CE4E5B9ull;
constexpr int kMaxWords = static_cast<int>((kLargestHeader + kMaxHandleBytes + kMaxPieces * sizeof(Piece) + 7) / 8);

constexpr bool every_flipped_bit_shows(std::uint64_t factor, int words) {
    std::uint64_t power = 1;
    for (int k = 0; k < words; ++k) {
        power *= factor;
        for (int p = 0; p < 64; ++p)
            if (const auto top = (power << p) >> 48; top == 0 || top == 0xFFFF) return false;
    }
    return true;
}
static_assert(every_flipped_bit_shows(kFactor, kMaxWords));

inline std::uint64_t mix(std::uint64_t state, std::uint64_t word) noexcept { return (state + word) * kFactor; }
inline std::uint16_t fold(std::uint64_t state) noexcept { return static_cast<std::uint16_t>(state >> 48); }

constexpr std::uint64_t kSeed = 0x636f6f7000000000ull + kVersion;

// Returns `value` at the position in a 64-bit word that a field of its size has at byte `offset`.
template <class T>
constexpr std::uint64_t field_at(std::size_t offset, T value) noexcept {
    const auto bits = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
    return bits << 8 * (std::endian::native == std::endian::little ? offset : 8 - offset - sizeof(T));
}

inline std::uint16_t match_check(const MatchHeader& header) noexcept {
    std::uint64_t words[2];
    std::memcpy(words, &header, sizeof words);
    words[1] &= ~field_at(6, std::uint16_t{0xFFFF});  // the check word counts as zero
    // mix(mix(kSeed, words[0]), words[1]) as a sum of products that the CPU can compute in parallel
    return fold((kSeed + words[0]) * (kFactor * kFactor) + words[1] * kFactor);
}

inline void seal_match(MatchHeader& header) noexcept { header.check = match_check(header); }

// The 16 bytes of a MatchHeader as one vector.
using MatchWords = std::uint64_t __attribute__((vector_size(16)));
static_assert(sizeof(MatchWords) == sizeof(MatchHeader));

// Builds the sealed header of an eager message in registers and stores it at once. If it were written field by
// field, computing the check word and the transport's copy would read it back before its stores have left the
// store buffer. There they queue after the payload of earlier messages, whose cache lines the receiver holds.
// Waiting for them would take half of the time of a short message.
inline MatchWords sealed_match(std::uint16_t context, std::int32_t source, std::int32_t tag,
                               std::uint16_t sequence) noexcept {
    const std::uint64_t first = field_at(0, static_cast<std::uint8_t>(Kind::kMatch)) | field_at(2, context) |
                                field_at(4, source);
    const std::uint64_t second = field_at(0, tag) | field_at(4, sequence);
    const std::uint16_t check = fold((kSeed + first) * (kFactor * kFactor) + second * kFactor);
    return MatchWords{first, second | field_at(6, check)};
}

// Whether the header is valid, for the eager path. valid_match() finds out which field is wrong.
inline bool match_is_whole(const MatchHeader& header) noexcept {
    return header.kind == Kind::kMatch && header.source >= 0 && header.check == match_check(header);
}

}  // namespace coop::wire
