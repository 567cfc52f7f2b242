// SPDX-License-Identifier: BSD-3-Clause
//
// The usage table (usage.h) of one peer among many: messages and bytes by protocol row, size class and reason.
// Only a few of these combinations occur with any one peer, so cells are allocated on first use.
//
// Units: messages and bytes of user data. Threading: add() may be called by many threads after
// set_threads(true); reading is safe at any time. Ownership: owns its cells, which live as long as the table.
// Memory: 32 bytes for each cell in use. Errors: messages whose cell cannot be allocated are not counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coop/base/export.h"
#include "coop/base/tally.h"
#include "coop/base/usage_words.h"

namespace coop {

class SparseUsage {
public:
    SparseUsage(std::uint32_t rows, std::uint32_t reasons) noexcept : shape_{rows, reasons} {}
    COOP_EXPORT ~SparseUsage();
    SparseUsage(const SparseUsage&) = delete;
    SparseUsage& operator=(const SparseUsage&) = delete;

    void set_threads(bool threads) noexcept { threads_ = threads; }
    const UsageShape& shape() const noexcept { return shape_; }

    // Counts one message.
    COOP_EXPORT void add(std::uint32_t row, std::uint32_t reason, std::uint64_t bytes) noexcept;

    COOP_EXPORT std::vector<UsageCount> counts() const;  // in ascending order of index
    std::vector<std::uint64_t> to_words() const { return shape_.words_of(counts()); }
    COOP_EXPORT std::size_t memory_bytes() const noexcept;  // of the cells

private:
    struct Cell {
        Cell* next;
        std::uint32_t index;
        Tally messages;
        Tally bytes;
    };
    Cell* find(std::uint32_t index) const noexcept;
    Cell* find_or_make(std::uint32_t index) noexcept;

    std::atomic<Cell*> cells_{nullptr};  // linked list, newest first
    UsageShape shape_;
    bool threads_ = false;
};

}  // namespace coop
