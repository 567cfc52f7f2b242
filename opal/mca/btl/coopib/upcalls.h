// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of the upper layer: an operation or a fragment is complete, a message has
// arrived.
//
// Whose it is decides which thread may call. pml/coop expects to be called by the
// asynchronous handler; it is told by the marker of its operations and by the tags
// of its messages. Other parts of Open MPI (osc/rdma) are not prepared for it
// below MPI_THREAD_MULTIPLE: the application may be inside of them, outside of
// any stay that the handler knows of. What the handler finds for these is kept,
// and the application's next progress() calls them, in order.
//
// Threading: by whoever has the turn, with Module::lock released. Nothing is kept
// with MPI_THREAD_MULTIPLE, where the handler takes no turns. Ownership: kept
// operations and fragments are their pools'; a kept message is a copy.
#pragma once

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
    bool any() const noexcept { return any_; }
    void keep(const Module& m, RdmaOp& op);
    void keep(const Module& m, Fragment& fragment);
    void keep(const Module& m, const Header& header, const std::byte* payload);
    // By the application. Returns how many.
    int make(Module& m);
    void forget() noexcept;  // before their pools are closed

private:
    struct Message {
        Header header;
        std::vector<std::byte> payload;
    };

    void count(const Module& m) noexcept;

    bool any_ = false;
    OpList ops_;
    WorkList fragments_;
    std::list<Message> messages_;  // unlike a deque it has no memory until it is used
};

}  // namespace coop::ib
