// SPDX-License-Identifier: BSD-3-Clause
//
// A call in progress of group.h, and its puts. Only group.cc, packets.cc and puts.cc use it.
#pragma once

#include <list>
#include <optional>
#include <vector>

#include "coop/extension/tags.h"
#include "group.h"
#include "ompi/mca/shim/inside.h"
#include "outstanding.h"
#include "process.h"
#include "transports.h"

namespace coop::ag {

constexpr mca_btl_base_tag_t kTag = kAllgatherTag;
static_assert(kTag >= MCA_BTL_TAG_USR && kTag < MCA_BTL_TAG_MAX);

// In its turn the handler uses only transports that take turns with it; the application's next poll uses the others.
inline bool has_to_wait(const mca_btl_base_module_t& btl) noexcept {
    return handler().is_handler() && !extension_of(btl);
}

inline void end_all(JobList& done) noexcept {
    while (Job* const job = done.pop_front()) job->on_done(*job);
}

// A put, or what is left of it: its notice, unless the transport sends that with the data; or its data if it failed.
struct Group::Put {
    enum State : int { kPending, kDone, kFailed };
    Put(Running& of, mca_bml_base_btl_t& transport, std::uint32_t to_rank, std::uint32_t step_number,
        std::uint64_t at_offset, const coll::Piece& what) noexcept
        : call(of), btl(transport), to(to_rank), step(step_number), at(at_offset), piece(what) {}
    Running& call;
    mca_bml_base_btl_t& btl;  // sends the notice, too, so that it cannot overtake the data
    std::uint32_t to, step;
    std::uint64_t at;
    coll::Piece piece;
    std::atomic<int> state{kPending};
    bool tells = false;  // the transport sends the notice
};

// A call in progress, which is the Wire of its coll::Call. The memory of the object is used by later calls, so a call
// allocates nothing as a rule.
struct Group::Running {
    Group* group = nullptr;
    Job* job = nullptr;  // null: none
    std::vector<Registered> registered;
    std::list<Put> puts;
    std::atomic<std::uint32_t> under_way{0};  // packets in descriptors of a transport
    std::optional<coll::Call<Running>> call;

    bool announce(std::uint32_t to, std::uint32_t number) noexcept { return group->announce(*this, to, number); }
    bool send_short(std::uint32_t to, std::uint32_t step, const coll::Pieces& pieces) noexcept {
        return group->send_short(*this, to, step, pieces);
    }
    std::uint64_t send_long(std::uint32_t to, std::uint32_t step, std::uint64_t at, const coll::Piece& piece,
                            const coll::Announcement& there) noexcept {
        return group->send_long(*this, to, step, at, piece, there);
    }
    bool send_empty(std::uint32_t to, std::uint32_t step) noexcept { return group->send_empty(*this, to, step); }
    bool settle() noexcept {
        return (puts.empty() && under_way.load(std::memory_order_acquire) == 0) || group->settle(*this);
    }
};

// A callback of a transport in which something happens that a call waits for. The application may be computing, so at
// the end of the scope this thread continues the non-blocking calls. The group stays until then.
class Group::Following {
public:
    explicit Following(Group& group) noexcept : group_(has_interrupts() ? &group : nullptr) {
        if (group_) group_->followers_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Following() {
        if (!group_) return;
        JobList done;
        // Here, because a call may have begun since the packet came, and not have seen it.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (group_->outstanding() > 0) group_->drive(done);
        group_->followers_.fetch_sub(1, std::memory_order_release);
        end_all(done);
    }
    Following(const Following&) = delete;
    Following& operator=(const Following&) = delete;

private:
    Group* const group_;  // null: nothing to do
};

}  // namespace coop::ag
