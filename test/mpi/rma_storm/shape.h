// SPDX-License-Identifier: BSD-3-Clause
//
// The position of the elements of one operation in memory: as a list of blocks, which every rank can compute, and as an
// MPI datatype, which only the origin of the operation makes. All gaps are multiples of the element's size.
//
// Units: bytes.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "element.h"
#include "pattern.h"

namespace rma_storm {

enum class ShapeKind { kPredefined, kContiguous, kVector, kResized, kNested, kSubarray, kIndexed, kBackwards, kCount };

struct Recipe {
    ShapeKind kind = ShapeKind::kPredefined;
    Element element = Element::kByte;
    std::size_t elements = 0;
    std::uint64_t seed = 0;
};

std::string name_of(const Recipe& recipe);

// A datatype as an argument of MPI. The caller frees it if it is `derived`.
struct Type {
    MPI_Datatype type;
    int count;
    bool derived;

    void free() {
        if (derived) MPI_Type_free(&type);
    }
};

class Shape {
public:
    struct Block {
        std::size_t at;
        std::size_t bytes;
    };

    explicit Shape(const Recipe& recipe);

    std::size_t span() const { return span_; }      // memory needed
    std::size_t origin() const { return origin_; }  // of the address for MPI, from the start of that memory
    const std::vector<Block>& blocks() const { return blocks_; }

    // The datatype, displaced by `shift` bytes.
    Type make_type(std::size_t shift) const;

    // Copies a stream of elements to their places in `memory`, or from there.
    void scatter(const unsigned char* stream, unsigned char* memory) const;
    void gather(const unsigned char* memory, unsigned char* stream) const;
    bool covers(std::size_t at) const;

private:
    bool make_vector(pattern::Random& random);
    bool make_resized(pattern::Random& random);
    bool make_nested(pattern::Random& random);
    bool make_subarray(pattern::Random& random);
    void make_indexed(pattern::Random& random, bool backwards);
    void repeat_inner();
    std::size_t divisor(pattern::Random& random, std::size_t least) const;
    MPI_Datatype inner_type() const;
    Type bare_type() const;

    Recipe recipe_;
    std::size_t unit_;           // bytes of an element
    std::vector<Block> blocks_;  // in the order of the type map
    std::size_t span_ = 0;
    std::size_t origin_ = 0;

    // Regular kinds: `rows_` groups at distance stride_, of group_ items at distance extent_, of the blocks inner_.
    std::vector<Block> inner_;
    std::size_t extent_ = 0, group_ = 1, rows_ = 1, stride_ = 0;
    std::size_t columns_ = 0, before_ = 0, above_ = 0, all_rows_ = 0;  // of a subarray, in elements
};

}  // namespace rma_storm
