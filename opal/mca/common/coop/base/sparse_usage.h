// SPDX-License-Identifier: BSD-3-Clause
//
// The usage table (usage.h) of one peer among many: messages and bytes by protocol row, size class and reason, of which few kinds occur
// with any one peer. It takes memory for those alone.
//
// Units: messages and bytes of user data. Threading: add() is safe from many threads once set_threads(true) was called; reading at any
// time. Ownership: of its cells, which live as long as the table. Memory: 32 bytes for each kind of message that occurred. Errors:
// without memory for another cell its messages are not counted.
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

    COOP_EXPORT std::vector<UsageCount> counts() const;  // by rising index
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

    std::atomic<Cell*> cells_{nullptr};  // a list, the last that was made first
    UsageShape shape_;
    bool threads_ = false;
};

}  // namespace coop
