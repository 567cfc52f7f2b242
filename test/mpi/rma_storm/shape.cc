// SPDX-License-Identifier: BSD-3-Clause
#include "shape.h"

#include <algorithm>
#include <cstring>

namespace rma_storm {
namespace {

constexpr std::size_t kMostBlocks = 400;  // of one datatype: the storm is not a test of packing
const char* const kNames[] = {"predefined", "contiguous", "vector",  "resized",
                              "nested",     "subarray",   "indexed", "backwards"};

}  // namespace

std::string name_of(const Recipe& recipe) {
    return std::to_string(recipe.elements) + " " + name_of(recipe.element) + " " +
           kNames[static_cast<std::size_t>(recipe.kind)];
}

Shape::Shape(const Recipe& recipe) : recipe_(recipe), unit_(bytes_of(recipe.element)) {
    pattern::Random random(recipe.seed);
    bool made = recipe.elements == 0;
    switch (recipe.kind) {
    case ShapeKind::kVector: made = made || make_vector(random); break;
    case ShapeKind::kResized: made = made || make_resized(random); break;
    case ShapeKind::kNested: made = made || make_nested(random); break;
    case ShapeKind::kSubarray: made = made || make_subarray(random); break;
    case ShapeKind::kIndexed:
    case ShapeKind::kBackwards:
    case ShapeKind::kPredefined:
    case ShapeKind::kContiguous:
    case ShapeKind::kCount: break;
    }
    if (made && recipe.elements == 0) recipe_.kind = ShapeKind::kPredefined;
    if (made) return;
    if (recipe_.kind == ShapeKind::kPredefined || recipe_.kind == ShapeKind::kContiguous) {
        span_ = recipe.elements * unit_;
        blocks_.push_back({0, span_});
        return;
    }
    // No regular kind divides this number of elements.
    if (recipe_.kind != ShapeKind::kBackwards) recipe_.kind = ShapeKind::kIndexed;
    make_indexed(random, recipe_.kind == ShapeKind::kBackwards);
}

// A divisor of the number of elements, not below `least` and such that there are not too many parts; 0 if there is none.
std::size_t Shape::divisor(pattern::Random& random, std::size_t least) const {
    std::size_t found = 0;
    const std::size_t n = recipe_.elements, from = std::max(least, n / kMostBlocks);
    for (std::size_t d : {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 100, 128, 256, 1000, 1024, 4096, 16384, 65536})
        if (d >= from && n % d == 0 && (found == 0 || random.one_in(3))) found = d;
    return found;
}

void Shape::repeat_inner() {
    for (std::size_t row = 0; row < rows_; ++row)
        for (std::size_t item = 0; item < group_; ++item)
            for (const Block& b : inner_) blocks_.push_back({row * stride_ + item * extent_ + b.at, b.bytes});
}

bool Shape::make_vector(pattern::Random& random) {
    const std::size_t block = divisor(random, 1);
    if (block == 0) return false;
    inner_ = {{0, block * unit_}};
    rows_ = recipe_.elements / block;
    stride_ = (block + random.below(24)) * unit_;
    span_ = (rows_ - 1) * stride_ + block * unit_;
    repeat_inner();
    return true;
}

// Many items with a hole in each and a padded extent.
bool Shape::make_resized(pattern::Random& random) {
    const std::size_t item = divisor(random, 2);
    if (item < 2) return false;
    const std::size_t head = 1 + random.below(item - 1), hole = 1 + random.below(5);
    inner_ = {{0, head * unit_}, {(head + hole) * unit_, (item - head) * unit_}};
    stride_ = extent_ = (item + hole + random.below(5)) * unit_;
    rows_ = recipe_.elements / item;
    span_ = rows_ * stride_;
    repeat_inner();
    return true;
}

// A vector of pairs of resized indexed blocks.
bool Shape::make_nested(pattern::Random& random) {
    const std::size_t item = divisor(random, 2);
    if (item < 2) return false;
    std::size_t at = 0;
    for (std::size_t done = 0; done < item;) {
        const std::size_t block = std::min(item - done, 1 + random.below(item));
        inner_.push_back({at * unit_, block * unit_});
        at += block + 1 + random.below(3);
        done += block;
        if (inner_.size() == 3 && done < item) {
            inner_.back().bytes += (item - done) * unit_;
            at += item - done;
            done = item;
        }
    }
    extent_ = (at + random.below(3)) * unit_;
    const std::size_t items = recipe_.elements / item;
    group_ = items % 2 == 0 ? 2 : 1;
    rows_ = items / group_;
    stride_ = group_ * extent_ + random.below(8) * unit_;
    span_ = (rows_ - 1) * stride_ + group_ * extent_;
    repeat_inner();
    return true;
}

bool Shape::make_subarray(pattern::Random& random) {
    const std::size_t columns = divisor(random, 1);
    if (columns == 0) return false;
    inner_ = {{0, columns * unit_}};
    rows_ = recipe_.elements / columns;
    before_ = random.below(4);
    above_ = random.below(2);
    columns_ = before_ + columns + random.below(6);
    all_rows_ = above_ + rows_ + random.below(2);
    stride_ = columns_ * unit_;
    span_ = all_rows_ * stride_;
    repeat_inner();
    for (Block& b : blocks_) b.at += above_ * stride_ + before_ * unit_;
    return true;
}

void Shape::make_indexed(pattern::Random& random, bool backwards) {
    const std::size_t n = recipe_.elements, least = std::max<std::size_t>(1, n / (kMostBlocks / 2));
    for (std::size_t done = 0; done < n;) {
        const std::size_t block = std::min(n - done, least + random.below(2 * least + 8));
        span_ += random.below(6) * unit_;
        blocks_.push_back({span_, block * unit_});
        span_ += block * unit_;
        done += block;
    }
    if (!backwards) return;
    // The type map runs from high to low addresses, and MPI is given the address of the last block: displacements are
    // negative.
    std::reverse(blocks_.begin(), blocks_.end());
    origin_ = blocks_.front().at;
}

MPI_Datatype Shape::inner_type() const {
    MPI_Datatype bare, padded;
    std::vector<int> lengths;
    std::vector<MPI_Aint> at;
    std::vector<MPI_Datatype> types(inner_.size(), type_of(recipe_.element));
    for (const Block& b : inner_) {
        lengths.push_back(static_cast<int>(b.bytes / unit_));
        at.push_back(static_cast<MPI_Aint>(b.at));
    }
    MPI_Type_create_struct(static_cast<int>(inner_.size()), lengths.data(), at.data(), types.data(), &bare);
    MPI_Type_create_resized(bare, 0, static_cast<MPI_Aint>(extent_), &padded);
    MPI_Type_free(&bare);
    return padded;
}

Type Shape::bare_type() const {
    const MPI_Datatype element = type_of(recipe_.element);
    const int n = static_cast<int>(recipe_.elements), rows = static_cast<int>(rows_);
    Type result{element, 1, true};
    switch (recipe_.kind) {
    case ShapeKind::kPredefined:
    case ShapeKind::kCount: return {element, n, false};
    case ShapeKind::kContiguous: MPI_Type_contiguous(n, element, &result.type); break;
    case ShapeKind::kVector:
        MPI_Type_create_hvector(rows, static_cast<int>(inner_[0].bytes / unit_), static_cast<MPI_Aint>(stride_),
                                element, &result.type);
        break;
    case ShapeKind::kResized:
        result.type = inner_type();
        result.count = rows;
        break;
    case ShapeKind::kNested: {
        MPI_Datatype item = inner_type(), group;
        MPI_Type_contiguous(static_cast<int>(group_), item, &group);
        MPI_Type_create_hvector(rows, 1, static_cast<MPI_Aint>(stride_), group, &result.type);
        MPI_Type_free(&item);
        MPI_Type_free(&group);
        break;
    }
    case ShapeKind::kSubarray: {
        const int sizes[2] = {static_cast<int>(all_rows_), static_cast<int>(columns_)};
        const int parts[2] = {rows, static_cast<int>(inner_[0].bytes / unit_)};
        const int starts[2] = {static_cast<int>(above_), static_cast<int>(before_)};
        MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, element, &result.type);
        break;
    }
    case ShapeKind::kIndexed:
    case ShapeKind::kBackwards: {
        std::vector<int> lengths;
        std::vector<MPI_Aint> at;
        for (const Block& b : blocks_) {
            lengths.push_back(static_cast<int>(b.bytes / unit_));
            at.push_back(static_cast<MPI_Aint>(b.at) - static_cast<MPI_Aint>(origin_));
        }
        MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), at.data(), element, &result.type);
        break;
    }
    }
    return result;
}

Type Shape::make_type(std::size_t shift) const {
    Type made = bare_type();
    if (shift != 0) {
        const auto at = static_cast<MPI_Aint>(shift);
        MPI_Datatype shifted;
        MPI_Type_create_hindexed(1, &made.count, &at, made.type, &shifted);
        made.free();
        made = {shifted, 1, true};
    }
    if (made.derived) MPI_Type_commit(&made.type);
    return made;
}

void Shape::scatter(const unsigned char* stream, unsigned char* memory) const {
    for (const Block& b : blocks_) {
        std::memcpy(memory + b.at, stream, b.bytes);
        stream += b.bytes;
    }
}

void Shape::gather(const unsigned char* memory, unsigned char* stream) const {
    for (const Block& b : blocks_) {
        std::memcpy(stream, memory + b.at, b.bytes);
        stream += b.bytes;
    }
}

bool Shape::covers(std::size_t at) const {
    return std::any_of(blocks_.begin(), blocks_.end(),
                       [&](const Block& b) { return at >= b.at && at - b.at < b.bytes; });
}

}  // namespace rma_storm
