// SPDX-License-Identifier: BSD-3-Clause
//
// The memory of a window: where each process's part is, and how this process reaches it.
//
// Units: bytes. Threading: set up by one thread and read only afterwards, except for the words of locks and results.
// Ownership: WindowMemory owns what it allocated and registered.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "compat.h"
#include "coop/node/segment.h"
#include "coop/rma/node_lock.h"
#include "coop/rma/node_sync.h"

namespace coop::osc {

constexpr std::size_t kMaxHandleBytes = 32;

// What this process knows of the part of another one.
struct Card {
    std::uint64_t base = 0;  // address in its process
    std::uint64_t bytes = 0;
    std::byte* mapped = nullptr;  // here; valid if is_mapped
    std::uint64_t control = 0;    // address of its ControlWords
    std::uint32_t unit = 1;
    bool is_mapped = false;
    bool registered = false;  // handle is valid, and the transport for RDMA leads there
    bool near = false;        // itself, or reached by another transport than that of RDMA (vader)
    bool copies = false;      // this process can read and write its memory by CMA (cma.cc)
    bool handles = false;     // its asynchronous handler executes frames while it computes
    std::int32_t pid = 0;     // valid if `copies`
    alignas(8) std::byte handle[kMaxHandleBytes]{};
    alignas(8) std::byte control_handle[kMaxHandleBytes]{};
};

// The words of a part in shared memory, which the CPUs of the node use.
struct alignas(64) SharedLocks {
    rma::NodeLock lock;  // of passive synchronization (passive.cc)
    // Held while an accumulate changes up to kMostUnderLock bytes (mapped.h).
    std::atomic<std::uint32_t> accumulate{0};
    // Where the array of attached regions is in the owner's memory, if the window is dynamic. The version is odd while the
    // owner changes them.
    std::atomic<std::uint64_t> attached_version{0}, attached_at{0}, attached_count{0};
};

// Registered words of one process, in windows that HCAs control: the locks of its part, and results. Only the HCA of
// this process changes the locks, for the origins. No CPU does, not even that of the owner, because atomic operations
// of a CPU and of an HCA are not atomic with each other. `results`: where the results of this process's own atomic
// operations arrive.
struct ControlWords {
    static constexpr std::uint32_t kResults = 240;
    alignas(64) std::uint64_t lock = 0;        // of passive synchronization (coop/rma/remote_lock.h)
    alignas(64) std::uint64_t accumulate = 0;  // held exclusively while an accumulate changes up to 64 KiB (remote.cc)
    alignas(64) std::uint64_t results[kResults]{};
};

// The memory that one process wants in the segment.
struct Share {
    std::uint64_t bytes;
    std::uint32_t leader;  // the first rank of its node
};

// The layout of a node's shared segment: first the locks, then the words of rma::NodeSync, then the parts of the
// processes.
class SegmentPlan {
public:
    // `members` in ascending order. Contiguous: a part begins where the previous one ends.
    SegmentPlan(const std::vector<Share>& shares, std::uint32_t leader, bool contiguous);
    std::uint64_t bytes() const noexcept { return bytes_; }
    const std::vector<std::uint32_t>& members() const noexcept { return members_; }
    std::uint64_t sync_offset() const noexcept { return members_.size() * sizeof(SharedLocks); }  // of rma::NodeSync
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
    std::byte* sync = nullptr;        // rma::NodeSync of this node; valid if there is a segment
    std::unique_ptr<std::byte[], void (*)(void*)> own{nullptr, std::free};
    // The registration of the own part for RDMA, and the transport that has it; null: none.
    mca_btl_base_module_t* rdma = nullptr;
    mca_btl_base_registration_handle_t* handle = nullptr;
    std::unique_ptr<ControlWords> control;  // null: no HCA has them
    mca_btl_base_registration_handle_t* control_handle = nullptr;

    WindowMemory() = default;
    ~WindowMemory() { deregister(); }
    WindowMemory(const WindowMemory&) = delete;
    WindowMemory& operator=(const WindowMemory&) = delete;

    // False: no memory. For 0 bytes, it allocates an address all the same.
    bool allocate(std::uint64_t bytes) noexcept;
    void register_with(mca_btl_base_module_t& btl, void* base, std::uint64_t bytes) noexcept;
    // False: the transport refuses to register the words.
    bool make_control(mca_btl_base_module_t& btl);
    void deregister() noexcept;
};

}  // namespace coop::osc
