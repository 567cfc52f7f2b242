// SPDX-License-Identifier: BSD-3-Clause
//
// Message contents that can be checked without the original: byte i of a message is a
// function of (key, i), and the key is a function of everything that identifies the
// message (seed, source, destination, communicator, sequence number). This detects a
// message at the wrong receiver, a fragment in the wrong place and a stale byte.
//
// Threading: pure functions. Units: bytes. Errors: mismatch() returns the position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace pattern {

constexpr std::uint64_t mix(std::uint64_t x) noexcept {  // splitmix64's finaliser
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

constexpr std::uint64_t key(std::initializer_list<std::uint64_t> parts) noexcept {
    std::uint64_t k = 0x9e3779b97f4a7c15u;
    for (std::uint64_t part : parts) k = mix(k + part * 0x9e3779b97f4a7c15u + 1);
    return k;
}

constexpr std::uint64_t word(std::uint64_t key, std::uint64_t index) noexcept {
    return mix(key + index * 0x9e3779b97f4a7c15u);
}

// Byte `at` of the message.
constexpr unsigned char byte(std::uint64_t key, std::uint64_t at) noexcept {
    return static_cast<unsigned char>(word(key, at / 8) >> (at % 8 * 8));
}

// Writes bytes [at, at + n) of the message to `to`.
inline void fill(std::uint64_t key, std::uint64_t at, void* to, std::size_t n) noexcept {
    auto* out = static_cast<unsigned char*>(to);
    std::size_t i = 0;
    while (i < n && (at + i) % 8 != 0) out[i] = byte(key, at + i), ++i;
    for (; i + 8 <= n; i += 8) {
        const std::uint64_t w = word(key, (at + i) / 8);
        std::memcpy(out + i, &w, 8);
    }
    for (; i < n; ++i) out[i] = byte(key, at + i);
}

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// Index of the first byte of `from` that is not byte [at + index] of the
// message, or kNone.
inline std::size_t mismatch(std::uint64_t key, std::uint64_t at, const void* from, std::size_t n) noexcept {
    const auto* in = static_cast<const unsigned char*>(from);
    for (std::size_t i = 0; i < n;) {
        if ((at + i) % 8 == 0 && i + 8 <= n) {
            const std::uint64_t w = word(key, (at + i) / 8);
            if (std::memcmp(in + i, &w, 8) == 0) {
                i += 8;
                continue;
            }
        }
        if (in[i] != byte(key, at + i)) return i;
        ++i;
    }
    return kNone;
}

// A small generator with the same results on every rank and platform, unlike the
// distributions of std::.
class Random {
public:
    explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

    std::uint64_t next() noexcept { return mix(state_ += 0x9e3779b97f4a7c15u); }

    std::uint64_t below(std::uint64_t n) noexcept { return n == 0 ? 0 : next() % n; }  // 0 … n-1
    bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }

private:
    std::uint64_t state_;
};

}  // namespace pattern
