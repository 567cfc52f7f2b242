// SPDX-License-Identifier: BSD-3-Clause
//
// Load of the HCAs of a node: for each HCA the number of large operations, inside this node and to other nodes, that
// all processes together have posted and that are not complete. The numbers lie in the memory that the job's first
// process on the node shares. A process that could let an HCA copy inside the node reads them first. (Cooperative
// Rendezvous Protocols, section III: adaptive offload)
//
// Units: operations; an operation that is striped over several rails counts on the HCA of each. Threading: words are
// atomics, changed by all processes of the node. Errors: it is a peer's memory; whatever it holds, only numbers are
// read and changed. If a process dies its operations remain counted, but its death ends the job.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace coop::rndv {

struct HcaLoads {
    static constexpr std::size_t kMaxHcas = 16;  // further HCAs of a node are not counted

    // On a cache line of its own, because it changes with each operation.
    struct alignas(64) Hca {
        std::atomic<std::uint64_t> guid{0};  // 0: free
        std::atomic<std::uint32_t> operations{0};
    };
    std::array<Hca, kMaxHcas> all{};
};

// Returns the index of an HCA in `all`; the first call for an HCA assigns it. Returns nothing if all are taken.
inline std::optional<std::uint32_t> place_of(HcaLoads& loads, std::uint64_t guid) noexcept {
    if (guid == 0) return std::nullopt;
    for (std::uint32_t i = 0; i < HcaLoads::kMaxHcas; ++i) {
        std::uint64_t seen = loads.all[i].guid.load(std::memory_order_acquire);
        if (seen == 0 && loads.all[i].guid.compare_exchange_strong(seen, guid, std::memory_order_acq_rel)) return i;
        if (seen == guid) return i;
    }
    return std::nullopt;
}

inline void count_posted(HcaLoads& loads, std::uint32_t place) noexcept {
    loads.all[place].operations.fetch_add(1, std::memory_order_relaxed);
}

// Stops at zero: damaged memory must not make an HCA look busy for ever.
inline void count_completed(HcaLoads& loads, std::uint32_t place) noexcept {
    std::atomic<std::uint32_t>& operations = loads.all[place].operations;
    std::uint32_t now = operations.load(std::memory_order_relaxed);
    while (now > 0 && !operations.compare_exchange_weak(now, now - 1, std::memory_order_relaxed)) {
    }
}

inline std::uint32_t operations_on(const HcaLoads& loads, std::uint32_t place) noexcept {
    return loads.all[place].operations.load(std::memory_order_relaxed);
}

}  // namespace coop::rndv
