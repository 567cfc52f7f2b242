// SPDX-License-Identifier: BSD-3-Clause
//
// A queue pair: its shared entry, which others deliver to, and its LocalQp, which
// sends. Here is what belongs to the program's view of it.
//
// Threading: `posting` guards a list that is being built by ibv_wr_*; `receiving`
// guards posting receives; `changing` guards modify and what it remembers.
#pragma once

#include <mutex>
#include <vector>

#include "fabric/engine/local_qp.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/protection_domain.h"
#include "fabric/verbs/shared_receive_queue.h"

namespace coop::fabric {

// Work requests between ibv_wr_start and ibv_wr_complete. What is here is posted as a whole, or not at all.
struct WorkList {
    std::vector<SendWork> requests;      // the first `count`; the others keep their memory
    std::size_t count = 0;
    std::vector<std::byte> inline_data;  // of all of them, one behind the other
    int error = 0;                       // of the first request that cannot be posted
};

struct VerbsQp : ibv_qp_ex {
    VerbsQp(VerbsPd& of, std::uint32_t entry, const SendCapacity& capacity)
        : ibv_qp_ex{}, owner(of.owner), domain(of), index(entry), local(of.owner.client, entry, capacity) {}

    VerbsContext& owner;
    VerbsPd& domain;
    const std::uint32_t index;
    std::uint32_t used = 0;
    ibv_qp_cap cap{};
    bool is_extended = false;  // made by ibv_create_qp_ex with ibv_wr_* in mind
    bool all_signaled = false;
    std::uint32_t events_out = 0;

    std::mutex receiving, posting, changing;
    WorkList list;
    ibv_ah_attr primary{}, alternate{};  // as last given: the shared entry has no room for all of it

    LocalQp local;

    QueuePair& shared() const { return local.shared(); }
};

inline VerbsQp& to_qp(ibv_qp* qp) { return *static_cast<VerbsQp*>(reinterpret_cast<ibv_qp_ex*>(qp)); }
inline VerbsQp& to_qp(ibv_qp_ex* qp) { return *static_cast<VerbsQp*>(qp); }

// Null: errno says why. Writes into `attr.cap` what the QP really has.
VerbsQp* make_qp(VerbsPd& domain, ibv_qp_init_attr& attr);

// Sets the functions that ibv_wr_* goes through.
void set_work_functions(VerbsQp& qp, std::uint64_t wanted);

// 0, or EINVAL for an operation that this QP's type or device does not have.
int check_opcode(const VerbsQp& qp, ibv_wr_opcode opcode);

}  // namespace coop::fabric
