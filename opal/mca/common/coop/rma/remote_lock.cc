// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rma/remote_lock.h"

namespace coop::rma {
namespace {

using What = AtomicStep::What;

constexpr AtomicStep add(std::uint64_t operand) noexcept { return {.what = What::kAdd, .operand = operand}; }
constexpr AtomicStep swap(std::uint64_t expected, std::uint64_t value) noexcept {
    return {.what = What::kSwap, .operand = expected, .value = value};
}
constexpr AtomicStep read_again() noexcept { return {.what = What::kAdd, .pause = true}; }

}  // namespace

AtomicStep RemoteLock::first() const noexcept { return state_ == State::kTry ? swap(0, kExclusive) : add(1); }

AtomicStep RemoteLock::held() noexcept {
    state_ = State::kHeld;
    return {};
}

AtomicStep RemoteLock::count() noexcept {
    state_ = State::kCount;
    polite_ = false;
    return add(1);
}

AtomicStep RemoteLock::enter_or_wait(std::uint64_t word) noexcept {
    if (!is_free(word)) {
        state_ = State::kWait;
        return read_again();
    }
    state_ = State::kEnter;
    expected_ = word;
    return swap(word, (word - kWaiting) | kExclusive);
}

AtomicStep RemoteLock::next(std::uint64_t old) noexcept {
    switch (state_) {
    case State::kCount:
        if (is_exclusive(old)) {
            state_ = State::kBehind;
            return read_again();
        }
        if (waiting(old) == 0 || !polite_) return held();
        state_ = State::kBackOut;
        return add(~std::uint64_t{0});
    case State::kBehind: return is_exclusive(old) ? read_again() : held();
    case State::kBackOut:
        state_ = State::kLetPass;
        reads_ = 0;
        return read_again();
    case State::kLetPass:
        // The exclusive request has got the lock: wait behind it, as a shared holder to come.
        if (is_exclusive(old) || waiting(old) == 0 || ++reads_ == kPatience) return count();
        return read_again();
    case State::kTry:
        if (old == 0) return held();
        state_ = State::kAnnounce;
        return add(kWaiting);
    case State::kAnnounce: return enter_or_wait(old + kWaiting);
    case State::kWait: return enter_or_wait(old);
    case State::kEnter: return old == expected_ ? held() : enter_or_wait(old);
    case State::kHeld: break;
    }
    return {};
}

}  // namespace coop::rma
