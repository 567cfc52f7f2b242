// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "window.h"

namespace coop::osc {

// Writes, or reads, through a staging block that are posted together. on_staged_done() gives the part back to the
// window, which keeps unused ones. Guarded by the mutex of the window.
struct StagedPart {
    // Of gets: where the pieces of the block go.
    struct Piece {
        std::byte* to;     // memory of the program; null: to the result
        Result* result;    // valid if there is no `to`
        Request* request;  // of a piece with `to`; null: the program has none
        std::uint64_t position;
        rma::Piece piece;
    };

    // Unused ones have no peer and no block.
    Window& window;
    Peer* peer = nullptr;
    Staging::Block* block = nullptr;  // it holds a reference
    bool puts = false;
    bool beside_atomics = false;         // of an accumulate: the only transfer of the part
    Generations::Number generation = 0;  // valid when it is under way
    std::vector<RdmaPiece> transfers;    // the transport reads them until they have ended
    std::vector<Piece> pieces;
    std::uint64_t wanted = 0;  // bytes of the last transfer's pieces
    // Decremented when the part ends: a caller that started several parts waits until it is 0 (move()). Null: nobody
    // waits.
    std::uint32_t* missing = nullptr;

    // A piece of the last transfer.
    void take(const Piece& piece) {
        if (piece.request) ++piece.request->parts;
        pieces.push_back(piece);
        wanted += piece.piece.bytes;
    }
    bool is_full() const noexcept { return transfers.size() == kMostPieces; }
    void add(const rma::Transfer& transfer) {
        transfers.push_back({block->memory + transfer.at, transfer.offset, transfer.bytes});
        wanted = 0;
    }
    // The end of the last transfer, in the block.
    std::uint32_t end() const noexcept {
        return static_cast<std::uint32_t>(transfers.back().local_address - block->memory + transfers.back().bytes);
    }
};

}  // namespace coop::osc
