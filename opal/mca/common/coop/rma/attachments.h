// SPDX-License-Identifier: BSD-3-Clause
//
// The memory that a process has attached to a window of dynamic memory.
//
// The regions are an array in the order of their addresses, so that a process of the same node can copy it and ask
// covers() itself.
//
// Units: bytes. Threading: the caller's lock. Errors: attach() may throw std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "coop/rma/runs.h"

namespace coop::rma {

struct Region {
    std::uint64_t base, bytes;
};
static_assert(sizeof(Region) == 16);

// Whether all bytes are in regions, which are in the order of their addresses. Regions that follow each other count as one.
inline bool covers(std::span<const Region> regions, std::uint64_t address, std::uint64_t bytes) noexcept {
    while (bytes > 0) {
        const auto after = std::upper_bound(regions.begin(), regions.end(), address,
                                            [](std::uint64_t at, const Region& region) { return at < region.base; });
        if (after == regions.begin()) return false;
        const Region& found = *std::prev(after);
        const std::uint64_t inside = address - found.base;
        if (inside >= found.bytes) return false;
        const std::uint64_t here = found.bytes - inside;
        if (bytes <= here) return true;
        address += here;
        bytes -= here;
    }
    return true;
}

// Whether all blocks are inside of the address space and in regions.
inline bool are_attached(std::span<const Run> runs, std::span<const Region> regions) noexcept {
    if (!are_inside(runs, UINT64_MAX)) return false;
    for (const Run& run : runs) {
        // In most cases all is attached, from the first block to the last.
        const std::uint64_t way = static_cast<std::uint64_t>(run.stride < 0 ? -run.stride : run.stride) *
                                  (run.repeat - 1);
        if (covers(regions, run.stride < 0 ? run.offset - way : run.offset, way + run.bytes)) continue;
        for (std::uint64_t i = 0; i < run.repeat; ++i)
            if (!covers(regions, run.offset + static_cast<std::uint64_t>(run.stride) * i, run.bytes)) return false;
    }
    return true;
}

// Whether everything from the lowest block to the end of the highest one is attached. Precondition: are_attached(), and so the
// blocks are inside of the address space.
inline bool is_all_attached(std::span<const Run> runs, std::span<const Region> regions) noexcept {
    std::uint64_t low = UINT64_MAX, end = 0;
    for (const Run& run : runs) {
        const std::uint64_t last = run.offset + static_cast<std::uint64_t>(run.stride) * (run.repeat - 1);
        low = std::min({low, run.offset, last});
        end = std::max(end, std::max(run.offset, last) + run.bytes);
    }
    return runs.empty() || covers(regions, low, end - low);
}

class Attachments {
public:
    // False: it overlaps attached memory, or ends beyond the address space. 0 bytes may be attached any number of times
    // at the same address, and must be detached as often.
    bool attach(std::uint64_t base, std::uint64_t bytes) {
        if (bytes > UINT64_MAX - base) return false;
        if (bytes == 0) return ++empty_[base] > 0;
        const auto after = first_from(base);
        if (after != regions_.end() && after->base - base < bytes) return false;
        if (after != regions_.begin()) {
            const Region& before = *std::prev(after);
            if (base - before.base < before.bytes) return false;
        }
        regions_.insert(after, {base, bytes});
        return true;
    }
    // False: no attached memory starts there.
    bool detach(std::uint64_t base) noexcept {
        const auto region = first_from(base);
        if (region != regions_.end() && region->base == base) {
            regions_.erase(region);
            return true;
        }
        const auto found = empty_.find(base);
        if (found == empty_.end()) return false;
        if (--found->second == 0) empty_.erase(found);
        return true;
    }
    // Whether all bytes are attached. They may span adjacent regions.
    bool covers(std::uint64_t address, std::uint64_t bytes) const noexcept {
        return rma::covers(regions_, address, bytes);
    }
    std::size_t size() const noexcept { return regions_.size(); }
    // Valid until the next call of attach() or detach().
    std::span<const Region> regions() const noexcept { return regions_; }

private:
    std::vector<Region>::iterator first_from(std::uint64_t base) noexcept {
        return std::lower_bound(regions_.begin(), regions_.end(), base,
                                [](const Region& region, std::uint64_t at) { return region.base < at; });
    }

    std::vector<Region> regions_;                   // in the order of their bases
    std::map<std::uint64_t, std::uint64_t> empty_;  // number of empty ones by base
};

}  // namespace coop::rma
