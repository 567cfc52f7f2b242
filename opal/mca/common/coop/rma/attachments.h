// SPDX-License-Identifier: BSD-3-Clause
//
// The memory that a process has attached to a window of dynamic memory.
//
// Units: bytes. Threading: the caller's lock. Errors: attach() may throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace coop::rma {

class Attachments {
public:
    // False: it overlaps attached memory, or ends beyond the address space. 0 bytes may be attached any number of times
    // at the same address, and must be detached as often.
    bool attach(std::uint64_t base, std::uint64_t bytes) {
        if (bytes > UINT64_MAX - base) return false;
        if (bytes == 0) return ++empty_[base] > 0;
        const auto after = regions_.lower_bound(base);
        if (after != regions_.end() && after->first - base < bytes) return false;
        if (after != regions_.begin()) {
            const auto before = std::prev(after);
            if (base - before->first < before->second) return false;
        }
        regions_.emplace_hint(after, base, bytes);
        return true;
    }
    // False: no attached memory starts there.
    bool detach(std::uint64_t base) noexcept {
        if (regions_.erase(base) > 0) return true;
        const auto found = empty_.find(base);
        if (found == empty_.end()) return false;
        if (--found->second == 0) empty_.erase(found);
        return true;
    }
    // Whether all bytes are attached. They may span adjacent regions.
    bool covers(std::uint64_t address, std::uint64_t bytes) const noexcept {
        while (bytes > 0) {
            auto found = regions_.upper_bound(address);
            if (found == regions_.begin()) return false;
            --found;
            const std::uint64_t inside = address - found->first;
            if (inside >= found->second) return false;
            const std::uint64_t here = found->second - inside;
            if (bytes <= here) return true;
            address += here;
            bytes -= here;
        }
        return true;
    }
    std::size_t size() const noexcept { return regions_.size(); }

private:
    std::map<std::uint64_t, std::uint64_t> regions_;  // bytes by base
    std::map<std::uint64_t, std::uint64_t> empty_;    // number of empty ones by base
};

}  // namespace coop::rma
