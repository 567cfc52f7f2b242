// SPDX-License-Identifier: BSD-3-Clause
//
// The header in front of every message that is sent (not of RDMA): its place in
// the channel's one sequence, its tag, its length, and a check word.
//
// Same byte order on both sides: the modex refuses a peer that differs.
#pragma once

#include <cstdint>

namespace coop::ib {

constexpr std::uint16_t kWireVersion = 2;

struct Header {
    std::uint32_t psn;    // of the channel, over all rails
    std::uint32_t bytes;  // behind the header
    std::uint8_t tag;
    std::uint8_t kind;    // Kind
    std::uint16_t check;
    std::uint32_t reserved;
};
static_assert(sizeof(Header) == 16);

enum class Kind : std::uint8_t {
    kMessage = 1,
    kUnordered = 2,  // has no place in the sequence: psn is 0, and it is handed on as it comes
};

inline std::uint16_t check_of(const Header& header) noexcept {
    std::uint64_t state = 0x636f6f7069620000ull + kWireVersion;
    state = (state + (std::uint64_t{header.psn} << 32 | header.bytes)) * 0xBF58476D1CE4E5B9ull;
    state = (state + (std::uint64_t{header.tag} << 8 | header.kind)) * 0xBF58476D1CE4E5B9ull;
    return static_cast<std::uint16_t>(state >> 48);
}

}  // namespace coop::ib
