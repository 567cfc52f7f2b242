// SPDX-License-Identifier: BSD-3-Clause
#include "coop/base/usage.h"

#include <new>

namespace coop {

namespace {

constexpr std::uint64_t kMagic = 0x55534547u;  // "USEG"
constexpr std::size_t kHeadWords = 3;
constexpr std::size_t kEntryWords = 3;

std::uint64_t shape_word(std::uint32_t rows, std::uint32_t reasons) noexcept {
    return (std::uint64_t{rows} << 32) | (std::uint64_t{kSizeClasses} << 16) | reasons;
}

// Whether `messages` messages of this class can have `bytes` bytes in all.
bool bytes_fit(std::uint64_t messages, std::uint64_t bytes, int size_class) noexcept {
    const auto slot = static_cast<std::size_t>(size_class);
    const std::uint64_t least = size_class_min(size_class);
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    if (__builtin_mul_overflow(messages, least, &low) || bytes < low) return false;
    if (__builtin_mul_overflow(messages, kSizeClassMax[slot], &high)) return true;
    return bytes <= high;
}

void add_saturating(Tally& tally, std::uint64_t n) noexcept {
    std::uint64_t sum = 0;
    tally.set(__builtin_add_overflow(tally.read(), n, &sum) ? UINT64_MAX : sum);
}

}  // namespace

Usage::Usage(std::uint32_t rows, std::uint32_t reasons) noexcept {
    if (rows == 0 || reasons == 0 || rows > kMaxRows || reasons > kMaxReasons) return;
    cells_.reset(new (std::nothrow) Cell[std::size_t{rows} * kSizeClasses * reasons]());
    if (!cells_) return;
    rows_ = rows;
    reasons_ = reasons;
}

std::uint64_t Usage::messages(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept {
    return valid(row, size_class, reason) ? cells_[index(row, size_class, reason)].messages.read() : 0;
}

std::uint64_t Usage::bytes(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept {
    return valid(row, size_class, reason) ? cells_[index(row, size_class, reason)].bytes.read() : 0;
}

std::uint64_t Usage::messages(std::uint32_t row) const noexcept {
    std::uint64_t sum = 0;
    for (int c = 0; c < kSizeClasses; ++c)
        for (std::uint32_t reason = 0; reason < reasons_; ++reason) sum += messages(row, c, reason);
    return sum;
}

std::uint64_t Usage::bytes(std::uint32_t row) const noexcept {
    std::uint64_t sum = 0;
    for (int c = 0; c < kSizeClasses; ++c)
        for (std::uint32_t reason = 0; reason < reasons_; ++reason) sum += bytes(row, c, reason);
    return sum;
}

std::uint64_t Usage::messages() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t row = 0; row < rows_; ++row) sum += messages(row);
    return sum;
}

std::uint64_t Usage::bytes() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t row = 0; row < rows_; ++row) sum += bytes(row);
    return sum;
}

bool Usage::merge(const Usage& other) noexcept {
    if (other.rows_ != rows_ || other.reasons_ != reasons_) return false;
    for (std::size_t i = 0; i < cells(); ++i) {
        add_saturating(cells_[i].messages, other.cells_[i].messages.read());
        add_saturating(cells_[i].bytes, other.cells_[i].bytes.read());
    }
    return true;
}

std::vector<std::uint64_t> Usage::to_words() const {
    std::vector<std::uint64_t> words = {kMagic << 32 | kVersion, shape_word(rows_, reasons_), 0};
    for (std::size_t i = 0; i < cells(); ++i) {
        const std::uint64_t messages = cells_[i].messages.read();
        if (messages == 0) continue;
        words.insert(words.end(), {i, messages, cells_[i].bytes.read()});
        ++words[2];
    }
    return words;
}

std::optional<std::string> Usage::find_defect(std::span<const std::uint64_t> words) const {
    const auto number = [](std::uint64_t n) { return std::to_string(n); };
    if (words.size() < kHeadWords) return "length: " + number(words.size()) + " words are less than a header";
    if (words[0] >> 32 != kMagic) return "magic: these are not the words of a usage table";
    if (static_cast<std::uint32_t>(words[0]) != kVersion)
        return "version: " + number(static_cast<std::uint32_t>(words[0])) + " instead of " + number(kVersion);
    if (words[1] != shape_word(rows_, reasons_))
        return "shape: " + number(words[1] >> 32) + " x " + number(words[1] >> 16 & 0xffff) + " x " +
               number(words[1] & 0xffff) + " instead of " + number(rows_) + " x " + number(kSizeClasses) + " x " +
               number(reasons_);
    const std::uint64_t entries = (words.size() - kHeadWords) / kEntryWords;
    if (words[2] != entries || words.size() != kHeadWords + entries * kEntryWords)
        return "entries: " + number(words[2]) + " do not make " + number(words.size()) + " words";

    for (std::uint64_t entry = 0; entry < entries; ++entry) {
        const std::uint64_t* at = &words[kHeadWords + entry * kEntryWords];
        const std::string where = "entry " + number(entry) + ", ";
        if (at[0] >= cells()) return where + "index: " + number(at[0]) + " is not below " + number(cells());
        if (entry > 0 && at[0] <= at[-3]) return where + "index: " + number(at[0]) + " is not above the one before";
        if (at[1] == 0) return where + "messages: 0";
        const int c = class_of(at[0]);
        if (!bytes_fit(at[1], at[2], c))
            return where + "bytes: " + number(at[2]) + " in " + number(at[1]) + " messages of " + size_class_label(c);
    }
    return std::nullopt;
}

std::optional<std::string> Usage::merge_words(std::span<const std::uint64_t> words) {
    if (auto defect = find_defect(words)) return defect;
    for (std::size_t at = kHeadWords; at < words.size(); at += kEntryWords) {
        add_saturating(cells_[words[at]].messages, words[at + 1]);
        add_saturating(cells_[words[at]].bytes, words[at + 2]);
    }
    return std::nullopt;
}

}  // namespace coop
