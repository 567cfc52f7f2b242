// SPDX-License-Identifier: BSD-3-Clause
//
// What executes accumulates that have waited (coop/rma/accumulate_queue.h), whoever copies the target's elements.
//
// Threading: pure. Errors: none.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "coop/rma/accumulate_queue.h"
#include "layout.h"

namespace coop::osc {

// Calls f(element, entry) for these accumulates.
template <class F>
void for_each_queued(std::span<const rma::AccumulateQueue::Entry> entries, F f) {
    std::optional<ElementType> element;
    std::uint8_t type = 0;
    for (const auto& each : entries) {
        if (each.type != type) element = element_type(*type_of(each.type));
        type = each.type;
        f(*element, each);
    }
}

// Whether the target's elements have to be read before.
inline bool needs_reads(std::span<const rma::AccumulateQueue::Entry> entries) {
    return std::ranges::any_of(entries, [](const auto& each) { return each.operation != kReplace || each.result; });
}

// Executes them in their order. place(i): where the elements of block number i of the queue are.
template <class F>
void combine_queued(const rma::AccumulateQueue& queue, std::span<const rma::AccumulateQueue::Entry> entries, F place) {
    for_each_queued(entries, [&](const ElementType& element, const rma::AccumulateQueue::Entry& entry) {
        const std::byte* from = queue.operand_of(entry);
        std::byte* result = entry.result;
        for (std::size_t i = entry.first_block; i < entry.first_block + entry.blocks; ++i) {
            const std::uint64_t bytes = queue.blocks()[i].bytes;
            if (result) result = static_cast<std::byte*>(std::memcpy(result, place(i), bytes)) + bytes;
            reduce(entry.operation, element, from, place(i), bytes);
            from += bytes;
        }
    });
}

// Whether some element lies on both sides of the offset.
inline bool cuts_an_element(const rma::AccumulateQueue& queue, std::span<const rma::AccumulateQueue::Entry> entries,
                            std::uint64_t offset) {
    bool cuts = false;
    for_each_queued(entries, [&](const ElementType& element, const rma::AccumulateQueue::Entry& entry) {
        for (const rma::Block& block : queue.blocks_of(entry))
            if (block.offset < offset && offset < block.offset + block.bytes)
                cuts = cuts || (offset - block.offset) % element.span != 0;
    });
    return cuts;
}

}  // namespace coop::osc
