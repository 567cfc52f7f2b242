// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of the program that a transport has refused to register, for example because there is none between blocks with
// gaps, or because too much memory is locked. Asking for it in each call would take a system call each time, and may push
// other registrations out of the transport's cache. So the next calls with the same memory, or more around it, do not ask.
// Later ones do, since the reason may have gone.
//
// Units: addresses, bytes. Threading: none. Errors: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace coop::rma {

class Refusals {
public:
    static constexpr std::size_t kMost = 16;  // of ranges; a further one replaces the oldest
    static constexpr std::uint32_t kSkips = 255;

    void add(std::uint64_t first, std::uint64_t span) noexcept {
        ranges_[next_++ % kMost] = {first, span, kSkips};
        any_ = true;
    }
    // Whether this call should not ask for [first, first + span). Each refusal skips kSkips calls.
    bool skips(std::uint64_t first, std::uint64_t span) noexcept {
        if (!any_) [[likely]]
            return false;
        for (Range& each : ranges_) {
            const bool has_it = each.left > 0 && each.first >= first && each.first - first <= span &&
                                each.span <= span - (each.first - first);
            if (!has_it) continue;
            --each.left;
            return true;
        }
        return false;
    }

private:
    struct Range {
        std::uint64_t first = 0, span = 0;
        std::uint32_t left = 0;  // calls to skip; 0: it is forgotten
    };

    std::array<Range, kMost> ranges_{};
    std::size_t next_ = 0;
    bool any_ = false;
};

}  // namespace coop::rma
