// SPDX-License-Identifier: BSD-3-Clause
//
// A parameter value that may change at run time: one thread writes it while others read it. A reader sees the
// old value or the new one; writes to two settings may become visible in any order.
//
// Threading: any thread at any time. A read costs the same as that of a plain integer. Ownership, errors: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace coop {

class Setting {
public:
    constexpr Setting(std::int64_t value = 0) noexcept : value_(value) {}
    Setting(const Setting& other) noexcept : value_(other) {}
    Setting& operator=(const Setting& other) noexcept { return *this = static_cast<std::int64_t>(other); }
    Setting& operator=(std::int64_t value) noexcept {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    operator std::int64_t() const noexcept { return value_.load(std::memory_order_relaxed); }
    template <class Choice>
    requires std::is_enum_v<Choice>
    explicit operator Choice() const noexcept { return static_cast<Choice>(static_cast<std::int64_t>(*this)); }

private:
    std::atomic<std::int64_t> value_;
};
// Open MPI accesses a Setting as a 64-bit integer, through its address.
static_assert(sizeof(Setting) == sizeof(std::int64_t) && std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace coop
