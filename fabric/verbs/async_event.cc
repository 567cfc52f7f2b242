// SPDX-License-Identifier: BSD-3-Clause
//
// Asynchronous events (InfiniBand 11.6.3): reads them from the pipe of an open
// device for the program, and takes its acknowledgements.
#include "fabric/verbs/async_event.h"

#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/event_pipe.h"
#include "fabric/verbs/queue_pair.h"
#include "fabric/verbs/shared_receive_queue.h"

namespace coop::fabric {

EventSource source_of(std::uint32_t type) {
    switch (static_cast<ibv_event_type>(type)) {
    case IBV_EVENT_CQ_ERR: return EventSource::cq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: return EventSource::qp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: return EventSource::srq;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE: return EventSource::port;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_WQ_FATAL: break;
    }
    return EventSource::device;
}

namespace {

// Returns false if the event's object has been destroyed.
bool translate(VerbsContext& context, const EventRecord& record, ibv_async_event& event) {
    event = {};
    event.event_type = static_cast<ibv_event_type>(record.type);
    switch (source_of(record.type)) {
    case EventSource::qp: {
        VerbsQp* qp = context.qps.hand_out(record.object, record.tag, &VerbsQp::events_out);
        if (qp != nullptr) event.element.qp = &qp->qp_base;
        return qp != nullptr;
    }
    case EventSource::cq: {
        VerbsCq* cq = context.cqs.hand_out(record.object, record.tag, &VerbsCq::async_events_out);
        if (cq != nullptr) event.element.cq = cq->base();
        return cq != nullptr;
    }
    case EventSource::srq: {
        VerbsSrq* srq = context.srqs.hand_out(record.object, record.tag, &VerbsSrq::events_out);
        event.element.srq = srq;
        return srq != nullptr;
    }
    case EventSource::port:
    case EventSource::device: event.element.port_num = static_cast<int>(record.object); return true;
    }
    return false;
}

}  // namespace

void purge_events(const VerbsContext& context, EventSource source, std::uint32_t object, std::uint32_t used) {
    if (!context.is_live()) return;  // the pipe may be shared with the parent
    purge_records(context.context.async_fd, context.event_writer, sizeof(EventRecord), [&](const void* data) {
        const auto& record = *static_cast<const EventRecord*>(data);
        return source_of(record.type) == source && record.object == object && record.tag == used;
    });
}

}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
    EventRecord record;
    do {
        if (!read_record(context->async_fd, &record, sizeof record)) return -1;
    } while (!translate(to_context(context), record, *event));
    return 0;
}

COOP_VERB void ibv_ack_async_event(ibv_async_event* event) {
    switch (source_of(event->event_type)) {
    case EventSource::qp: acknowledge(*event->element.qp, event->element.qp->events_completed, 1); break;
    case EventSource::cq: acknowledge(*event->element.cq, event->element.cq->async_events_completed, 1); break;
    case EventSource::srq: acknowledge(*event->element.srq, event->element.srq->events_completed, 1); break;
    case EventSource::port:
    case EventSource::device: break;
    }
}
