// SPDX-License-Identifier: BSD-3-Clause
#include "buffer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace rma_storm {
namespace {

constexpr unsigned char kGap = 0xA5, kSpoilt = 0x5C;

std::string hex(unsigned char byte) {
    char text[8];
    snprintf(text, sizeof text, "0x%02x", byte);
    return text;
}

}  // namespace

Buffer::Buffer(const Recipe& recipe) : shape_(recipe), memory_(shape_.span() + 2 * kGuard, kGap) {}

Buffer::Buffer(const Recipe& recipe, const Bytes& stream) : Buffer(recipe) { shape_.scatter(stream.data(), memory()); }

Buffer::Arguments Buffer::arguments(bool bottom) {
    unsigned char* address = memory() + shape_.origin();
    if (!bottom) return {address, shape_.make_type(0)};
    MPI_Aint at;
    MPI_Get_address(address, &at);
    return {MPI_BOTTOM, shape_.make_type(static_cast<std::size_t>(at))};
}

Bytes Buffer::stream() const {
    std::size_t bytes = 0;
    for (const Shape::Block& b : shape_.blocks()) bytes += b.bytes;
    Bytes stream(bytes);
    shape_.gather(memory_.data() + kGuard, stream.data());
    return stream;
}

std::string Buffer::difference(const Bytes& stream) const {
    const Buffer expected = [&] {
        Buffer b = *this;
        std::fill(b.memory_.begin(), b.memory_.end(), kGap);
        b.shape_.scatter(stream.data(), b.memory());
        return b;
    }();
    if (expected.memory_ == memory_) return "";
    const auto at = static_cast<std::size_t>(
        std::mismatch(memory_.begin(), memory_.end(), expected.memory_.begin()).first - memory_.begin());
    std::size_t wrong = 0;
    for (std::size_t i = at; i < memory_.size(); ++i) wrong += memory_[i] != expected.memory_[i];
    std::string where = "its guard";
    if (at >= kGuard && at - kGuard < shape_.span()) where = shape_.covers(at - kGuard) ? "an element" : "a gap";
    return "byte " + std::to_string(static_cast<long>(at) - static_cast<long>(kGuard)) + " of " +
           std::to_string(shape_.span()) + " (" + where + "): expected " + hex(expected.memory_[at]) + ", found " +
           hex(memory_[at]) + "; " + std::to_string(wrong) + " bytes are wrong";
}

void Buffer::spoil() { std::fill(memory_.begin(), memory_.end(), kSpoilt); }

}  // namespace rma_storm
