// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of the upper layer: an operation or a fragment is complete, a message has
// arrived.
//
// Which thread may make a call depends on the component that is called. The asynchronous
// handler may call pml/coop and coll/rdmaag, whose operations are recognized by their
// marker and their messages by their tag, and osc/multirail for messages. Other parts of Open MPI (osc/rdma) do not
// expect calls from another thread with MPI_THREAD_SINGLE: the application may be
// executing their code without the handler knowing it. Calls for them that the handler
// finds are kept, and the application's next progress() makes them, in the order of
// each kind.
//
// Threading: the thread that has the turn, with Module::lock released. Above
// MPI_THREAD_SINGLE the handler takes no turns, and keeps nothing. Fragments that have arrived over a rail that failed are
// kept for the next progress() of any thread (failover.cc). Ownership: the
// pools own kept operations and fragments; a kept message is a copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <vector>

#include "work.h"

namespace coop::ib {

struct Module;

void complete(Module& m, RdmaOp& op);
void complete(Module& m, Fragment& fragment);
void hand_up(Module& m, const Header& header, std::byte* payload);

class KeptCalls {
public:
    bool any() const noexcept { return any_.load(std::memory_order_relaxed); }
    void keep(const Module& m, RdmaOp& op);
    void keep(const Module& m, Fragment& fragment);
    void keep(const Module& m, const Header& header, const std::byte* payload);
    // The application calls this. Makes the kept calls and returns their number.
    int make(Module& m);
    void forget() noexcept;  // call it before the pools are closed

private:
    struct Message {
        Header header;
        std::vector<std::byte> payload;
    };

    void count(const Module& m) noexcept;

    std::atomic<bool> any_{false};
    OpList ops_;
    WorkList fragments_;
    std::list<Message> messages_;  // an empty list, unlike a deque, allocates no memory
};

}  // namespace coop::ib
