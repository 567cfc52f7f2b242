// SPDX-License-Identifier: BSD-3-Clause
//
// The position of the bytes of one message in memory: an MPI datatype, and the same
// layout as a list of blocks for filling and checking. All types consist of MPI_BYTE,
// so that the layouts of sender and receiver need not agree, and a receive may be
// longer than its message.
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

    // Prepares `memory` for a receive: fills it with a value that marks gaps.
    void clear(void* memory) const;

    // Checks that the first `bytes` bytes of the blocks are message `key` and that all
    // other memory is as clear() left it. Returns an error message, or an empty string.
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
