// SPDX-License-Identifier: BSD-3-Clause
//
// A completion queue, plain or extended. Its ring is in shared memory, and any
// process may put completions into it; this is the owner's side.
//
// Threading: `taking` guards taking completions, and the size of the ring. It is
// taken before the shared entry's lock.
#pragma once

#include <atomic>
#include <mutex>

#include "fabric/verbs/completion_channel.h"

namespace coop::fabric {

struct VerbsCq : ibv_cq_ex {
    explicit VerbsCq(VerbsContext& of) : ibv_cq_ex{}, owner(of) {}

    VerbsContext& owner;
    std::uint32_t index = kNone;
    std::uint32_t used = 0;  // of the entry, as its generation
    std::mutex taking;
    std::atomic<int> users{0};  // QPs; one that uses the queue both for sends and for receives counts twice
    Completion current;         // extended polling: the completion being read
    std::uint32_t completion_events_out = 0, async_events_out = 0;

    CompletionQueue& shared() const { return owner.subnet().completion_queues()[index]; }
    ibv_cq* base() { return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(this)); }
};

inline VerbsCq& to_cq(ibv_cq* cq) { return *static_cast<VerbsCq*>(reinterpret_cast<ibv_cq_ex*>(cq)); }
inline VerbsCq& to_cq(ibv_cq_ex* cq) { return *static_cast<VerbsCq*>(cq); }

// Returns null with errno set on failure.
VerbsCq* make_cq(VerbsContext& owner, int entries, void* cq_context, ibv_comp_channel* channel, std::uint32_t vector);

// Removes the completions of a QP that is destroyed or reset, as the drivers of rdma-core do.
void discard_completions(VerbsCq& cq, std::uint32_t qp_number);

}  // namespace coop::fabric
