// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/async_events.h"

#include <fcntl.h>

#include <cerrno>

namespace coop::rail {
namespace {

// Returns the number of the object that the event refers to. Read it before acknowledging the event: afterwards
// the object may be destroyed.
std::uint32_t number_of(const ibv_async_event& event) noexcept {
    switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: return event.element.qp->qp_num;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE: return static_cast<std::uint32_t>(event.element.port_num);
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_WQ_FATAL: break;
    }
    return 0;
}

}  // namespace

Meaning meaning_of(ibv_event_type type) noexcept {
    switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR: return Meaning::kHcaLost;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG_ERR: return Meaning::kRailLost;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_GID_CHANGE: return Meaning::kNotice;
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_WQ_FATAL: break;
    }
    return Meaning::kNothing;
}

bool make_events_nonblocking(ibv_context* device) noexcept {
    const int flags = fcntl(device->async_fd, F_GETFL);
    return flags >= 0 && fcntl(device->async_fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

bool read_events(ibv_context* device, std::vector<HcaEvent>& events) {
    ibv_async_event event;
    while (ibv_get_async_event(device, &event) == 0) {
        events.push_back({event.event_type, number_of(event)});
        ibv_ack_async_event(&event);
    }
    return errno == EAGAIN || errno == EINTR;
}

}  // namespace coop::rail
