// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "window.h"

namespace coop::osc {

// A transfer through a staging block; on_staged_done() destroys it. Guarded by the mutex of the window.
struct StagedPart {
    StagedPart(Window& of, Peer& with, Staging::Block& through) noexcept : window(of), peer(with), block(through) {
        ++block.refs;
    }

    Window& window;
    Peer& peer;
    Staging::Block& block;  // it holds a reference
    rma::Transfer transfer{};
    bool puts = false;
    bool beside_atomics = false;  // of an accumulate
    Generations::Number generation = 0;
    // Of gets: where the pieces of the block go.
    struct Piece {
        Result* result;
        std::uint64_t position;
        rma::Piece piece;
    };
    std::vector<Piece> pieces;
    std::uint64_t wanted = 0;  // bytes of all pieces
    // Counts the parts that somebody waits for; null: nobody does.
    std::uint32_t* missing = nullptr;
};

}  // namespace coop::osc
