// SPDX-License-Identifier: BSD-3-Clause
#include "coop/base/usage.h"

#include <new>

namespace coop {

Usage::Usage(std::uint32_t rows, std::uint32_t reasons) noexcept {
    if (rows == 0 || reasons == 0 || rows > kMaxRows || reasons > kMaxReasons) return;
    const UsageShape shape{rows, reasons};
    cells_.reset(new (std::nothrow) Cell[shape.cells()]());
    if (cells_) shape_ = shape;
}

std::uint64_t Usage::messages(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept {
    return valid(row, size_class, reason) ? cells_[shape_.index(row, size_class, reason)].messages.read() : 0;
}

std::uint64_t Usage::bytes(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept {
    return valid(row, size_class, reason) ? cells_[shape_.index(row, size_class, reason)].bytes.read() : 0;
}

std::uint64_t Usage::messages(std::uint32_t row) const noexcept {
    std::uint64_t sum = 0;
    for (int c = 0; c < kSizeClasses; ++c)
        for (std::uint32_t reason = 0; reason < shape_.reasons; ++reason) sum += messages(row, c, reason);
    return sum;
}

std::uint64_t Usage::bytes(std::uint32_t row) const noexcept {
    std::uint64_t sum = 0;
    for (int c = 0; c < kSizeClasses; ++c)
        for (std::uint32_t reason = 0; reason < shape_.reasons; ++reason) sum += bytes(row, c, reason);
    return sum;
}

std::uint64_t Usage::messages() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t row = 0; row < shape_.rows; ++row) sum += messages(row);
    return sum;
}

std::uint64_t Usage::bytes() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t row = 0; row < shape_.rows; ++row) sum += bytes(row);
    return sum;
}

void Usage::add_saturating(const UsageCount& count) noexcept {
    const auto add = [](Tally& tally, std::uint64_t n) {
        std::uint64_t sum = 0;
        tally.set(__builtin_add_overflow(tally.read(), n, &sum) ? UINT64_MAX : sum);
    };
    add(cells_[count.index].messages, count.messages);
    add(cells_[count.index].bytes, count.bytes);
}

std::vector<UsageCount> Usage::counts() const {
    std::vector<UsageCount> all;
    for (std::uint32_t i = 0; i < shape_.cells(); ++i)
        if (const std::uint64_t messages = cells_[i].messages.read())
            all.push_back({i, messages, cells_[i].bytes.read()});
    return all;
}

bool Usage::merge(const Usage& other) noexcept {
    if (other.shape_ != shape_) return false;
    for (std::uint32_t i = 0; i < shape_.cells(); ++i)
        add_saturating({i, other.cells_[i].messages.read(), other.cells_[i].bytes.read()});
    return true;
}

std::optional<std::string> Usage::merge_words(std::span<const std::uint64_t> words) {
    if (auto defect = shape_.find_defect(words)) return defect;
    for (const UsageCount& count : shape_.counts_of(words)) add_saturating(count);
    return std::nullopt;
}

}  // namespace coop
