// SPDX-License-Identifier: BSD-3-Clause
//
// What the usage tables have in common (usage.h, sparse_usage.h): the numbering of their cells, and their words for a peer.
//
//     word 0   magic << 32 | version
//     word 1   rows << 32 | size classes << 16 | reasons
//     word 2   number of entries
//     then per cell in use: index, messages, bytes; by rising index
//
// Threading: none; values. Errors: words of a peer are checked in full; what is wrong is a sentence that names the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coop/base/export.h"
#include "coop/base/size_class.h"

namespace coop {

// What one cell has counted.
struct UsageCount {
    std::uint32_t index = 0;  // of the cell, by UsageShape
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
};

struct UsageShape {
    static constexpr std::uint32_t kVersion = 1;  // of the words

    std::uint32_t rows = 0, reasons = 0;  // both 0: a table that counts nothing

    bool operator==(const UsageShape&) const = default;

    std::uint32_t cells() const noexcept { return rows * kSizeClasses * reasons; }
    bool has(std::uint32_t row, std::uint32_t reason) const noexcept { return row < rows && reason < reasons; }
    std::uint32_t index(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept {
        return (row * kSizeClasses + static_cast<std::uint32_t>(size_class)) * reasons + reason;
    }
    std::uint32_t row_of(std::uint32_t index) const noexcept { return index / reasons / kSizeClasses; }
    int class_of(std::uint32_t index) const noexcept { return static_cast<int>(index / reasons % kSizeClasses); }
    std::uint32_t reason_of(std::uint32_t index) const noexcept { return index % reasons; }

    // `counts` by rising index.
    COOP_EXPORT std::vector<std::uint64_t> words_of(std::span<const UsageCount> counts) const;

    COOP_EXPORT std::optional<std::string> find_defect(std::span<const std::uint64_t> words) const;
    // Of words without a defect.
    COOP_EXPORT std::vector<UsageCount> counts_of(std::span<const std::uint64_t> words) const;
};

}  // namespace coop
