// SPDX-License-Identifier: BSD-3-Clause
#include "coop/coll/ranges.h"

#include <algorithm>
#include <iterator>

namespace coop::coll {
namespace {

constexpr std::uint64_t in_units(std::uint64_t bytes) noexcept {
    return (bytes + Ranges::kUnit - 1) / Ranges::kUnit * Ranges::kUnit;
}

}  // namespace

Ranges::Ranges(std::uint64_t bytes) {
    if (const std::uint64_t whole = bytes / kUnit * kUnit; whole > 0) free_.emplace(0, whole);
}

std::optional<std::uint64_t> Ranges::take(std::uint64_t bytes) {
    const std::uint64_t wanted = in_units(bytes);
    const auto found = std::find_if(free_.begin(), free_.end(),
                                    [&](const auto& each) { return each.second >= wanted; });
    if (found == free_.end()) return std::nullopt;
    const auto [offset, length] = *found;
    if (length > wanted) free_.emplace(offset + wanted, length - wanted);
    free_.erase(found);
    taken_bytes_ += wanted;
    return offset;
}

void Ranges::give_back(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t length = in_units(bytes);
    taken_bytes_ -= length;
    const auto here = free_.emplace(offset, length).first;
    if (const auto next = std::next(here); next != free_.end() && next->first == offset + length) {
        here->second += next->second;
        free_.erase(next);
    }
    if (here == free_.begin()) return;
    if (const auto before = std::prev(here); before->first + before->second == offset) {
        before->second += here->second;
        free_.erase(here);
    }
}

}  // namespace coop::coll
