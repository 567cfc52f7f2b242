// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates that the origin executes on a copy of the target's elements, and what it has to write back.
//
// Threading: pure. Errors: std::bad_alloc.
#pragma once

#include <span>
#include <vector>

#include "coop/rma/cover.h"
#include "layout.h"

namespace coop::osc {

// Executes the operation on the pieces in `copy`, after their old values have gone to the result, if `unpacker` is not null.
// `position`: bytes of elements before them; returns the same with them. Null `from`: nothing is changed.
inline std::uint64_t compute(const rma::Cover& cover, std::byte* copy, const std::byte* from, std::uint8_t operation,
                             const ElementType& element, Unpacker* unpacker, std::uint64_t position) {
    for (const rma::Piece& piece : cover.pieces()) {
        std::byte* const there = copy + piece.at;
        if (unpacker) unpacker->put(position, there, piece.bytes);
        if (from) reduce(operation, element, from + position, there, piece.bytes);
        position += piece.bytes;
    }
    return position;
}

// The writes that leave alone what lies between the pieces, and the gaps of elements.
inline std::vector<rma::Transfer> writes_of(const rma::Cover& cover, const ElementType& element) {
    std::vector<rma::Transfer> writes;
    std::span<const rma::Piece> pieces = cover.pieces();
    for (const rma::Transfer& each : cover.transfers()) {
        for (; !pieces.empty() && pieces.front().at < each.at + each.bytes; pieces = pieces.subspan(1)) {
            const rma::Piece& piece = pieces.front();
            const std::uint64_t offset = each.offset + piece.at - each.at;
            if (element.span == element.size) {
                writes.push_back({offset, piece.at, piece.bytes});
                continue;
            }
            // A pair with a gap: a value, and an index at the end.
            constexpr std::uint32_t kIndex = sizeof(int);
            for (std::uint32_t i = 0; i < piece.bytes; i += element.span) {
                writes.push_back({offset + i, piece.at + i, element.size - kIndex});
                const std::uint32_t index = i + element.span - kIndex;
                writes.push_back({offset + index, piece.at + index, kIndex});
            }
        }
    }
    return writes;
}

}  // namespace coop::osc
