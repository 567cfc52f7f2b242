// SPDX-License-Identifier: BSD-3-Clause
//
// Automatic path migration of a queue pair, over verbs (InfiniBand 17.2.8). path/migration.h decides when.
//
// Threading: as the verbs. Errors: an errno, or nothing.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "coop/path/pairing.h"
#include "coop/path/port.h"
#include "coop/rail/verbs/address.h"

namespace coop::rail {

// One path, as a queue pair has it.
struct AlternatePath {
    ibv_ah_attr address{};
    std::uint16_t pkey_index = 0;
    std::uint8_t timeout = 0;  // as RcTimes::timeout

    std::uint8_t port() const noexcept { return address.port_num; }
};

AlternatePath alternate_path(const path::PortRecord& local, const path::PortRecord& remote,
                             const path::PathChoice& path, std::uint8_t timeout,
                             const AddressOptions& options) noexcept;

// Loads the path and asks for arming. Returns 0 or an errno; the queue pair then works on without an alternate path.
int load_alternate(ibv_qp* qp, const AlternatePath& path) noexcept;

// Moves an armed queue pair to its alternate path. Returns 0 or an errno.
int force_migration(ibv_qp* qp) noexcept;

struct SeenMigration {
    ibv_mig_state state;
    std::optional<std::size_t> path;  // the place in the ring; nothing: the queue pair names another path
};
// Returns nothing if the queue pair cannot be queried.
std::optional<SeenMigration> see_migration(ibv_qp* qp, std::span<const AlternatePath> ring) noexcept;

}  // namespace coop::rail
