// SPDX-License-Identifier: BSD-3-Clause
#include "failure.h"

#include <cstring>

#include "diagnose.h"
#include "module.h"

namespace coop::ib {
namespace {

void carry_out(rail::RailDecision decision, const Channel& channel, const RailTrouble& trouble) {
    switch (decision) {
    case rail::RailDecision::kIgnore: return;
    case rail::RailDecision::kEndJob: rail_failed(channel.module, channel.endpoint, trouble);
    }
}

Rail* find_rail(const Channel& channel, std::uint32_t hca, std::uint32_t qp_number) {
    for (sched::RailIndex number = 0; number < channel.rails.numbers(); ++number)
        for (Rail* rail : {channel.rails.find(number), channel.rails.any_reader(number)})
            if (rail != nullptr && rail->local_hca == hca && rail->qp.number() == qp_number) return rail;
    return nullptr;
}

bool is_flush(const ibv_wc& wc) { return wc.status == IBV_WC_WR_FLUSH_ERR; }

}  // namespace

void Channel::on_refused(Rail& rail, Work& work, int error) {
    carry_out(on_rail_event(&rail, rail::RailEvent::kPostRefused), *this,
              {operation_of(work), rail.local_hca, strerror(error), static_cast<std::uint32_t>(error)});
}

void on_send_error(const Work& work, const ibv_wc& wc) {
    Channel& channel = *work.endpoint->channel;
    const auto decision = channel.on_failed(work,
                                            is_flush(wc) ? rail::RailEvent::kSendFlushed : rail::RailEvent::kSendError);
    carry_out(decision, channel,
              {operation_of(work), channel.rails[work.rail].local_hca, ibv_wc_status_str(wc.status), wc.vendor_err});
}

void on_receive_error(Endpoint& endpoint, std::uint32_t hca, const ibv_wc& wc) {
    Channel& channel = *endpoint.channel;
    const auto event = is_flush(wc) ? rail::RailEvent::kReceiveFlushed : rail::RailEvent::kReceiveError;
    carry_out(channel.on_rail_event(find_rail(channel, hca, wc.qp_num), event), channel,
              {"receive", hca, ibv_wc_status_str(wc.status), wc.vendor_err});
}

void on_queue_pair_error(Module& m, std::uint32_t hca, const rail::HcaEvent& event) {
    const auto user = m.uses[hca].qp_users.find(event.number);
    if (user == m.uses[hca].qp_users.end()) return;
    Channel& channel = *user->second->channel;
    const auto decision = channel.on_rail_event(find_rail(channel, hca, event.number),
                                                rail::RailEvent::kQueuePairError);
    carry_out(decision, channel, {"none (asynchronous event)", hca, ibv_event_type_str(event.type), 0});
}

// Ends the job even if no rail uses the HCA, because a later peer may need it.
void on_hca_lost(Module& m, std::uint32_t hca, const rail::HcaEvent& event) { hca_failed(m, hca, event); }

}  // namespace coop::ib
