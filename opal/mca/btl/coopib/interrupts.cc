// SPDX-License-Identifier: BSD-3-Clause
#include "interrupts.h"

#include <fcntl.h>

#include <cerrno>

#include "diagnose.h"
#include "extension.h"
#include "module.h"
#include "progress.h"

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

const rail::CompChannel* Interrupts::channel_of(int descriptor) const noexcept {
    for (const rail::CompChannel& channel : channels_)
        if (channel->fd == descriptor) return &channel;
    return nullptr;
}

bool Interrupts::acknowledge(int descriptor) noexcept {
    const rail::CompChannel* channel = channel_of(descriptor);
    if (channel == nullptr) return false;
    ibv_cq* cq;
    void* user;
    errno = 0;
    while (ibv_get_cq_event(*channel, &cq, &user) == 0) ibv_ack_cq_events(cq, 1);
    return errno == EAGAIN || errno == EINTR;  // other errors: end of file, or EIO after the device was removed
}

void Interrupts::lost(int descriptor) noexcept {
    if (const rail::CompChannel* channel = channel_of(descriptor))
        interrupts_lost(ibv_get_device_name((*channel)->context->device));
}

int Interrupts::drain() noexcept { return progress(); }

// A transport that cannot interrupt is attached, too: it must still take turns with the handler.
bool serve(mca_btl_base_module_t* btl, async::Handler* handler) {
    Module& m = Module::of(btl);
    m.handler.attach(handler);
    if (m.interrupts->descriptors().empty()) return false;
    if (handler != nullptr) handler->add(*m.interrupts);
    return true;
}

}  // namespace coop::ib
