// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of the module that is registered on every HCA: fragments to send, and
// receive buffers; and records of RDMA operations. Grows in chunks, never
// shrinks while the module lives.
//
// Threading: under Module::lock.
#pragma once

#include <memory>
#include <vector>

#include "coop/rail/verbs/hcas.h"
#include "work.h"

namespace coop::ib {

// Bytes registered on one HCA after the other, by their position in the module.
class RegisteredMemory {
public:
    // `access`: a combination of ibv_access_flags. False: no memory, or it cannot be registered (errno says why).
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
    static constexpr std::size_t kPerChunk = 64;
    // With a first chunk. False: no memory, or it cannot be registered (errno says why).
    bool open(std::size_t bytes_each, std::vector<rail::Hca*> hcas);
    Fragment* take();  // null: no memory
    void give_back(Fragment& fragment);
    void close();

private:
    bool grow();
    std::size_t bytes_each_ = 0;
    std::vector<rail::Hca*> hcas_;
    std::vector<std::unique_ptr<FragmentChunk>> chunks_;
    Fragment* free_ = nullptr;
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
    std::shared_ptr<RegisteredMemory> memory;  // of one HCA
    std::byte* data = nullptr;                 // its header
    Rail* rail = nullptr;                      // without a shared receive queue
    ibv_srq* srq = nullptr;
    Inbox* ring = nullptr;              // of a slot
    std::uint32_t slot = 0;             // its number
    std::uint32_t bytes = 0;            // of the message with its header: in a slot that holds one, or of a copy
    std::unique_ptr<std::byte[]> copy;  // of an early message, whose own buffer serves again
    HcaUse* held_by = nullptr;          // an early message is in it, and counts there
    ListNode due;                       // while its message waits to be handed on
};

}  // namespace coop::ib
