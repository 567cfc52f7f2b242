// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rma/accumulate_queue.h"

#include <algorithm>
#include <numeric>

namespace coop::rma {
namespace {

constexpr std::uint64_t kAlignment = AccumulateQueue::kAlignment;

// The first place from `used` on that agrees with the address.
std::uint64_t aligned(std::uint64_t used, std::uint64_t address) noexcept {
    return used + (address - used) % kAlignment;
}

}  // namespace

std::byte* AccumulateQueue::add(std::span<const Run> runs, std::uint8_t type, std::uint8_t operation,
                                std::byte* result) {
    const auto first_block = static_cast<std::uint32_t>(blocks_.size()),
               data = static_cast<std::uint32_t>(data_.size());
    std::uint32_t bytes = 0;
    for (RunCursor cursor(runs); !cursor.at_end();) {
        blocks_.push_back(cursor.next(UINT64_MAX));
        bytes += static_cast<std::uint32_t>(blocks_.back().bytes);
    }
    data_.resize(data + bytes);
    entries_.push_back(
        {first_block, static_cast<std::uint32_t>(blocks_.size()) - first_block, data, bytes, type, operation, result});
    has_results_ = has_results_ || result;
    return data_.data() + data;
}

std::size_t AccumulateBatch::take(const AccumulateQueue& queue, std::size_t first, std::uint32_t room,
                                  std::uint64_t base) {
    const std::span<const AccumulateQueue::Entry> entries = queue.entries();
    first_block_ = entries[first].first_block;
    const auto fits = [&](std::size_t count) {
        const AccumulateQueue::Entry& last = entries[first + count - 1];
        const std::size_t blocks = last.first_block + last.blocks - first_block_;
        return plan(queue.blocks().subspan(first_block_, blocks), room, base);
    };
    std::size_t most = entries.size() - first;
    if (fits(most)) return first + most;
    std::size_t least = 0;  // this many fit, and `most` do not
    while (most - least > 1) {
        const std::size_t middle = least + (most - least) / 2;
        (fits(middle) ? least : most) = middle;
    }
    if (least > 0) fits(least);
    return first + least;
}

std::uint64_t AccumulateBatch::end_of_written(std::uint64_t bytes) const noexcept {
    for (const Transfer& each : writes_) {
        if (bytes < each.bytes) return each.offset + bytes;
        bytes -= each.bytes;
    }
    return UINT64_MAX;
}

bool AccumulateBatch::plan(std::span<const Block> blocks, std::uint32_t room, std::uint64_t base) {
    join(blocks);
    if (!arrange(room, base)) return false;
    places_.resize(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const Transfer& write = writes_[write_of_[i]];
        places_[i] = write.at + static_cast<std::uint32_t>(blocks[i].offset - write.offset);
    }
    return true;
}

// Blocks that touch or overlap become one write.
void AccumulateBatch::join(std::span<const Block> blocks) {
    order_.resize(blocks.size());
    std::iota(order_.begin(), order_.end(), 0);
    const auto by_offset = [&](std::uint32_t one, std::uint32_t other) {
        return blocks[one].offset < blocks[other].offset;
    };
    if (!std::is_sorted(order_.begin(), order_.end(), by_offset)) std::sort(order_.begin(), order_.end(), by_offset);
    writes_.clear();
    write_of_.resize(blocks.size());
    for (const std::uint32_t i : order_) {
        const Block& block = blocks[i];
        Transfer* const last = writes_.empty() ? nullptr : &writes_.back();
        if (last && block.offset <= last->offset + last->bytes) {
            const std::uint64_t bytes = block.offset + block.bytes - last->offset;
            last->bytes = std::max(last->bytes, static_cast<std::uint32_t>(bytes));
        } else {
            writes_.push_back({block.offset, 0, static_cast<std::uint32_t>(block.bytes)});
        }
        write_of_[i] = static_cast<std::uint32_t>(writes_.size() - 1);
    }
}

// Gives the writes places in the registered memory, and makes the reads that cover them. Returns false if there is no room.
bool AccumulateBatch::arrange(std::uint32_t room, std::uint64_t base) {
    std::uint64_t rest = 0;  // what the writes that have no place yet need at most
    for (const Transfer& each : writes_) rest += each.bytes + kAlignment - 1;
    reads_.clear();
    std::uint64_t used = 0, wanted = 0;  // wanted: of the last read
    for (Transfer& write : writes_) {
        rest -= write.bytes + kAlignment - 1;
        Transfer* const last = reads_.empty() ? nullptr : &reads_.back();
        const std::uint64_t gap = last ? write.offset - last->offset - last->bytes : 0;
        const bool joins = last && gap < room && used + gap + write.bytes + rest <= room &&
                           (wanted + write.bytes) * Cover::kDensity >= last->bytes + gap + write.bytes;
        const std::uint64_t at = joins ? used + gap : aligned(used, base + write.offset);
        used = at + write.bytes;
        if (used > room) return false;
        write.at = static_cast<std::uint32_t>(at);
        if (joins) {
            last->bytes += static_cast<std::uint32_t>(gap) + write.bytes;
            wanted += write.bytes;
        } else {
            reads_.push_back(write);
            wanted = write.bytes;
        }
    }
    return true;
}

}  // namespace coop::rma
