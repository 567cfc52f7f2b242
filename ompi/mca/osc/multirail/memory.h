// SPDX-License-Identifier: BSD-3-Clause
//
// The memory of a window: where each process's part is, and how this process reaches it.
//
// Units: bytes. Threading: set up by one thread; read only afterwards. Ownership: WindowMemory owns what it allocated and
// registered.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "compat.h"
#include "coop/node/segment.h"

namespace coop::osc {

constexpr std::size_t kMaxHandleBytes = 32;

// What this process knows of the part of another one.
struct Card {
    std::uint64_t base = 0;  // address in its process
    std::uint64_t bytes = 0;
    std::byte* mapped = nullptr;  // here; valid if is_mapped
    std::uint32_t unit = 1;
    bool is_mapped = false;
    bool registered = false;  // handle is valid
    alignas(8) std::byte handle[kMaxHandleBytes]{};
};

// The locks of a part in shared memory, which the CPUs of the node use.
struct alignas(64) SharedLocks {
    // The lock of passive synchronization (passive.cc): tickets, whose turn it is, and the holders: kExclusive, or the
    // number of shared ones.
    static constexpr std::uint64_t kExclusive = std::uint64_t{1} << 63;
    std::atomic<std::uint64_t> next{0}, turn{0}, holders{0};
    // Held for the time of one accumulate.
    std::atomic<std::uint32_t> accumulate{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// What one process wants.
struct Share {
    std::uint64_t bytes;
    std::uint32_t leader;  // the first rank of its node
};

// Where the parts of a node lie in the segment: first the locks, then the parts.
class SegmentPlan {
public:
    // `members` in ascending order. Contiguous: a part begins where the previous one ends.
    SegmentPlan(const std::vector<Share>& shares, std::uint32_t leader, bool contiguous);
    std::uint64_t bytes() const noexcept { return bytes_; }
    const std::vector<std::uint32_t>& members() const noexcept { return members_; }
    std::uint64_t offset_of(std::size_t member) const noexcept { return offsets_[member]; }
    bool overflows() const noexcept { return overflows_; }

private:
    std::vector<std::uint32_t> members_;
    std::vector<std::uint64_t> offsets_;
    std::uint64_t bytes_ = 0;
    bool overflows_ = false;
};

struct WindowMemory {
    node::Segment segment;
    std::vector<SharedLocks*> locks;  // by rank; null: not of this node. Empty: no segment
    std::unique_ptr<std::byte[], void (*)(void*)> own{nullptr, std::free};
    // The registration of the own part for RDMA, and the transport that has it; null: none.
    mca_btl_base_module_t* rdma = nullptr;
    mca_btl_base_registration_handle_t* handle = nullptr;

    WindowMemory() = default;
    ~WindowMemory() { deregister(); }
    WindowMemory(const WindowMemory&) = delete;
    WindowMemory& operator=(const WindowMemory&) = delete;

    // False: no memory. Memory of no bytes has an address, too.
    bool allocate(std::uint64_t bytes) noexcept;
    void register_with(mca_btl_base_module_t& btl, void* base, std::uint64_t bytes) noexcept;
    void deregister() noexcept;
};

}  // namespace coop::osc
