// SPDX-License-Identifier: BSD-3-Clause
//
// Packing by a convertor of Open MPI, which packs whole elements only: it leaves out an element of which only a part would
// fit. Units: bytes. Threading: one thread at a time uses a convertor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coop {

constexpr std::size_t kLongestElement = 32;  // a complex long double

// Packs at most `bytes` bytes from the convertor's position on. Returns their number.
inline std::size_t pack_next(opal_convertor_t& convertor, std::byte* to, std::size_t bytes) noexcept {
    if (bytes == 0) return 0;
    iovec where{to, bytes};
    std::uint32_t count = 1;
    opal_convertor_pack(&convertor, &where, &count, &bytes);
    return bytes;
}

}  // namespace coop
