// SPDX-License-Identifier: BSD-3-Clause
//
// The address handles that a UD queue pair has at hand: of the peers it sent to
// last, at most a given number. One in use by a send is never let go.
//
// Threading: none; the owner's lock. Ownership: owns the handles. Errors: null.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "coop/path/port.h"
#include "coop/rail/verbs/address.h"
#include "coop/rail/verbs/objects.h"

namespace coop::rail {

class AddressHandles {
public:
    struct Handle {
        Ah ah;
        std::uint32_t in_flight = 0;  // sends that use it; the owner counts
        std::uint64_t last_use = 0;
    };

    AddressHandles(ibv_pd* pd, std::size_t most, const AddressOptions& options) noexcept : pd_(pd), most_(most), options_(options) {}

    // Null if the device makes none, or all that it may have are in use.
    Handle* find_or_make(const path::PortRecord& local, const path::PortRecord& remote);
    std::size_t size() const noexcept { return handles_.size(); }

private:
    using Key = std::pair<std::uint16_t, path::Gid>;  // of a port of InfiniBand or of Ethernet

    bool make_room();

    ibv_pd* pd_;
    std::size_t most_;
    AddressOptions options_;
    std::uint64_t uses_ = 0;
    std::map<Key, Handle> handles_;  // nodes do not move
};

}  // namespace coop::rail
