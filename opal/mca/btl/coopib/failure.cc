// SPDX-License-Identifier: BSD-3-Clause
#include "failure.h"

#include <cstring>

#include "diagnose.h"
#include "module.h"

namespace coop::ib {
namespace {

// The channel's decision. `rail` is null while it is not a part of the channel.
rail::RailDecision on_rail_event(Channel& channel, Rail* rail, rail::RailEvent event) {
    if (rail == nullptr) return rail::decide(rail::RailState::kOpening, event);
    const rail::RailDecision decision = rail::decide(rail->state, event);
    if (decision == rail::RailDecision::kIgnore || rail->state != rail::RailState::kUp) return decision;
    channel.rails.set_state(rail->number(), rail::RailState::kFailed);
    channel.scheduler->set_state(rail->number(), sched::RailState::kDown);
    return decision;
}

void deliver(Module& m, Endpoint& endpoint, Rail* rail, rail::RailEvent event, const RailTrouble& trouble) {
    switch (on_rail_event(*endpoint.channel, rail, event)) {
    case rail::RailDecision::kIgnore: return;
    case rail::RailDecision::kEndJob: rail_failed(m, endpoint, trouble);
    }
}

Rail* find_rail(const Channel& channel, std::uint32_t hca, std::uint32_t qp_number) {
    for (sched::RailIndex number = 0; number < channel.rails.numbers(); ++number)
        if (Rail* rail = channel.rails.find(number); rail != nullptr && rail->local_hca == hca && rail->qp->qp_num == qp_number) return rail;
    return nullptr;
}

bool is_flush(const ibv_wc& wc) { return wc.status == IBV_WC_WR_FLUSH_ERR; }

}  // namespace

void on_post_refused(Module& m, const Work& work, int error) {
    Rail& rail = work.endpoint->channel->rails[work.rail];
    deliver(m, *work.endpoint, &rail, rail::RailEvent::kPostRefused,
            {operation_of(work), rail.local_hca, strerror(error), static_cast<std::uint32_t>(error)});
}

void on_send_error(Module& m, const Work& work, const ibv_wc& wc) {
    if (work.endpoint == nullptr) return;  // the probe of a rail that is no part of a channel, which notices by itself
    Rail& rail = work.endpoint->channel->rails[work.rail];
    deliver(m, *work.endpoint, &rail, is_flush(wc) ? rail::RailEvent::kSendFlushed : rail::RailEvent::kSendError,
            {operation_of(work), rail.local_hca, ibv_wc_status_str(wc.status), wc.vendor_err});
}

void on_receive_error(Module& m, Endpoint& endpoint, std::uint32_t hca, const ibv_wc& wc) {
    deliver(m, endpoint, find_rail(*endpoint.channel, hca, wc.qp_num), is_flush(wc) ? rail::RailEvent::kReceiveFlushed : rail::RailEvent::kReceiveError,
            {"receive", hca, ibv_wc_status_str(wc.status), wc.vendor_err});
}

void on_queue_pair_error(Module& m, std::uint32_t hca, const rail::HcaEvent& event) {
    const auto user = m.uses[hca].qp_users.find(event.number);
    if (user == m.uses[hca].qp_users.end()) return;
    Endpoint& endpoint = *user->second;
    deliver(m, endpoint, find_rail(*endpoint.channel, hca, event.number), rail::RailEvent::kQueuePairError,
            {"none: the HCA reports it", hca, ibv_event_type_str(event.type), 0});
}

// An HCA without a rail ends the job, too: the next peer may need it.
void on_hca_lost(Module& m, std::uint32_t hca, const rail::HcaEvent& event) {
    for (const auto& [id, endpoint] : m.endpoints) {
        if (!endpoint->channel) continue;
        for (Rail& rail : endpoint->channel->rails)
            if (rail.local_hca == hca && on_rail_event(*endpoint->channel, &rail, rail::RailEvent::kHcaLost) == rail::RailDecision::kEndJob)
                hca_failed(m, hca, event);
    }
    hca_failed(m, hca, event);
}

}  // namespace coop::ib
