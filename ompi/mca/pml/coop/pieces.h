// SPDX-License-Identifier: BSD-3-Clause
//
// The memory of one side of a message: one piece, or, for derived datatypes with
// large contiguous parts, a list of pieces, between which nothing is packed.
//
// Threading: of its request. Errors: a list from a peer is bounded by the caller;
// its addresses are the peer's own and mean nothing here.
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

    // The pieces behind a convertor, if others may copy them, and they are at most wire::kMaxPieces, of
    // `average` bytes or more on average. False: they are not, and there are none here.
    bool collect(opal_convertor_t& convertor, std::size_t bytes, std::size_t average) noexcept;

    // A peer's list. False: it does not hold that many bytes.
    bool take_over(const wire::Piece* list, std::size_t count, std::uint64_t bytes) noexcept;

    // Where byte `offset` of the message lies, and how many follow it in its
    // piece. Offsets usually rise: the search goes on where the last one ended.
    wire::Piece at(std::uint64_t offset) noexcept;

private:
    std::vector<wire::Piece> list_;
    std::size_t found_ = 0;          // piece of the last answer …
    std::uint64_t found_at_ = 0;     // … and its first byte in the message
};

}  // namespace coop::pml
