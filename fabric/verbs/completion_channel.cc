// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/completion_channel.h"

#include <unistd.h>

#include "fabric/engine/completion.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/event_pipe.h"

using namespace coop::fabric;

COOP_VERB ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
    int ends[2];
    if (!make_event_pipe(ends)) return nullptr;
    auto* channel = new VerbsChannel(to_context(context));
    channel->context = context;
    channel->fd = ends[0];
    channel->writer = ends[1];
    return channel;
}

// The context's mutex guards the number of CQs that use the channel.
COOP_VERB int ibv_destroy_comp_channel(ibv_comp_channel* destroyed) {
    VerbsChannel& channel = to_channel(destroyed);
    pthread_mutex_lock(&channel.context->mutex);
    const bool busy = channel.refcnt > 0;
    pthread_mutex_unlock(&channel.context->mutex);
    if (busy) return EBUSY;
    close(channel.fd);
    close(channel.writer);
    delete &channel;
    return 0;
}

COOP_VERB int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
    ChannelRecord record;
    VerbsCq* found = nullptr;
    while (found == nullptr) {
        if (!read_record(channel->fd, &record, sizeof record)) return -1;
        found = to_context(channel->context).cqs.hand_out(record.cq, record.used, &VerbsCq::completion_events_out);
    }
    *cq = found->base();
    *cq_context = found->cq_context;
    return 0;
}

COOP_VERB void ibv_ack_cq_events(ibv_cq* cq, unsigned events) { acknowledge(*cq, cq->comp_events_completed, events); }
