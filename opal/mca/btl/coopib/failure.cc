// SPDX-License-Identifier: BSD-3-Clause
#include "failure.h"

#include <cstring>
#include <utility>

#include "diagnose.h"
#include "failover.h"
#include "module.h"

namespace coop::ib {
namespace {

void carry_out(rail::RailDecision decision, Channel& channel, Rail* rail, const RailTrouble& trouble) {
    switch (decision) {
    case rail::RailDecision::kIgnore: return;
    case rail::RailDecision::kRepair: return begin_repair(channel, rail->number(), trouble.status);
    case rail::RailDecision::kEndJob: rail_failed(channel.module, channel.endpoint, trouble);
    }
}

Rail* find_rail(const Channel& channel, std::uint32_t hca, std::uint32_t qp_number) {
    for (sched::RailIndex number = 0; number < channel.rails.numbers(); ++number)
        for (Rail* rail : {channel.rails.find(number), channel.rails.any_reader(number)})
            if (rail != nullptr && rail->local_hca == hca && rail->qp.number() == qp_number) return rail;
    return nullptr;
}

// Errors that may be those of one queue pair only. They may also be the request's own fault: then it has them again over
// another rail, and they end the job.
bool is_doubtful(ibv_wc_status status) {
    return status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_REM_OP_ERR || status == IBV_WC_GENERAL_ERR ||
           status == IBV_WC_FATAL_ERR || status == IBV_WC_REM_ABORT_ERR || status == IBV_WC_RESP_TIMEOUT_ERR;
}

rail::RailEvent event_of(Work& work, ibv_wc_status status) {
    if (status == IBV_WC_WR_FLUSH_ERR) return rail::RailEvent::kSendFlushed;
    if (status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR) return rail::RailEvent::kSendError;
    if (!is_doubtful(status) || std::exchange(work.repeated, true)) return rail::RailEvent::kSendRefused;
    return rail::RailEvent::kSendError;
}

}  // namespace

void Channel::on_refused(Rail& rail, Work& work, int error) {
    carry_out(on_rail_event(&rail, rail::RailEvent::kPostRefused), *this, &rail,
              {operation_of(work), rail.local_hca, strerror(error), static_cast<std::uint32_t>(error)});
    // An inline message is kept, and a mark is not needed any more.
    if (repairs && work.kind != WorkKind::kMark) resubmit(work);
}

void on_send_error(Rail& rail, Work& work, const ibv_wc& wc) {
    Channel& channel = *work.endpoint->channel;
    if (&work == &rail.last) return on_drained(channel, rail);
    const auto decision = channel.on_failed(work, event_of(work, wc.status));
    carry_out(decision, channel, &rail,
              {operation_of(work), rail.local_hca, ibv_wc_status_str(wc.status), wc.vendor_err});
}

void on_receive_error(Endpoint& endpoint, std::uint32_t hca, const ibv_wc& wc) {
    Channel& channel = *endpoint.channel;
    const auto event = wc.status == IBV_WC_WR_FLUSH_ERR ? rail::RailEvent::kReceiveFlushed
                                                        : rail::RailEvent::kReceiveError;
    Rail* const rail = find_rail(channel, hca, wc.qp_num);
    if (rail == nullptr && is_retired(channel, hca, wc.qp_num)) return;
    carry_out(channel.on_rail_event(rail, event), channel, rail,
              {"receive", hca, ibv_wc_status_str(wc.status), wc.vendor_err});
}

void on_queue_pair_error(Module& m, std::uint32_t hca, const rail::HcaEvent& event) {
    const auto user = m.uses[hca].qp_users.find(event.number);
    if (user == m.uses[hca].qp_users.end()) return;
    Channel& channel = *user->second->channel;
    Rail* const rail = find_rail(channel, hca, event.number);
    // The queue pair goes on over the path that it has. With failover, it is exchanged for one that can migrate.
    if (event.type == IBV_EVENT_PATH_MIG_ERR && !channel.repairs) {
        if (rail != nullptr) path_not_loaded(channel, *rail, "its HCA reports a path migration error");
        return;
    }
    carry_out(channel.on_rail_event(rail, rail::RailEvent::kQueuePairError), channel, rail,
              {"none (asynchronous event)", hca, ibv_event_type_str(event.type), 0});
}

// Without failover this ends the job even if no rail uses the HCA, because a later peer may need it. An error of a queue
// affects messages that have arrived, so it always does.
void on_hca_lost(Module& m, std::uint32_t hca, const rail::HcaEvent& event) {
    if (m.given.failover == 0 || event.type != IBV_EVENT_DEVICE_FATAL) hca_failed(m, hca, event);
    for (const auto& [id, endpoint] : m.endpoints) {
        if (!endpoint->channel || endpoint->channel->state != ChannelState::kConnected) continue;
        if ((endpoint->local_hcas >> hca & 1) != 0 && !endpoint->channel->repairs) hca_failed(m, hca, event);
        for_each_rail_on(*endpoint->channel, hca, 0, [&](Channel& channel, sched::RailIndex rail) {
            begin_repair(channel, rail, ibv_event_type_str(event.type));
        });
    }
}

void on_port_changed(Module& m, std::uint32_t hca, const rail::HcaEvent& event) {
    port_changed(m, hca, event);
    for (const auto& [id, endpoint] : m.endpoints)
        if (endpoint->channel && endpoint->channel->state == ChannelState::kConnected)
            for_each_rail_on(*endpoint->channel, hca, event.number, [&](Channel& channel, sched::RailIndex rail) {
                if (event.type == IBV_EVENT_PORT_ERR) on_port_down(channel, rail, ibv_event_type_str(event.type));
                if (event.type == IBV_EVENT_PORT_ACTIVE) on_port_active(channel, rail);
            });
}

}  // namespace coop::ib
