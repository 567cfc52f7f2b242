// SPDX-License-Identifier: BSD-3-Clause
//
// Keys, and copies between processes. The sender executes a message: it looks up
// the keys in the shared table and copies with process_vm_readv/writev, which
// report an invalid address as an error instead of a fault.
//
// The low byte of a key is the region's tag, even in an lkey and odd in an rkey;
// the rest is its index. InfiniBand 10.6: protection domain, access and bounds.
#pragma once

#include <span>

#include "fabric/shm/segment.h"

namespace coop::fabric {

inline std::uint32_t lkey_of(std::uint32_t index, const MemoryRegion& region) {
    return index << 8 | (region.tag & 0xfe);
}
inline std::uint32_t rkey_of(std::uint32_t index, const MemoryRegion& region) {
    return index << 8 | (region.tag & 0xfe) | 1;
}
inline std::uint32_t region_of_key(std::uint32_t key) { return key >> 8; }

struct Range {
    std::uint64_t address = 0;  // in the owning process
    std::uint64_t bytes = 0;
    std::uint32_t region = kNone;
};

enum class KeyError { none, key, domain, access, bounds, stale };

// Finds the `bytes` bytes at `address` in the region of `key`, and sets `range` to them. The region must be on `hca`,
// belong to the protection domain `pd`, and permit `access`.
KeyError look_up(const Segment& subnet, std::uint32_t hca, std::uint32_t pd, std::uint32_t key, std::uint64_t address,
                 std::uint64_t bytes, std::uint32_t access, Range& range) noexcept;

// While this exists, deregistration of `region` waits (Process::at_work).
class AtWork {
public:
    AtWork(const Segment& subnet, std::uint32_t process, std::uint32_t region) noexcept;
    ~AtWork();
    AtWork(const AtWork&) = delete;
    AtWork& operator=(const AtWork&) = delete;

private:
    Shared<std::uint32_t>* mark_;
};
// Waits until no thread copies to or from the region; it must be out of use already.
void wait_until_idle(const Segment& subnet, std::uint32_t region) noexcept;

enum class CopyResult { done, local_fault, remote_fault, gone };

// Both sides hold the same number of bytes. The last byte of the last remote range is written last, because receivers
// poll on it.
CopyResult copy_to(std::int32_t pid, std::span<const Range> local, std::span<const Range> remote) noexcept;
CopyResult copy_from(std::int32_t pid, std::span<const Range> local, std::span<const Range> remote) noexcept;

}  // namespace coop::fabric
