// SPDX-License-Identifier: BSD-3-Clause
//
// The buffer of one side of a message as a list of contiguous pieces, for derived datatypes with large contiguous
// parts: they are copied without packing. The list is empty for other buffers.
//
// Threading: as its request. Errors: the caller limits the length of a list from a peer; its addresses are valid in the
// peer only.
#pragma once

#include <vector>

#include "coop/wire/headers.h"
#include "compat.h"

namespace coop::pml {

class Pieces {
public:
    void clear() noexcept { list_ = {}; }
    bool any() const noexcept { return !list_.empty(); }
    std::size_t count() const noexcept { return list_.size(); }
    const wire::Piece* data() const noexcept { return list_.data(); }

    // Collects the pieces of a convertor's buffer. Returns false, and is empty then, if the buffer is in device memory,
    // if there are more than wire::kMaxPieces, or if their average length is below `average` bytes.
    bool collect(opal_convertor_t& convertor, std::size_t bytes, std::size_t average) noexcept;

    // Uses a peer's list. Returns false if it holds fewer than `bytes` bytes.
    bool assign(const wire::Piece* list, std::size_t count, std::uint64_t bytes) noexcept;

    // Returns the address of byte `offset` of the message, and the number of bytes from there to the end of its piece.
    // Offsets usually rise, so the search starts at the piece that was found last.
    wire::Piece at(std::uint64_t offset) noexcept;

private:
    std::vector<wire::Piece> list_;
    std::size_t found_ = 0;       // piece that was found last
    std::uint64_t found_at_ = 0;  // offset of its first byte in the message
};

}  // namespace coop::pml
