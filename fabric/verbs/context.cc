// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/context.h"

#include <fcntl.h>
#include <unistd.h>

#include "fabric/verbs/device.h"
#include "fabric/verbs/operations.h"

namespace coop::fabric {
namespace {

// Functions that are not set stay null: libibverbs answers EOPNOTSUPP for them.
void set_operations(VerbsContext& context) {
    ibv_context_ops& ops = context.context.ops;
    ops._compat_query_device = ibv_query_device;
    ops._compat_query_port = ibv_query_port;
    ops.poll_cq = poll_cq;
    ops.req_notify_cq = req_notify_cq;
    ops.post_srq_recv = post_srq_recv;
    ops.post_send = post_send;
    ops.post_recv = post_recv;
    context.query_port = query_port;
    context.query_device_ex = query_device_ex;
    if (context.profile().extended == 0) return;
    context.query_rt_values = query_rt_values;
    context.create_cq_ex = create_cq_ex;
    context.create_qp_ex = create_qp_ex;
    context.get_srq_num = get_srq_num;
}

bool enter(VerbsContext& context) {
    const Segment& subnet = context.subnet();
    int ends[2];
    if (!make_event_pipe(ends)) return false;
    context.index = subnet.claim<Context>(kContexts);
    if (context.index == kNone) {
        close(ends[0]);
        close(ends[1]);
        errno = ENOMEM;
        return false;
    }
    Context& entry = subnet.contexts()[context.index];
    entry.process = context.client.process();
    entry.hca = context.hca_index;
    entry.event_fd = ends[1];
    context.event_writer = ends[1];
    context.context.async_fd = ends[0];
    return true;
}

void leave(const VerbsContext& context) {
    if (!context.is_live()) return;
    Context& entry = context.subnet().contexts()[context.index];
    entry.event_fd = -1;
    context.subnet().release(entry);
}

}  // namespace

bool make_event_pipe(int (&ends)[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    return fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0;
}

}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB ibv_context* ibv_open_device(ibv_device* device) {
    Client* client = Client::get();
    if (client == nullptr) return refuse<ibv_context>(ENODEV);
    const std::uint32_t hca = to_device(device).hca;
    if (client->subnet().hcas()[hca].down.load() != 0) return refuse<ibv_context>(EIO);
    auto* made = new VerbsContext(*client, hca);
    if (!enter(*made)) {
        delete made;
        return nullptr;
    }
    made->sz = sizeof(verbs_context);
    made->context.device = device;
    made->context.cmd_fd = -1;
    made->context.num_comp_vectors = 1;
    made->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&made->context.mutex, nullptr);
    set_operations(*made);
    return &made->context;
}

COOP_VERB int ibv_close_device(ibv_context* closed) {
    VerbsContext& context = to_context(closed);
    leave(context);
    close(context.event_writer);
    close(closed->async_fd);
    pthread_mutex_destroy(&closed->mutex);
    delete &context;
    return 0;
}
