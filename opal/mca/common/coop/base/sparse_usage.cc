// SPDX-License-Identifier: BSD-3-Clause
#include "coop/base/sparse_usage.h"

#include <algorithm>
#include <new>
#include <utility>

namespace coop {

SparseUsage::~SparseUsage() {
    for (Cell* cell = cells_.load(std::memory_order_relaxed); cell;) delete std::exchange(cell, cell->next);
}

SparseUsage::Cell* SparseUsage::find(std::uint32_t index) const noexcept {
    Cell* cell = cells_.load(std::memory_order_acquire);
    while (cell && cell->index != index) cell = cell->next;
    return cell;
}

// If two threads create the same cell at the same time, the slower one uses the other's.
SparseUsage::Cell* SparseUsage::find_or_make(std::uint32_t index) noexcept {
    if (Cell* known = find(index)) return known;
    auto* fresh = new (std::nothrow) Cell{cells_.load(std::memory_order_acquire), index, {}, {}};
    if (!fresh) return nullptr;
    do {
        if (Cell* other = find(index)) {
            delete fresh;
            return other;
        }
    } while (!cells_.compare_exchange_strong(fresh->next, fresh, std::memory_order_acq_rel));
    return fresh;
}

void SparseUsage::add(std::uint32_t row, std::uint32_t reason, std::uint64_t bytes) noexcept {
    if (!shape_.has(row, reason)) return;
    Cell* cell = find_or_make(shape_.index(row, size_class(bytes), reason));
    if (!cell) return;
    cell->messages.add(1, threads_);
    cell->bytes.add(bytes, threads_);
}

std::vector<UsageCount> SparseUsage::counts() const {
    std::vector<UsageCount> all;
    for (const Cell* cell = cells_.load(std::memory_order_acquire); cell; cell = cell->next)
        if (const std::uint64_t messages = cell->messages.read())
            all.push_back({cell->index, messages, cell->bytes.read()});
    std::sort(all.begin(), all.end(), [](const UsageCount& a, const UsageCount& b) { return a.index < b.index; });
    return all;
}

std::size_t SparseUsage::memory_bytes() const noexcept {
    std::size_t cells = 0;
    for (const Cell* cell = cells_.load(std::memory_order_acquire); cell; cell = cell->next) ++cells;
    return cells * sizeof(Cell);
}

}  // namespace coop
