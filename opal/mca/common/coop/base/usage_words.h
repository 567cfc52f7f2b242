// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the usage tables (usage.h, sparse_usage.h): the numbering of their cells, and the words in which a
// table travels to a peer.
//
//     word 0   magic << 32 | version
//     word 1   rows << 32 | size classes << 16 | reasons
//     word 2   number of entries
//     then for each cell in use: index, messages, bytes; in ascending order of index
//
// Threading: none; values. Errors: words from a peer are validated completely; an error message names the
// invalid field.
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

// The counts of one cell.
struct UsageCount {
    std::uint32_t index = 0;  // UsageShape::index() of the cell
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
};

struct UsageShape {
    static constexpr std::uint32_t kVersion = 1;  // of the wire form

    std::uint32_t rows = 0, reasons = 0;  // both 0: the table counts nothing

    bool operator==(const UsageShape&) const = default;

    std::uint32_t cells() const noexcept { return rows * kSizeClasses * reasons; }
    bool has(std::uint32_t row, std::uint32_t reason) const noexcept { return row < rows && reason < reasons; }
    std::uint32_t index(std::uint32_t row, int size_class, std::uint32_t reason) const noexcept {
        return (row * kSizeClasses + static_cast<std::uint32_t>(size_class)) * reasons + reason;
    }
    std::uint32_t row_of(std::uint32_t index) const noexcept { return index / reasons / kSizeClasses; }
    int class_of(std::uint32_t index) const noexcept { return static_cast<int>(index / reasons % kSizeClasses); }
    std::uint32_t reason_of(std::uint32_t index) const noexcept { return index % reasons; }

    // `counts` must be in ascending order of index.
    COOP_EXPORT std::vector<std::uint64_t> words_of(std::span<const UsageCount> counts) const;

    COOP_EXPORT std::optional<std::string> find_defect(std::span<const std::uint64_t> words) const;
    // `words` must have no defect.
    COOP_EXPORT std::vector<UsageCount> counts_of(std::span<const std::uint64_t> words) const;
};

}  // namespace coop
