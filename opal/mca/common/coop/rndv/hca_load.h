// SPDX-License-Identifier: BSD-3-Clause
//
// How busy the HCAs of a node are: of each, how many large operations all of its
// processes together have posted and not seen complete, to other nodes and inside
// this one. Part of the load board of one process, the first of the job on the
// node. Who could let an HCA copy inside the node looks here first.
// (Cooperative Rendezvous Protocols, section III: adaptive offload)
//
// Units: operations; an operation that goes over several rails counts on the HCA
// of each. Threading: words are atomics, changed by all processes of the node.
// Errors: it is a peer's memory: whatever it holds, a number is read or changed. A
// process that dies leaves its operations behind; that ends the job.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace coop::rndv {

struct HcaLoads {
    static constexpr std::size_t kMost = 16;  // HCAs of a node; more are not counted

    // A line of its own: it changes with each operation.
    struct alignas(64) Hca {
        std::atomic<std::uint64_t> guid{0};  // 0: free
        std::atomic<std::uint32_t> operations{0};
    };
    std::array<Hca, kMost> all{};
};

// The place of an HCA, taken by whoever asks for it first; nothing: there is none left.
inline std::optional<std::uint32_t> place_of(HcaLoads& loads, std::uint64_t guid) noexcept {
    if (guid == 0) return std::nullopt;
    for (std::uint32_t i = 0; i < HcaLoads::kMost; ++i) {
        std::uint64_t seen = loads.all[i].guid.load(std::memory_order_acquire);
        if (seen == 0 && loads.all[i].guid.compare_exchange_strong(seen, guid, std::memory_order_acq_rel)) return i;
        if (seen == guid) return i;
    }
    return std::nullopt;
}

inline void count_posted(HcaLoads& loads, std::uint32_t place) noexcept { loads.all[place].operations.fetch_add(1, std::memory_order_relaxed); }

// Never below zero: a damaged board must not make an HCA look busy for ever.
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
