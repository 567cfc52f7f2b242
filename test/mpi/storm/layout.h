// SPDX-License-Identifier: BSD-3-Clause
//
// Where the bytes of one message lie in memory: an MPI datatype made for the
// occasion, and the same layout as a list of blocks to fill and to check with.
// All types are made of MPI_BYTE, so that the layouts of sender and receiver
// need not agree, and a receive may have room to spare.
//
// Ownership: a Layout owns its datatype. Units: bytes.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pattern.h"

namespace storm {

enum class LayoutKind { kContiguous, kVector, kIndexed, kBackwards, kResized, kCount };

class Layout {
public:
    Layout(LayoutKind kind, std::size_t bytes, std::uint64_t seed);
    Layout(Layout&& other) noexcept;
    Layout& operator=(Layout&&) = delete;
    ~Layout();

    MPI_Datatype type() const { return type_; }
    int count() const { return count_; }
    std::size_t span() const { return span_; }      // memory needed
    std::size_t origin() const { return origin_; }  // of the address for MPI, from the start of that memory

    // Fills `memory` (span() bytes): message `key` in the blocks.
    void fill(void* memory, std::uint64_t key) const;

    // Prepares `memory` for a receive: a value that gaps are known by later.
    void clear(void* memory) const;

    // Checks that the first `bytes` of the blocks are message `key` and that
    // all other memory is as clear() left it. Empty, or what is wrong.
    std::string check(const void* memory, std::uint64_t key, std::size_t bytes) const;

private:
    struct Block {
        std::size_t at;
        std::size_t bytes;
    };

    void add(std::size_t gap, std::size_t bytes);
    void make_vector(std::size_t bytes, pattern::Random& random);
    void make_indexed(std::size_t bytes, pattern::Random& random, bool backwards);
    bool make_resized(std::size_t bytes, pattern::Random& random);
    void commit_blocks();

    std::vector<Block> blocks_;  // in the order of the type map
    MPI_Datatype type_ = MPI_BYTE;
    int count_ = 0;
    std::size_t span_ = 0;
    std::size_t origin_ = 0;
};

}  // namespace storm
