// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/partition.h"

namespace coop::path {
namespace {

// Returns the first key for which `fits` returns true.
template <class Fits>
std::optional<PkeyChoice> first_of(std::span<const std::uint16_t> table, Fits fits) noexcept {
    for (std::size_t i = 0; i < table.size(); ++i)
        if (partition_of(table[i]) != 0 && fits(table[i])) return PkeyChoice{table[i], static_cast<std::uint16_t>(i)};
    return std::nullopt;
}

}  // namespace

std::optional<PkeyChoice> choose_pkey(std::span<const std::uint16_t> table, std::uint16_t wanted) noexcept {
    const std::uint16_t partition = partition_of(wanted);
    if (wanted != 0) {
        const auto full = first_of(table, [=](std::uint16_t key) { return key == (partition | kFullMember); });
        return full ? full : first_of(table, [=](std::uint16_t key) { return key == partition; });
    }
    const auto full = first_of(table, is_full_member);
    return full ? full : first_of(table, [](std::uint16_t) { return true; });
}

std::string pkey_text(std::uint16_t pkey) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text = "0x";
    for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[pkey >> shift & 15];
    return text;
}

std::string pkeys_text(std::span<const std::uint16_t> table) {
    std::string text;
    for (const std::uint16_t key : table)
        if (partition_of(key) != 0) text += (text.empty() ? "" : ", ") + pkey_text(key);
    return text.empty() ? "none" : text;
}

}  // namespace coop::path
