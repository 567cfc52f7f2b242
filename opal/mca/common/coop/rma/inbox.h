// SPDX-License-Identifier: BSD-3-Clause
//
// Restores the order of the frames of one origin: threads of the origin, or several links of a transport, may let a
// frame overtake another one.
//
// Threading: the caller's lock. Errors: on_frame() returns false for a number that is not possible, and may throw
// std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace coop::rma {

class Inbox {
public:
    // Frames are assumed to arrive less than this many numbers early; otherwise on_frame() returns false.
    static constexpr std::uint32_t kMostAhead = 1 << 16;

    // `first` is the number of the first frame.
    explicit Inbox(std::uint32_t first = 0) noexcept : next_(first) {}

    // Calls execute(frame) for this frame and those that waited for it, in order; keeps a copy of one that comes too
    // early. Returns false if the frame came before or is too far ahead.
    template <class F>
    bool on_frame(std::uint32_t sequence, std::span<const std::byte> frame, F&& execute) {
        const std::uint32_t ahead = sequence - next_;
        if (ahead >= kMostAhead) return false;
        if (ahead > 0) return held_.try_emplace(sequence, frame.begin(), frame.end()).second;
        ++next_;
        execute(frame);
        for (auto found = held_.find(next_); found != held_.end(); found = held_.find(next_)) {
            const std::vector<std::byte> kept = std::move(found->second);
            held_.erase(found);
            ++next_;
            execute(std::span<const std::byte>(kept));
        }
        return true;
    }

    std::size_t held() const noexcept { return held_.size(); }

private:
    std::uint32_t next_;
    std::map<std::uint32_t, std::vector<std::byte>> held_;
};

}  // namespace coop::rma
