// SPDX-License-Identifier: BSD-3-Clause
//
// Which parts of a region of memory are taken: communicators take ranges of one
// registered region and give them back. First fit; free neighbours are joined, so that
// a region without taken ranges is as good as new.
//
// Units: bytes. Pure. Threading: the caller locks. Errors: none; std::bad_alloc passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "coop/base/export.h"

namespace coop::coll {

class Ranges {
public:
    static constexpr std::uint64_t kUnit = 64;  // ranges begin at cache lines

    COOP_EXPORT explicit Ranges(std::uint64_t bytes);

    // The offset of a range of this length, at least 1; nothing if there is no room.
    COOP_EXPORT std::optional<std::uint64_t> take(std::uint64_t bytes);
    // Takes the arguments and results of take().
    COOP_EXPORT void give_back(std::uint64_t offset, std::uint64_t bytes);

    std::uint64_t taken_bytes() const noexcept { return taken_bytes_; }

private:
    std::map<std::uint64_t, std::uint64_t> free_;  // length by offset
    std::uint64_t taken_bytes_ = 0;
};

}  // namespace coop::coll
