// SPDX-License-Identifier: BSD-3-Clause
#include "layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace storm {
namespace {

constexpr unsigned char kGap = 0xA5;
constexpr std::size_t kMostBlocks = 600;  // of one type: the storm is not a test of packing

std::string first_not_gap(const unsigned char* memory, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
        if (memory[i] != kGap)
            return "byte " + std::to_string(i) + " of the buffer, not part of the message, was written";
    return "";
}

}  // namespace

Layout::Layout(LayoutKind kind, std::size_t bytes, std::uint64_t seed) {
    pattern::Random random(seed);
    if (bytes == 0) kind = LayoutKind::kContiguous;
    if (kind == LayoutKind::kResized && make_resized(bytes, random)) return;
    switch (kind) {
    case LayoutKind::kResized:
    case LayoutKind::kVector: make_vector(bytes, random); break;
    case LayoutKind::kIndexed: make_indexed(bytes, random, false); break;
    case LayoutKind::kBackwards: make_indexed(bytes, random, true); break;
    case LayoutKind::kContiguous:
    case LayoutKind::kCount:
        add(0, bytes);
        count_ = static_cast<int>(bytes);
        break;
    }
}

Layout::Layout(Layout&& other) noexcept
    : blocks_(std::move(other.blocks_)), type_(std::exchange(other.type_, MPI_BYTE)), count_(other.count_),
      span_(other.span_), origin_(other.origin_) {}

Layout::~Layout() {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);
}

void Layout::add(std::size_t gap, std::size_t bytes) {
    blocks_.push_back({span_ + gap, bytes});
    span_ += gap + bytes;
}

// Equal blocks at equal distances. The rest follows them.
void Layout::make_vector(std::size_t bytes, pattern::Random& random) {
    const std::size_t block = std::max<std::size_t>(1 + random.below(64), bytes / (kMostBlocks / 2));
    const std::size_t gap = 1 + random.below(40);
    for (std::size_t done = 0; done < bytes; done += block) add(done == 0 ? 0 : gap, std::min(block, bytes - done));
    if (bytes % block != 0) return commit_blocks();
    MPI_Type_create_hvector(static_cast<int>(bytes / block), static_cast<int>(block),
                            static_cast<MPI_Aint>(block + gap), MPI_BYTE, &type_);
    MPI_Type_commit(&type_);
    count_ = 1;
}

void Layout::make_indexed(std::size_t bytes, pattern::Random& random, bool backwards) {
    const std::size_t least = std::max<std::size_t>(1, bytes / (kMostBlocks / 2));
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t block = std::min(bytes - done, least + random.below(2 * least));
        add(random.below(30), block);
        done += block;
    }
    if (backwards) {
        // The type map runs from high to low addresses, and MPI is given the
        // address of the last block: displacements are negative.
        std::reverse(blocks_.begin(), blocks_.end());
        origin_ = blocks_.front().at;
    }
    commit_blocks();
}

// Many elements of a struct with a hole in it and a padded extent.
bool Layout::make_resized(std::size_t bytes, pattern::Random& random) {
    std::size_t unit = 0;
    for (std::size_t u : {2, 3, 6, 16, 48, 144, 1024, 4096})
        if (bytes % u == 0 && bytes / u <= 4096 && (unit == 0 || random.one_in(2))) unit = u;
    if (unit == 0) return false;
    const std::size_t head = 1 + random.below(unit - 1), hole = 1 + random.below(16);
    const std::size_t extent = unit + hole + random.below(16);
    int lengths[2] = {static_cast<int>(head), static_cast<int>(unit - head)};
    MPI_Aint at[2] = {0, static_cast<MPI_Aint>(head + hole)};
    MPI_Datatype types[2] = {MPI_BYTE, MPI_BYTE}, bare;
    MPI_Type_create_struct(2, lengths, at, types, &bare);
    MPI_Type_create_resized(bare, 0, static_cast<MPI_Aint>(extent), &type_);
    MPI_Type_free(&bare);
    MPI_Type_commit(&type_);
    count_ = static_cast<int>(bytes / unit);
    for (int i = 0; i < count_; ++i) {
        blocks_.push_back({static_cast<std::size_t>(i) * extent, head});
        blocks_.push_back({static_cast<std::size_t>(i) * extent + head + hole, unit - head});
    }
    span_ = static_cast<std::size_t>(count_) * extent;
    return true;
}

void Layout::commit_blocks() {
    std::vector<int> lengths;
    std::vector<MPI_Aint> at;
    for (const Block& b : blocks_) {
        lengths.push_back(static_cast<int>(b.bytes));
        at.push_back(static_cast<MPI_Aint>(b.at) - static_cast<MPI_Aint>(origin_));
    }
    MPI_Type_create_hindexed(static_cast<int>(blocks_.size()), lengths.data(), at.data(), MPI_BYTE, &type_);
    MPI_Type_commit(&type_);
    count_ = 1;
}

void Layout::clear(void* memory) const {
    if (span_ != 0) memset(memory, kGap, span_);
}

void Layout::fill(void* memory, std::uint64_t key) const {
    clear(memory);
    std::size_t done = 0;
    for (const Block& b : blocks_) {
        pattern::fill(key, done, static_cast<unsigned char*>(memory) + b.at, b.bytes);
        done += b.bytes;
    }
}

std::string Layout::check(const void* memory, std::uint64_t key, std::size_t bytes) const {
    const auto* in = static_cast<const unsigned char*>(memory);
    std::size_t done = 0;
    std::vector<Block> written;
    for (const Block& b : blocks_) {
        const std::size_t n = std::min(b.bytes, bytes - done);
        const std::size_t bad = pattern::mismatch(key, done, in + b.at, n);
        if (bad != pattern::kNone)
            return "byte " + std::to_string(done + bad) + " of " + std::to_string(bytes) + " is wrong";
        if (n != 0) written.push_back({b.at, n});
        done += n;
    }
    std::sort(written.begin(), written.end(), [](const Block& a, const Block& b) { return a.at < b.at; });
    std::size_t end = 0;
    for (const Block& b : written) {
        std::string bad = first_not_gap(in, end, b.at);
        if (!bad.empty()) return bad;
        end = b.at + b.bytes;
    }
    return first_not_gap(in, end, span_);
}

}  // namespace storm
