// SPDX-License-Identifier: BSD-3-Clause
//
// The buffers of a call. The blocks travel as bytes, in the order of the ranks and without gaps. Where they lie otherwise
// in the receive buffer, they are gathered in memory of our own and unpacked at the end.
//
// Threading: one thread at a time. Errors: no memory ends the job, because the other processes are in the call already.
#pragma once

#include <memory>

#include "compat.h"
#include "coop/coll/blocks.h"

namespace coop::ag {

// Elements of a datatype in the caller's memory.
struct Elements {
    std::byte* address;
    std::size_t count;
    ompi_datatype_t* type;

    std::size_t bytes() const noexcept {
        std::size_t size;
        ompi_datatype_type_size(type, &size);
        return size * count;
    }
};

// The blocks in the receive buffer of MPI_Allgather or MPI_Allgatherv.
struct Received {
    std::byte* buffer;
    ompi_datatype_t* type;
    int count;          // of each block, if counts is null
    const int* counts;  // of the blocks, and where they begin, in extents
    const int* displs;

    Elements block(std::uint32_t rank) const noexcept;
    // Whether the blocks lie as they travel.
    bool is_dense(const coll::Blocks& blocks) const noexcept;
};

class Buffers {
public:
    // Copies the own block to the memory of all blocks, unless it is there. `sbuf`, `scount` and `sdtype` as in
    // MPI_Allgather. `may_stay`: own() may point to the send buffer instead, if the block has no gaps there.
    Buffers(std::uint32_t rank, const void* sbuf, int scount, ompi_datatype_t* sdtype, const Received& received,
            const coll::Blocks& blocks, bool may_stay = false) noexcept;

    std::byte* memory() const noexcept { return memory_; }
    const std::byte* own() const noexcept { return own_; }  // the own block, in `memory` unless it may stay
    const coll::Blocks& blocks() const noexcept { return blocks_; }
    // When all blocks are there: brings them to the receive buffer. Returns the error code of the call.
    int finish() noexcept;

private:
    const std::uint32_t rank_;
    const bool in_place_;
    const Received received_;
    const coll::Blocks blocks_;
    std::unique_ptr<std::byte[]> staging_;  // null: the blocks lie in the receive buffer as they travel
    std::byte* memory_;
    const std::byte* own_;
    bool too_long_;  // the own block
};

}  // namespace coop::ag
