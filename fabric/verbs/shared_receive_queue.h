// SPDX-License-Identifier: BSD-3-Clause
//
// A shared receive queue (InfiniBand 10.2.9).
#pragma once

#include <atomic>
#include <mutex>

#include "fabric/verbs/protection_domain.h"

namespace coop::fabric {

struct VerbsSrq : ibv_srq {
    explicit VerbsSrq(VerbsPd& of) : ibv_srq{}, owner(of.owner), domain(of) {}

    VerbsContext& owner;
    VerbsPd& domain;
    std::uint32_t index = kNone;
    std::uint32_t used = 0;
    std::mutex posting;
    std::atomic<int> users{0};  // QPs
    std::uint32_t events_out = 0;

    SharedReceiveQueue& shared() const { return owner.subnet().shared_receive_queues()[index]; }
};

inline VerbsSrq& to_srq(ibv_srq* srq) { return *static_cast<VerbsSrq*>(srq); }

}  // namespace coop::fabric
