// SPDX-License-Identifier: BSD-3-Clause
//
// A cache of the address handles of a UD queue pair: the most recently used ones, up to a limit. A handle in
// use by a send is never destroyed.
//
// Threading: none; the owner's lock. Ownership: owns the handles. Errors: null.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

#include "coop/path/port.h"
#include "coop/rail/verbs/address.h"
#include "coop/rail/verbs/objects.h"

namespace coop::rail {

class AddressHandles {
public:
    struct Handle {
        Ah ah;
        std::uint32_t in_flight = 0;  // sends that use it; counted by the caller
        std::uint64_t last_use = 0;
    };

    AddressHandles(ibv_pd* pd, std::size_t most, const AddressOptions& options) noexcept
        : pd_(pd), most_(most), options_(options) {}

    // Returns null if the device cannot create a handle, if the own port is not active, or if all cached ones are in use and the limit is
    // reached.
    Handle* find_or_make(const path::PortRecord& local, const path::PortRecord& remote);
    std::size_t size() const noexcept { return handles_.size(); }

private:
    using Key = std::tuple<std::uint16_t, path::Gid, std::uint8_t>;  // LID and GID of a port, and the own GID's index

    bool make_room();

    ibv_pd* pd_;
    std::size_t most_;
    AddressOptions options_;
    std::uint64_t uses_ = 0;
    std::map<Key, Handle> handles_;  // std::map does not move its elements
};

}  // namespace coop::rail
