// SPDX-License-Identifier: BSD-3-Clause
#include "message.h"

#include <cstring>

#include "diagnose.h"
#include "module.h"
#include "request.h"

namespace coop::ib {
namespace {

void seal(Header& header, sched::SequenceNumber psn) {
    header.psn = psn;
    header.ring_credits = header.receive_credits = 0;
    header.check = check_of(header);
}

// Takes a slot of the peer's ring and appends the tail to the message. Returns the address to which the message has to
// be written; 0 if the ring cannot take it.
std::uint64_t enter_ring(Channel& channel, Header& header, std::uint32_t length) {
    if (!channel.outbox || header.kind != static_cast<std::uint8_t>(Kind::kMessage) ||
        !channel.outbox->slots.fits(length))
        return 0;
    const auto place = channel.outbox->slots.take();
    if (!place) return 0;
    const sched::RingTail tail = sched::make_tail(length, *place);
    std::memcpy(reinterpret_cast<std::byte*>(&header) + sched::padded(length), &tail, sizeof tail);
    ++channel.ring_messages;
    return channel.outbox->end_of(place->slot) - sched::written(length);
}

// Returns null if there is no memory.
Fragment* make_control(Module& m, Endpoint& endpoint, Kind kind, std::span<const std::byte> payload) {
    Fragment* fragment = m.fragments.take();
    if (fragment == nullptr) return nullptr;
    *fragment->header = {0, static_cast<std::uint32_t>(payload.size()), 0, static_cast<std::uint8_t>(kind), 0, 0, 0};
    if (!payload.empty()) std::memcpy(fragment->data(), payload.data(), payload.size());
    fragment->base.des_flags = MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    fragment->base.des_cbfunc = nullptr;
    fragment->ring_address = 0;
    fragment->header->check = check_of(*fragment->header);
    fragment->work.kind = WorkKind::kSend;
    fragment->work.endpoint = &endpoint;
    return fragment;
}

}  // namespace

void Channel::prepare(Work& message) {
    Fragment& fragment = Fragment::of(message);
    Header& header = *fragment.header;
    fragment.ring_address = fragment.urgent ? 0 : enter_ring(*this, header, message.bytes);
    message.wants_credit = fragment.ring_address == 0;
    seal(header, message.psn);
}

// Call this only when posting. If queued messages held credits, both sides could wait for each other.
void load_credits(Channel& channel, Header& header) {
    header.ring_credits = channel.inbox ? channel.inbox->slots.take_owed() : std::uint16_t{0};
    header.receive_credits = channel.has_own_receives ? channel.take_owed_receives().word() : std::uint16_t{0};
    if (header.ring_credits != 0 || header.receive_credits != 0) header.check = check_of(header);
}

void post_fragment(Endpoint& endpoint, Fragment& fragment) {
    fragment.work.bytes = static_cast<std::uint32_t>(sizeof(Header)) + fragment.header->bytes;
    endpoint.channel->send(fragment.work);
}

bool post_inline(Endpoint& endpoint, Header& header, bool urgent) {
    Channel& channel = *endpoint.channel;
    const std::uint32_t length = static_cast<std::uint32_t>(sizeof(Header)) + header.bytes;
    Rail* const rail = channel.rail_for_inline(length);
    if (rail == nullptr) return false;
    Request request;
    request.sge = {reinterpret_cast<std::uint64_t>(&header), length, 0};
    request.wr.opcode = IBV_WR_SEND;
    request.wr.send_flags = urgent ? IBV_SEND_INLINE | IBV_SEND_SOLICITED : IBV_SEND_INLINE;
    // An urgent message is sent: a write into the ring raises no interrupt.
    const std::uint64_t address = !urgent && sched::written(length) <= rail->max_inline
                                      ? enter_ring(channel, header, length)
                                      : 0;
    if (address != 0) {
        request.sge.length = sched::written(length);
        fill_ring_write(*channel.outbox, address, *rail, request.wr);
    } else if (!channel.take_credit(*rail)) {
        return false;
    }
    seal(header, channel.window.take());
    load_credits(channel, header);
    channel.post_inline(*rail, request, request.sge.length, header.psn);
    return true;
}

bool post_control(Module& m, Endpoint& endpoint, Kind kind, std::span<const std::byte> payload) {
    Fragment* fragment = make_control(m, endpoint, kind, payload);
    if (fragment != nullptr) post_fragment(endpoint, *fragment);
    return fragment != nullptr;
}

void post_credits(Module& m, Endpoint& endpoint) {
    Fragment* fragment = make_control(m, endpoint, Kind::kCredits, {});
    if (fragment == nullptr) return;
    ++endpoint.channel->credit_messages;
    fragment->work.bytes = sizeof(Header);
    fragment->work.ordered = fragment->work.wants_credit = false;
    endpoint.channel->send_first(fragment->work);
}

void post_receive_credits(Module& m, Endpoint& endpoint) {
    for (std::size_t rails = endpoint.channel->rails_that_owe_half(); rails > 0; --rails) post_credits(m, endpoint);
}

void take_receive_credits(Endpoint& endpoint, sched::Grant grant) {
    Channel& channel = *endpoint.channel;
    const Rail* const rail = channel.rails.find(grant.rail);
    const bool connected = channel.state == ChannelState::kConnected;
    if (connected && (rail == nullptr || !rail->counts_credits)) damaged("rail of credits", endpoint.proc, grant.rail);
    if (!channel.on_grant(grant)) damaged("credits", endpoint.proc, grant.count);
}

}  // namespace coop::ib
