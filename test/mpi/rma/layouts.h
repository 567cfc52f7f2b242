// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes of ints with a description of their own: where each int of an element lies. Buffers are filled and checked by
// that description, without MPI's pack functions. Every element has six ints.
//
// Units: bytes. Ownership: Layouts frees its types.
#pragma once

#include <algorithm>

#include "window.h"

namespace {

constexpr MPI_Aint kInt = sizeof(int);
constexpr int kInts = 6;  // in an element

struct Layout {
    std::string name;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::vector<MPI_Aint> places;  // of the ints of an element, in the order of the signature
    MPI_Aint extent = 0;

    // The number of these elements with as many ints as `sixes` elements of six.
    int count(int sixes) const { return sixes * kInts / static_cast<int>(places.size()); }

    // Calls f(place, number) for each int of `sixes` times six ints.
    template <class F>
    void each(int sixes, F f) const {
        std::uint64_t number = 0;
        for (int i = 0; i < count(sixes); ++i)
            for (const MPI_Aint place : places) f(i * extent + place, number++);
    }
    // The first byte, which may be before the buffer's address, and the end.
    MPI_Aint first(int sixes) const {
        MPI_Aint at = 0;
        each(sixes, [&at](MPI_Aint place, std::uint64_t) { at = std::min(at, place); });
        return at;
    }
    MPI_Aint end(int sixes) const {
        MPI_Aint at = 0;
        each(sixes, [&at](MPI_Aint place, std::uint64_t) { at = std::max(at, place + kInt); });
        return at;
    }
};

// Small numbers: sums of a few do not overflow.
inline int int_of(std::uint64_t key, std::uint64_t number) {
    return static_cast<int>(pattern::word(key, number) & 0xffffff);
}

// Memory for elements of a layout, with room on both sides; the gaps hold guard bytes.
class Elements {
public:
    Elements(const Layout& layout, int sixes)
        : layout_(layout), sixes_(sixes), before_(static_cast<std::size_t>(64 - layout.first(sixes))),
          all_(before_ + static_cast<std::size_t>(layout.end(sixes)) + 64, kGuard) {}

    void fill(std::uint64_t key) {
        layout_.each(sixes_, [&](MPI_Aint place, std::uint64_t number) { store(place, int_of(key, number)); });
    }
    void add(std::uint64_t key) {
        layout_.each(sixes_, [&](MPI_Aint place, std::uint64_t number) {
            int value;
            std::memcpy(&value, data() + place, sizeof value);
            store(place, value + int_of(key, number));
        });
    }
    unsigned char* data() { return all_.data() + before_; }
    const Bytes& all() const { return all_; }
    std::size_t before() const { return before_; }
    int count() const { return layout_.count(sixes_); }
    MPI_Datatype type() const { return layout_.type; }

private:
    void store(MPI_Aint place, int value) { std::memcpy(data() + place, &value, sizeof value); }

    const Layout& layout_;
    int sixes_;
    std::size_t before_;
    Bytes all_;
};

class Layouts {
public:
    Layouts() {
        all_.push_back({"int", MPI_INT, {0}, kInt});
        MPI_Datatype type, inner;
        MPI_Type_contiguous(kInts, MPI_INT, &type);
        add("contiguous", type, {0, 1, 2, 3, 4, 5});
        MPI_Type_vector(3, 2, 5, MPI_INT, &type);
        add("vector", type, {0, 1, 5, 6, 10, 11});
        MPI_Type_vector(3, 2, -3, MPI_INT, &type);
        add("negative stride", type, {0, 1, -3, -2, -6, -5});
        const int lengths[] = {1, 3, 2}, scattered[] = {9, 0, 5}, six[] = {1, 1, 1, 1, 1, 1},
                  descending[] = {5, 4, 3, 2, 1, 0};
        MPI_Type_indexed(3, lengths, scattered, MPI_INT, &type);
        add("indexed", type, {9, 0, 1, 2, 5, 6});
        MPI_Type_indexed(kInts, six, descending, MPI_INT, &type);
        add("descending", type, {5, 4, 3, 2, 1, 0});
        const MPI_Aint around[] = {4 * kInt, -3 * kInt, 0};
        MPI_Type_create_hindexed_block(3, 2, around, MPI_INT, &type);
        add("blocks around 0", type, {4, 5, -3, -2, 0, 1});
        MPI_Type_vector(2, 3, 4, MPI_INT, &type);
        add("resized with a lower bound below 0", resized(type, -4, 14), {0, 1, 2, 4, 5, 6});
        MPI_Type_vector(2, 3, 4, MPI_INT, &type);
        add("resized with a lower bound above 0", resized(type, 2, 9), {0, 1, 2, 4, 5, 6});
        MPI_Type_contiguous(kInts, MPI_INT, &type);
        add("contiguous with gaps between", resized(type, 0, 8), {0, 1, 2, 3, 4, 5});
        const int sizes[] = {4, 5}, part[] = {3, 2}, starts[] = {1, 2};
        MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_C, MPI_INT, &type);
        add("subarray", type, {7, 8, 12, 13, 17, 18});
        MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_FORTRAN, MPI_INT, &type);
        add("subarray of Fortran", type, {9, 10, 11, 13, 14, 15});
        // A pair of ints, and a vector of two single ints with a gap.
        MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
        const int counts[] = {2, 2};
        const MPI_Aint where[] = {9 * kInt, 0};
        const MPI_Datatype kinds[] = {MPI_INT, inner};
        MPI_Type_create_struct(2, counts, where, kinds, &type);
        MPI_Type_free(&inner);
        add("struct", type, {9, 10, 0, 3, 4, 7});
    }
    ~Layouts() {
        for (std::size_t i = 1; i < all_.size(); ++i) MPI_Type_free(&all_[i].type);
    }
    Layouts(const Layouts&) = delete;

    std::size_t size() const { return all_.size(); }
    const Layout& operator[](std::size_t i) const { return all_[i % all_.size()]; }

private:
    void add(const char* name, MPI_Datatype type, std::vector<MPI_Aint> ints) {
        MPI_Type_commit(&type);
        MPI_Aint lower, extent;
        MPI_Type_get_extent(type, &lower, &extent);
        for (MPI_Aint& place : ints) place *= kInt;
        all_.push_back({name, type, std::move(ints), extent});
    }
    static MPI_Datatype resized(MPI_Datatype old, int lower_ints, int extent_ints) {
        MPI_Datatype type;
        MPI_Type_create_resized(old, lower_ints * kInt, extent_ints * kInt, &type);
        MPI_Type_free(&old);
        return type;
    }

    std::vector<Layout> all_;
};

}  // namespace
