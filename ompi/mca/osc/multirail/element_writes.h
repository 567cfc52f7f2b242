// SPDX-License-Identifier: BSD-3-Clause
//
// What has to be written back after an accumulate at its origin.
//
// Threading: pure. Errors: std::bad_alloc.
#pragma once

#include <span>
#include <vector>

#include "coop/rma/cover.h"
#include "layout.h"

namespace coop::osc {

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
