// SPDX-License-Identifier: BSD-3-Clause
#include "interrupts.h"

#include <fcntl.h>

#include "entry.h"

namespace coop::ib {

ibv_comp_channel* Interrupts::open_channel(ibv_context* device) {
    auto channel = rail::make_comp_channel(device);
    if (!channel) return nullptr;
    ibv_comp_channel* made = *channel;
    if (fcntl(made->fd, F_SETFL, fcntl(made->fd, F_GETFL) | O_NONBLOCK) != 0) return nullptr;
    channels_.push_back(std::move(*channel));
    descriptors_.push_back(made->fd);
    return made;
}

void Interrupts::request(async::Notice notice) noexcept {
    const int solicited_only = notice == async::Notice::kUrgent;
    for (const HcaUse& use : m_.uses)
        if (use.cq->channel != nullptr) ibv_req_notify_cq(use.cq, solicited_only);
}

void Interrupts::acknowledge(int descriptor) noexcept {
    for (const rail::CompChannel& channel : channels_) {
        if (channel->fd != descriptor) continue;
        ibv_cq* cq;
        void* user;
        while (ibv_get_cq_event(channel, &cq, &user) == 0) ibv_ack_cq_events(cq, 1);
    }
}

int Interrupts::drain() noexcept { return progress(); }

}  // namespace coop::ib
