// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rma/runs.h"

namespace coop::rma {

void RunBuilder::append(const Run& run) {
    if (few_count_ < few_.size()) {
        few_[few_count_++] = run;
        return;
    }
    if (many_.empty()) {
        many_.assign(few_.begin(), few_.end());
        ++few_count_;
    }
    many_.push_back(run);
}

void RunBuilder::add(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0) return;
    bytes_ += bytes;
    if (Run* const before = last_run()) {
        Run& last = *before;
        if (last.repeat == 1 && last.offset + last.bytes == offset) {
            last.bytes += bytes;
            return;
        }
        const std::uint64_t next = last.offset + static_cast<std::uint64_t>(last.stride) * last.repeat;
        if (last.bytes == bytes && (last.repeat == 1 || next == offset)) {
            if (last.repeat == 1) last.stride = static_cast<std::int64_t>(offset - last.offset);
            ++last.repeat;
            return;
        }
    }
    append({offset, bytes, 0, 1});
}

void RunBuilder::add(const Run& run) {
    if (run.stride == static_cast<std::int64_t>(run.bytes)) return add(run.offset, run.bytes * run.repeat);
    // One or two blocks may continue the previous run, so add them one by one.
    constexpr std::uint64_t kFew = 2;
    if (run.repeat <= kFew) {
        for (std::uint64_t i = 0; i < run.repeat; ++i)
            add(run.offset + static_cast<std::uint64_t>(run.stride) * i, run.bytes);
        return;
    }
    if (run.bytes == 0) return;
    bytes_ += run.bytes * run.repeat;
    if (Run* const before = last_run()) {
        Run& last = *before;
        const std::uint64_t next = last.offset + static_cast<std::uint64_t>(last.stride) * last.repeat;
        if (last.bytes == run.bytes && last.stride == run.stride && last.repeat > 1 && next == run.offset) {
            last.repeat += run.repeat;
            return;
        }
        // The first block may continue the previous one.
        if (last.repeat == 1 && last.offset + last.bytes == run.offset) {
            last.bytes += run.bytes;
            append({run.offset + static_cast<std::uint64_t>(run.stride), run.bytes, run.stride, run.repeat - 1});
            return;
        }
    }
    append(run);
}

bool are_inside(std::span<const Run> runs, std::uint64_t size) noexcept {
    for (const Run& run : runs) {
        if (run.repeat == 0 || run.bytes == 0) return false;
        const __int128 first = run.offset;
        // Both factors have 64 bits, so that the product has 127 with its sign.
        const __int128 last = first + static_cast<__int128>(run.stride) * static_cast<__int128>(run.repeat - 1);
        if (std::min(first, last) < 0 || run.bytes > size) return false;
        if (std::max(first, last) > static_cast<__int128>(size - run.bytes)) return false;
    }
    return true;
}

std::uint64_t count_bytes(std::span<const Run> runs) noexcept {
    unsigned __int128 sum = 0;
    for (const Run& run : runs) {
        sum += static_cast<unsigned __int128>(run.bytes) * run.repeat;
        if (sum > UINT64_MAX) return UINT64_MAX;
    }
    return static_cast<std::uint64_t>(sum);
}

}  // namespace coop::rma
