// SPDX-License-Identifier: BSD-3-Clause
//
// Packing of parts of a message. A send convertor packs whole elements only, and cannot be positioned inside of one. A part that
// begins or ends inside of an element, because the receive buffer does, is packed by way of memory of our own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "compat.h"
#include "ompi/mca/shim/pack.h"

namespace coop::pml {

// Sets the convertor to byte `at` of its message, or to the start of the element that contains it. Returns the new position.
// Precondition: the message is not empty.
inline std::size_t seek(opal_convertor_t& convertor, std::size_t at) noexcept {
    opal_convertor_set_position(&convertor, &at);
    return at;
}

// Some bytes of a message that begin or end inside of an element.
class Snippet {
public:
    // The bytes from `at` on: at least one, and at most `most`.
    Snippet(opal_convertor_t& convertor, std::size_t at, std::size_t most) noexcept
        : skipped_(at - seek(convertor, at)) {
        const std::size_t packed = pack_next(convertor, elements_, sizeof elements_);
        bytes_ = packed > skipped_ ? std::min(packed - skipped_, most) : 0;
    }
    const std::byte* data() const noexcept { return elements_ + skipped_; }
    std::size_t bytes() const noexcept { return bytes_; }

private:
    std::size_t skipped_, bytes_;
    std::byte elements_[2 * kLongestElement];
};

// Packs at least one and at most `bytes` bytes of the message from byte `at` on. Returns their number. Precondition: `bytes` > 0.
inline std::size_t pack_part(opal_convertor_t& convertor, std::size_t at, std::byte* to, std::size_t bytes) noexcept {
    if (seek(convertor, at) == at)
        if (const std::size_t packed = pack_next(convertor, to, bytes); packed > 0) return packed;
    const Snippet snippet(convertor, at, bytes);
    std::memcpy(to, snippet.data(), snippet.bytes());
    return snippet.bytes();
}

}  // namespace coop::pml
