// SPDX-License-Identifier: BSD-3-Clause
#include "pieces.h"

#include <algorithm>

#include "device_memory.h"

namespace coop::pml {

bool Pieces::collect(opal_convertor_t& convertor, std::size_t bytes, std::size_t average) noexcept {
    clear();
    found_ = found_at_ = 0;
    if (is_on_device(convertor)) return false;
    std::size_t start = 0;
    opal_convertor_set_position(&convertor, &start);
    iovec parts[wire::kMaxPieces];
    std::uint32_t count = std::min<std::size_t>(wire::kMaxPieces, bytes / average);
    std::size_t covered = 0;
    if (count > 0) opal_convertor_raw(&convertor, parts, &count, &covered);
    opal_convertor_set_position(&convertor, &start);
    if (count == 0 || covered != bytes) return false;
    for (std::uint32_t i = 0; i < count; ++i)
        list_.push_back({reinterpret_cast<std::uint64_t>(parts[i].iov_base), parts[i].iov_len});
    return true;
}

bool Pieces::assign(const wire::Piece* list, std::size_t count, std::uint64_t bytes) noexcept {
    list_.assign(list, list + count);
    found_ = found_at_ = 0;
    std::uint64_t held = 0;
    for (const wire::Piece& piece : list_) {
        if (piece.bytes == 0 || piece.bytes > UINT64_MAX - held) return false;
        held += piece.bytes;
    }
    return held >= bytes;
}

wire::Piece Pieces::at(std::uint64_t offset) noexcept {
    if (offset < found_at_) found_ = found_at_ = 0;
    while (offset - found_at_ >= list_[found_].bytes) found_at_ += list_[found_++].bytes;
    const std::uint64_t skip = offset - found_at_;
    return {list_[found_].address + skip, list_[found_].bytes - skip};
}

}  // namespace coop::pml
