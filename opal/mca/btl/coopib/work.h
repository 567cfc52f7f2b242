// SPDX-License-Identifier: BSD-3-Clause
//
// Requests for rails: a fragment to send, or a stripe of an RDMA operation. Each is
// one work request. It waits on its rail while the send queue is full, or while the
// queue pair may not have another read outstanding.
//
//     Fragment   a descriptor of Open MPI with its buffer, in memory that is
//                registered on every HCA
//     mark       of a rail: the one in many inline sends that asks for a completion
//     RdmaOp     a put, get or atomic operation of the upper layer; it is
//                complete when all its stripes are
#pragma once

#include <infiniband/verbs.h>

#include "compat.h"
#include "coop/base/list.h"
#include "coop/extension/btl_extension.h"
#include "coop/rail/rail.h"
#include "coop/sched/begun.h"
#include "coop/sched/marker.h"
#include "coop/sched/schedule.h"
#include "coop/sched/stripe_filter.h"
#include "wire.h"

// As it travels: the key of the region on each HCA of its owner.
struct mca_btl_base_registration_handle_t {
    std::uint32_t rkey[coop::ib::kMostRkeys];
};

namespace coop::ib {

constexpr std::size_t kMaxHcas = kMostRkeys;
using HcaMask = std::uint8_t;  // bit i: HCA i
static_assert(kMaxHcas == 8 * sizeof(HcaMask));
static_assert(sizeof(mca_btl_base_registration_handle_t) == 4 * kMaxHcas);

using Endpoint = mca_btl_base_endpoint_t;

using rail::WorkKind;

// As coop/rail/rail.h wants it.
struct Work {
    ListNode node;
    Endpoint* endpoint = nullptr;
    std::uint64_t posted_ns =
        sched::kNotMeasured;  // of a stripe: when its operation was cut, if the scheduler measures that
    std::uint32_t bytes = 0;  // of a message with its header, or of a stripe
    sched::SequenceNumber psn = 0;
    WorkKind kind = WorkKind::kSend;
    sched::RailIndex rail = 0;
    bool ordered = false, wants_credit = false;
    bool has_token = false, waits = false;
};
using WorkList = List<Work, &Work::node>;

struct FragmentChunk;

struct Fragment {
    mca_btl_base_descriptor_t base{};      // first: the upper layer has only this
    mca_btl_base_segment_t segments[2]{};  // [1]: the user's memory, sent in place behind the buffer
    Work work;
    Header* header = nullptr;        // the data lie behind it, and room for the tail of a ring slot
    std::uint64_t ring_address = 0;  // of the peer: where it is written; 0: it is sent
    bool fenced = false;             // waits for the reads that were posted before it
    bool urgent = false;             // interrupts a receiver that has asked for that
    FragmentChunk* chunk = nullptr;
    Fragment* next_free = nullptr;

    static Fragment& of(mca_btl_base_descriptor_t* descriptor) { return *reinterpret_cast<Fragment*>(descriptor); }
    static Fragment& of(Work& w) {
        return *reinterpret_cast<Fragment*>(reinterpret_cast<char*>(&w) - offsetof(Fragment, work));
    }
    std::byte* data() const { return reinterpret_cast<std::byte*>(header + 1); }
};

struct RdmaOp;

struct StripeWork : Work {
    RdmaOp* op = nullptr;
    std::uint64_t local_address = 0, remote_address = 0;
    std::uint32_t stripe = 0;
    std::uint32_t load_place = 0;  // of the load board, counted from 1: it counts there; 0: it does not
};

struct RdmaOp {
    ListNode node;  // of those that wait for the connection, or to be cut
    sched::Begun begun;
    WorkKind kind = WorkKind::kPut;
    Endpoint* endpoint = nullptr;
    void* local_address = nullptr;
    std::uint64_t remote_address = 0;
    mca_btl_base_registration_handle_t* local_handle = nullptr;
    mca_btl_base_registration_handle_t remote{};
    std::uint64_t bytes = 0;
    bool swap = false;  // an atomic: compare and swap, else fetch and add
    std::uint64_t operand = 0, value = 0;
    mca_btl_base_rdma_completion_fn_t callback = nullptr;
    void* context = nullptr;
    void* data = nullptr;
    sched::Marker marker = sched::Marker::kNone;
    sched::SentStripes missing{1};
    Fragment* riders[sched::kMaxRails];  // of a get: behind the stripe of the same number, fenced
    bool has_riders = false;
    Rider* rider = nullptr;  // offered, while it is being started
    RdmaOp* next_free = nullptr;
    StripeWork stripes[sched::kMaxRails];
};
using OpList = List<RdmaOp, &RdmaOp::node>;

}  // namespace coop::ib
