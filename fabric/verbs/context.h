// SPDX-License-Identifier: BSD-3-Clause
//
// An open device: the table of functions that the inline calls of libibverbs use,
// and the objects that events refer to.
//
// Ownership: the program owns it from ibv_open_device to ibv_close_device. It has
// an entry in the subnet's table of contexts, which holds the pipe for events; the
// reading end of that pipe is the program's async_fd.
#pragma once

#include <cstdint>

#include "fabric/engine/client.h"
#include "fabric/verbs/exports.h"
#include "fabric/verbs/registry.h"

namespace coop::fabric {

struct VerbsCq;
struct VerbsQp;
struct VerbsSrq;

struct VerbsContext : verbs_context {
    VerbsContext(Client& of, std::uint32_t on_hca) : verbs_context{}, client(of), hca_index(on_hca) {}

    Client& client;
    const std::uint32_t hca_index;
    std::uint32_t index = kNone;  // in the table of contexts
    int event_writer = -1;
    Registry<VerbsCq> cqs;
    Registry<VerbsQp> qps;
    Registry<VerbsSrq> srqs;

    // False in the child after fork(), and while the process ends: objects on the subnet are then not ours any more.
    bool is_live() const { return Client::current() == &client && client.is_joined(); }
    const Segment& subnet() const { return client.subnet(); }
    Hca& hca() const { return subnet().hcas()[hca_index]; }
    const Profile& profile() const { return hca().profile; }
    bool has_port(unsigned number) const { return number >= 1 && number <= hca().ports; }
    std::uint32_t port_index(unsigned number) const { return hca().first_port + number - 1; }
    Port& port(unsigned number) const { return subnet().ports()[port_index(number)]; }
};

inline VerbsContext& to_context(ibv_context* context) { return *static_cast<VerbsContext*>(verbs_get_ctx(context)); }

// Makes a pipe whose writing end never blocks. Returns false with errno set on failure.
bool make_event_pipe(int (&ends)[2]);

}  // namespace coop::fabric
