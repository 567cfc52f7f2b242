// SPDX-License-Identifier: BSD-3-Clause
//
// Where an access to a window goes, with all arithmetic checked.
//
// Pure. Units: bytes; displacements count units of the target. Errors: no value means MPI_ERR_RMA_RANGE.
#pragma once

#include <cstdint>
#include <optional>

namespace coop::rma {

// The bytes that a datatype covers, relative to the target's displacement: [low, low + bytes).
struct Extent {
    std::int64_t low = 0;
    std::uint64_t bytes = 0;
};

// The offset of the displacement in a window of `size` bytes, if all of `extent` lies inside. An empty one may lie at
// the end.
constexpr std::optional<std::uint64_t> offset_in(std::int64_t displacement, std::uint32_t unit, const Extent& extent,
                                                 std::uint64_t size) noexcept {
    const __int128 at = static_cast<__int128>(displacement) * unit;
    const __int128 low = at + extent.low;
    if (at < 0 || extent.bytes == 0 ? at < 0 || at > static_cast<__int128>(size)
                                    : low < 0 || low + extent.bytes > static_cast<__int128>(size))
        return std::nullopt;
    return static_cast<std::uint64_t>(at);
}

}  // namespace coop::rma
