// SPDX-License-Identifier: BSD-3-Clause
//
// A process's architecture word (Open MPI's opal_local_arch: byte order and sizes of types), in a byte order that
// does not depend on the architecture, so that a peer of another architecture is recognised and reported. A job
// cannot mix architectures, because packet headers and shared-memory structures have the native layout.
#pragma once

#include <array>
#include <cstdint>

namespace coop {

struct Architecture {
    std::array<std::uint8_t, 4> bytes;  // least significant first

    static constexpr Architecture of(std::uint32_t word) noexcept {
        return {{static_cast<std::uint8_t>(word), static_cast<std::uint8_t>(word >> 8),
                 static_cast<std::uint8_t>(word >> 16), static_cast<std::uint8_t>(word >> 24)}};
    }
    constexpr std::uint32_t word() const noexcept {
        return bytes[0] | std::uint32_t{bytes[1]} << 8 | std::uint32_t{bytes[2]} << 16 | std::uint32_t{bytes[3]} << 24;
    }
};
static_assert(sizeof(Architecture) == 4 && Architecture::of(0x12345678).word() == 0x12345678);

}  // namespace coop
