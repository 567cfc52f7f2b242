// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that is registered on every HCA, for fragments and receive buffers, and pools
// of fragments and of RDMA operations. The pools grow in chunks and do not shrink while
// the module exists.
//
// Threading: under Module::lock.
#pragma once

#include <memory>
#include <vector>

#include "coop/node/retry.h"
#include "coop/rail/verbs/hcas.h"
#include "work.h"

namespace coop::ib {

// Memory registered on several HCAs. The keys are indexed by position in `hcas`.
class RegisteredMemory {
public:
    // `access`: a combination of ibv_access_flags. Returns false if there is no memory or it cannot be registered
    // (errno is set).
    bool make(std::size_t bytes, std::span<rail::Hca* const> hcas, int access = IBV_ACCESS_LOCAL_WRITE);
    ~RegisteredMemory();
    RegisteredMemory() = default;
    RegisteredMemory(const RegisteredMemory&) = delete;
    RegisteredMemory& operator=(const RegisteredMemory&) = delete;

    std::byte* data() const { return data_; }
    std::uint32_t lkey(std::uint32_t hca) const { return lkeys_[hca]; }
    std::uint32_t rkey(std::uint32_t hca) const { return regions_[hca]->rkey; }

private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::vector<ibv_mr*> regions_;
    std::uint32_t lkeys_[kMaxHcas] = {};
};

struct FragmentChunk {
    RegisteredMemory memory;
    std::vector<Fragment> fragments;
};

class FragmentPool {
public:
    static constexpr std::size_t kPerChunk = 64, kLongPerChunk = 8;
    // Makes the first chunk. A long fragment has room for `long_bytes` bytes. Returns false if there is no memory or it
    // cannot be registered (errno is set).
    bool open(std::size_t bytes_each, std::size_t long_bytes, std::vector<rail::Hca*> hcas);
    Fragment* take() { return take(short_); }  // returns null if there is no memory
    Fragment* take_long();                     // the same; after a failure it does not try again for a while
    // A held fragment is free only after let_go().
    void give_back(Fragment& fragment);
    // The fragment is not held any more.
    void let_go(Fragment& fragment);
    void close();

private:
    // The fragments of one length.
    struct Shelf {
        std::size_t bytes_each = 0, per_chunk = 0;
        Fragment* free = nullptr;
    };

    Fragment* take(Shelf& shelf);
    bool grow(Shelf& shelf);

    std::vector<rail::Hca*> hcas_;
    std::vector<std::unique_ptr<FragmentChunk>> chunks_;
    Shelf short_, long_;
    node::Retry long_retry_;
};

class OpPool {
public:
    RdmaOp* take();
    void give_back(RdmaOp& op);
    void close();

private:
    std::vector<std::unique_ptr<RdmaOp[]>> chunks_;
    RdmaOp* free_ = nullptr;
};

struct HcaUse;
struct Inbox;
struct Rail;

// Where a message has arrived: a buffer of a receive queue, a slot of a ring, or a copy of an early message.
struct ReceiveBuffer {
    std::shared_ptr<RegisteredMemory> memory;  // registered memory that contains `data`
    std::byte* data = nullptr;                 // begins with the header
    Rail* rail = nullptr;                      // set if the HCA has no shared receive queue
    ibv_srq* srq = nullptr;
    Inbox* ring = nullptr;              // set for a slot
    std::uint32_t slot = 0;             // number of the slot
    std::uint32_t bytes = 0;            // bytes of header and message; valid for a filled slot and for a copy
    std::unique_ptr<std::byte[]> copy;  // of an early message, whose receive buffer was posted again
    HcaUse* held_by = nullptr;          // set while this holds an early message that the HCA counts
    ListNode due;                       // linked while the message waits to be handed on
};

}  // namespace coop::ib
