// SPDX-License-Identifier: BSD-3-Clause
//
// Copies a few bytes with a few instructions: words that overlap, instead of a call or a loop. For sizes that the compiler
// does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace coop {

constexpr std::size_t kShortCopy = 40;  // the most bytes that copy_short() takes

namespace detail {

template <class Word>
inline void copy_word(std::byte* to, const std::byte* from) noexcept {
    Word word;
    std::memcpy(&word, from, sizeof word);
    std::memcpy(to, &word, sizeof word);
}

// sizeof(Word) <= bytes <= 2 * sizeof(Word): the first word and the last, which overlap.
template <class Word>
inline void copy_ends(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    Word first, last;
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + bytes - sizeof last, sizeof last);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + bytes - sizeof last, &last, sizeof last);
}

}  // namespace detail

// bytes <= kShortCopy. The two do not overlap.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    using Pair = std::uint64_t __attribute__((vector_size(16)));
    if (bytes >= 8 && bytes <= 16) return detail::copy_ends<std::uint64_t>(to, from, bytes);
    if (bytes > 16) {
        if (bytes > 32) detail::copy_word<std::uint64_t>(to + 16, from + 16);
        return detail::copy_ends<Pair>(to, from, bytes);
    }
    if (bytes >= 4) return detail::copy_ends<std::uint32_t>(to, from, bytes);
    if (bytes >= 2) return detail::copy_ends<std::uint16_t>(to, from, bytes);
    if (bytes == 1) *to = *from;
}

}  // namespace coop
