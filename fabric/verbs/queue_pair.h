// SPDX-License-Identifier: BSD-3-Clause
//
// A queue pair: its shared entry, to which other processes deliver, and its
// LocalQp, which sends. This is the part that the program sees.
//
// Threading: `posting` guards the list that ibv_wr_* builds; `receiving` guards
// posting receives; `changing` guards modify and the attributes that it keeps.
#pragma once

#include <mutex>
#include <vector>

#include "fabric/engine/local_qp.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/protection_domain.h"
#include "fabric/verbs/shared_receive_queue.h"

namespace coop::fabric {

// Work requests between ibv_wr_start and ibv_wr_complete. They are posted all together or not at all.
struct WorkList {
    std::vector<SendWork> requests;  // the first `count` are valid; the others are kept to reuse their memory
    std::size_t count = 0;
    std::vector<std::byte> inline_data;  // of all requests, one after the other
    int error = 0;                       // errno of the first request that cannot be posted
};

struct VerbsQp : ibv_qp_ex {
    VerbsQp(VerbsPd& of, std::uint32_t entry, const SendCapacity& capacity)
        : ibv_qp_ex{}, owner(of.owner), domain(of), index(entry), local(of.owner.client, entry, capacity) {}

    VerbsContext& owner;
    VerbsPd& domain;
    const std::uint32_t index;
    std::uint32_t used = 0;
    ibv_qp_cap cap{};
    bool is_extended = false;  // made by ibv_create_qp_ex for use with ibv_wr_*
    bool all_signaled = false;
    std::uint32_t events_out = 0;

    std::mutex receiving, posting, changing;
    WorkList list;
    ibv_ah_attr primary{}, alternate{};  // as last set; the shared entry holds only a part of it

    LocalQp local;

    QueuePair& shared() const { return local.shared(); }
};

inline VerbsQp& to_qp(ibv_qp* qp) { return *static_cast<VerbsQp*>(reinterpret_cast<ibv_qp_ex*>(qp)); }
inline VerbsQp& to_qp(ibv_qp_ex* qp) { return *static_cast<VerbsQp*>(qp); }

// Returns null with errno set on failure. Sets `attr.cap` to the capacities that the QP really has.
VerbsQp* make_qp(VerbsPd& domain, ibv_qp_init_attr& attr);

// Sets the functions that ibv_wr_* calls.
void set_work_functions(VerbsQp& qp, std::uint64_t wanted);

// Returns 0, or EINVAL for an operation that this QP's type or device does not support.
int check_opcode(const VerbsQp& qp, ibv_wr_opcode opcode);

}  // namespace coop::fabric
