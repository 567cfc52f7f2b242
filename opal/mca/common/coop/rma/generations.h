// SPDX-License-Identifier: BSD-3-Clause
//
// Which operations a flush waits for: those that began before it, not those that other threads begin meanwhile. Each
// operation belongs to the generation that was open when it began; a flush closes the open generation, and waits for it
// and all earlier ones.
//
// Threading: the caller's lock. Errors: none.
#pragma once

#include <array>
#include <cstdint>

namespace coop::rma {

class Generations {
public:
    using Number = std::uint32_t;

    explicit Generations(Number first = 1) noexcept : open_(first), oldest_(first) {}

    // An operation begins, or ends. end() returns false if no operation of this generation is under way.
    Number begin() noexcept {
        ++pending(open_);
        return open_;
    }
    bool end(Number generation) noexcept {
        if (open_ - generation >= kKept || pending(generation) == 0) return false;
        --pending(generation);
        advance();
        return true;
    }

    // A flush begins. Returns the generation that it waits for. If too many flushes are under way, the generation stays
    // open until the oldest one is over; then this flush waits for some later operations, too.
    Number close() noexcept {
        if (pending(open_) == 0) return open_ - 1;
        const Number closed = open_;
        must_close_ = true;
        advance();
        return closed;
    }
    // Whether all operations of the generation and of earlier ones have ended. Once over, it stays over.
    bool is_over(Number generation) const noexcept { return static_cast<std::int32_t>(oldest_ - generation) > 0; }
    bool idle() const noexcept { return oldest_ == open_ && counts_[open_ % kKept] == 0; }

private:
    static constexpr Number kKept = 8;
    // Skips generations that are over, and closes the open one if a flush waits for that and fewer than kKept are in
    // use.
    void advance() noexcept {
        while (oldest_ != open_ && pending(oldest_) == 0) ++oldest_;
        if (!must_close_ || open_ - oldest_ == kKept - 1) return;
        must_close_ = false;
        ++open_;
        while (oldest_ != open_ && pending(oldest_) == 0) ++oldest_;
    }
    std::uint32_t& pending(Number generation) noexcept { return counts_[generation % kKept]; }

    Number open_, oldest_;
    bool must_close_ = false;  // a flush waits for the open generation
    std::array<std::uint32_t, kKept> counts_{};
};

}  // namespace coop::rma
