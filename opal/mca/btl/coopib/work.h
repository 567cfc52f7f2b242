// SPDX-License-Identifier: BSD-3-Clause
//
// Requests for rails: a fragment to send, or a stripe of an RDMA operation. Each is
// one work request, or a list of them of which only the last one completes. It waits on
// its rail while the send queue is full. A fragment also waits while it has no receive
// credit; a read or an atomic operation, while the queue pair may not have another one
// outstanding.
//
//     Fragment   a descriptor of Open MPI with its buffer, in memory that is
//                registered on every HCA
//     mark       a request of a rail whose completion covers the inline sends before it
//     RdmaOp     a put, get or atomic operation of the upper layer, or a list of
//                puts or gets; it is complete when all its stripes are
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

// Sent to the peer: the key of the region on each HCA of its owner.
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

// Satisfies rail::RailWork (coop/rail/rail.h).
struct Work {
    ListNode node;
    Endpoint* endpoint = nullptr;
    std::uint64_t posted_ns =
        sched::kNotMeasured;     // time at which the operation of a stripe was cut, if the scheduler measures it
    std::uint32_t bytes = 0;     // bytes of a stripe, or of a message with its header
    std::uint32_t requests = 1;  // more than one: a list of pieces
    sched::SequenceNumber psn = 0;
    WorkKind kind = WorkKind::kSend;
    sched::RailIndex rail = 0;
    bool ordered = false, wants_credit = false;
    bool has_token = false, waits = false, apart = false;
    bool follows = false, displaced = false, in_order = false;
    std::uint32_t turn = 0;
    bool repeated = false;  // has failed once with an error that may be the work's own fault
};
using WorkList = List<Work, &Work::node>;

struct FragmentChunk;
struct StripeWork;

struct Fragment {
    mca_btl_base_descriptor_t base{};      // first: the upper layer knows the fragment by its address
    mca_btl_base_segment_t segments[2]{};  // only [0] is used
    Work work;
    Header* header = nullptr;        // followed by the data, and by room for the tail of a ring slot
    std::uint64_t ring_address = 0;  // address in the peer's ring to which it is written; 0: it is sent
    bool fenced = false;             // waits for the reads that were posted before it
    bool urgent = false;             // interrupts the receiver if it has requested interrupts
    bool sealed = false;    // was posted: its bytes must not change any more, because a repetition must be equal
    bool landed = false;    // has completed
    bool held = false;      // the peer's process has not acknowledged it yet (sched/held.h)
    bool returned = false;  // held, and the upper layer does not use it any more
    bool repeats = false;   // writes a slot of the ring once more: Outbox::repeating counts it
    bool is_long = false;   // FragmentPool::take_long()
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
    const RdmaPiece* pieces = nullptr;  // the first one of a list; valid if requests > 1
    std::uint32_t stripe = 0;
    std::uint32_t load_place = 0;  // entry of the load board that counts it, from 1; 0: it is not counted
    sched::RailMask left = 0;      // of a read behind writes whose rail has failed: further rails that it has to take
};

struct RdmaOp {
    ListNode node;  // linked while it waits for the connection, or to be cut
    sched::Begun begun;
    WorkKind kind = WorkKind::kPut;
    Endpoint* endpoint = nullptr;
    void* local_address = nullptr;
    std::uint64_t remote_address = 0;
    mca_btl_base_registration_handle_t* local_handle = nullptr;
    mca_btl_base_registration_handle_t remote{};
    std::uint64_t bytes = 0;
    const RdmaPiece* pieces = nullptr;  // of a list, and their number; null: one transfer
    std::uint32_t piece_count = 0;      // valid if pieces != null
    bool swap = false;                  // atomic operation: compare and swap; false: fetch and add
    std::uint64_t operand = 0, value = 0;
    mca_btl_base_rdma_completion_fn_t callback = nullptr;
    void* context = nullptr;
    void* data = nullptr;
    sched::Marker marker = sched::Marker::kNone;
    sched::SentStripes missing{1};
    Fragment* riders[sched::kMaxRails];  // valid if has_riders: each is posted after the stripe of the same number
    bool has_riders = false;
    bool whole = false;           // never cut into stripes
    bool not_worth = false;       // whole, because stripes have taken longer
    bool not_measured = false;    // the links do not decide how long it takes
    bool now = false;             // the caller wants it posted at once
    std::uint64_t begun_ns = 0;   // valid while Channel::timed points to this
    bool posts_reads = false;     // as many as there are, instead of as many as may be outstanding
    bool beside_atomics = false;  // on the rail of atomic operations
    sched::RailMask behind = 0;   // reads of one byte behind the writes on these rails; 0: another operation
    std::uint8_t lane = sched::kNoLane;
    Rider* rider = nullptr;  // the rider that the caller offers; valid until the operation is started
    RdmaOp* next_free = nullptr;
    StripeWork stripes[sched::kMaxRails];
};
using OpList = List<RdmaOp, &RdmaOp::node>;

}  // namespace coop::ib
