// SPDX-License-Identifier: BSD-3-Clause
#include "coop/base/usage_words.h"

namespace coop {
namespace {

constexpr std::uint64_t kMagic = 0x55534547u;  // "USEG"
constexpr std::size_t kHeadWords = 3;
constexpr std::size_t kEntryWords = 3;

std::uint64_t shape_word(const UsageShape& shape) noexcept {
    return (std::uint64_t{shape.rows} << 32) | (std::uint64_t{kSizeClasses} << 16) | shape.reasons;
}

// Whether `messages` messages of this size class can have `bytes` bytes in total.
bool bytes_fit(std::uint64_t messages, std::uint64_t bytes, int size_class) noexcept {
    const auto slot = static_cast<std::size_t>(size_class);
    const std::uint64_t least = size_class_min(size_class);
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    if (__builtin_mul_overflow(messages, least, &low) || bytes < low) return false;
    if (__builtin_mul_overflow(messages, kSizeClassMax[slot], &high)) return true;
    return bytes <= high;
}

std::string number(std::uint64_t n) { return std::to_string(n); }

std::optional<std::string> find_defect_of_head(const UsageShape& shape, std::span<const std::uint64_t> words) {
    if (words.size() < kHeadWords) return "length: " + number(words.size()) + " words are less than a header";
    if (words[0] >> 32 != kMagic) return "magic: these are not the words of a usage table";
    if (static_cast<std::uint32_t>(words[0]) != UsageShape::kVersion)
        return "version: " + number(static_cast<std::uint32_t>(words[0])) + " instead of " +
               number(UsageShape::kVersion);
    if (words[1] != shape_word(shape))
        return "shape: " + number(words[1] >> 32) + " x " + number(words[1] >> 16 & 0xffff) + " x " +
               number(words[1] & 0xffff) + " instead of " + number(shape.rows) + " x " + number(kSizeClasses) + " x " +
               number(shape.reasons);
    const std::uint64_t entries = (words.size() - kHeadWords) / kEntryWords;
    if (words[2] != entries || words.size() != kHeadWords + entries * kEntryWords)
        return "entries: " + number(words[2]) + " do not fit " + number(words.size()) + " words";
    return std::nullopt;
}

}  // namespace

std::vector<std::uint64_t> UsageShape::words_of(std::span<const UsageCount> counts) const {
    std::vector<std::uint64_t> words = {kMagic << 32 | kVersion, shape_word(*this), counts.size()};
    for (const UsageCount& count : counts) words.insert(words.end(), {count.index, count.messages, count.bytes});
    return words;
}

std::optional<std::string> UsageShape::find_defect(std::span<const std::uint64_t> words) const {
    if (auto defect = find_defect_of_head(*this, words)) return defect;
    for (std::uint64_t entry = 0; entry < words[2]; ++entry) {
        const std::uint64_t* at = &words[kHeadWords + entry * kEntryWords];
        const std::string where = "entry " + number(entry) + ", ";
        if (at[0] >= cells()) return where + "index: " + number(at[0]) + " is not below " + number(cells());
        if (entry > 0 && at[0] <= at[-3]) return where + "index: " + number(at[0]) + " is not above the previous one";
        if (at[1] == 0) return where + "messages: 0";
        const int c = class_of(static_cast<std::uint32_t>(at[0]));
        if (!bytes_fit(at[1], at[2], c))
            return where + "bytes: " + number(at[2]) + " in " + number(at[1]) + " messages of " + size_class_label(c);
    }
    return std::nullopt;
}

std::vector<UsageCount> UsageShape::counts_of(std::span<const std::uint64_t> words) const {
    std::vector<UsageCount> counts;
    counts.reserve(words[2]);
    for (std::size_t at = kHeadWords; at < words.size(); at += kEntryWords)
        counts.push_back({static_cast<std::uint32_t>(words[at]), words[at + 1], words[at + 2]});
    return counts;
}

}  // namespace coop
