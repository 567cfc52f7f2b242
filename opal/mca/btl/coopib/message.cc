// SPDX-License-Identifier: BSD-3-Clause
#include "message.h"

#include <cstring>

#include "diagnose.h"
#include "module.h"
#include "request.h"

namespace coop::ib {
namespace {

// Whether the peer's ring takes messages of `length` bytes, with their header, when it has room.
bool may_use_ring(const Channel& channel, std::uint32_t length) {
    return channel.outbox && channel.outbox->slots.fits(length) && channel.outbox->repeating == 0;
}

void seal(Header& header, sched::SequenceNumber psn) {
    header.psn = psn;
    header.ring_credits = header.receive_credits = 0;
    header.check = check_of(header);
}

void take_credits(Channel& channel, Header& header) {
    header.ring_credits = channel.inbox ? channel.inbox->slots.take_owed() : std::uint16_t{0};
    header.receive_credits = channel.has_own_receives ? channel.take_owed_receives().word() : std::uint16_t{0};
}

// Takes as many slots of the peer's ring as the message needs, and appends the tail to the message. Returns the address
// to which the message has to be written; 0 if the ring cannot take it.
std::uint64_t enter_ring(Channel& channel, Header& header, std::uint32_t length, sched::SequenceNumber psn) {
    if (header.kind != static_cast<std::uint8_t>(Kind::kMessage) || !may_use_ring(channel, length)) return 0;
    const auto place = channel.outbox->slots.take(length);
    if (!place) return 0;
    const sched::RingTail tail = sched::make_tail(length, *place);
    std::memcpy(reinterpret_cast<std::byte*>(&header) + sched::padded(length), &tail, sizeof tail);
    ++channel.ring_messages;
    channel.outbox->psns[place->slot] = psn;
    return channel.outbox->end_of(place->slot) - sched::written(length);
}

// Keeps a copy of an inline message, which has no other memory.
void keep(Channel& channel, const Header& header, std::uint32_t length, std::uint64_t address, sched::RailIndex rail) {
    const std::uint32_t bytes = address != 0 ? sched::written(length) : length;
    std::memcpy(channel.held.copy(header.psn, bytes, rail, address), &header, bytes);
}

// Returns null if there is no memory.
Fragment* make_control(Module& m, Endpoint& endpoint, Kind kind, std::span<const std::byte> payload) {
    Fragment* fragment = m.fragments.take();
    if (fragment == nullptr) return nullptr;
    *fragment->header = header_of(kind, payload.size());
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

bool ring_has_room(const Channel& channel, std::uint32_t length) {
    return may_use_ring(channel, length) && channel.outbox->slots.has_room(length);
}

void Channel::prepare(Work& message) {
    Fragment& fragment = Fragment::of(message);
    Header& header = *fragment.header;
    fragment.ring_address = fragment.urgent ? 0 : enter_ring(*this, header, message.bytes, message.psn);
    message.wants_credit = fragment.ring_address == 0;
    seal(header, message.psn);
    if (!repairs) return;
    fragment.held = true;
    held.hold(message.psn, fragment);
}

// Call this only when posting. If queued messages held credits, both sides could wait for each other.
void load_credits(Channel& channel, Header& header) {
    take_credits(channel, header);
    if (channel.repairs && header.kind == static_cast<std::uint8_t>(Kind::kCredits)) {
        const Acknowledgement got{channel.arrivals.expected(), channel.seen_unordered.expected()};
        std::memcpy(&header + 1, &got, sizeof got);
    }
    if (header.ring_credits != 0 || header.receive_credits != 0) header.check = check_of(header);
}

void post_fragment(Endpoint& endpoint, Fragment& fragment) {
    fragment.work.bytes = static_cast<std::uint32_t>(sizeof(Header)) + fragment.header->bytes;
    endpoint.channel->send(fragment.work);
}

bool send_inline(Endpoint& endpoint, Header& header, bool urgent) {
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
                                      ? enter_ring(channel, header, length, channel.window.next())
                                      : 0;
    if (address != 0) {
        request.sge.length = sched::written(length);
        fill_ring_write(*channel.outbox, address, *rail, request.wr);
    } else if (!channel.take_credit(*rail)) {
        return false;
    }
    header.psn = channel.window.take();
    take_credits(channel, header);
    header.check = check_of(header);
    if (channel.repairs) keep(channel, header, length, address, rail->number());
    channel.post_inline(*rail, request, request.sge.length, header.psn);
    return true;
}

bool post_control(Module& m, Endpoint& endpoint, Kind kind, std::span<const std::byte> payload) {
    Fragment* fragment = make_control(m, endpoint, kind, payload);
    if (fragment != nullptr) post_fragment(endpoint, *fragment);
    return fragment != nullptr;
}

void post_credits(Module& m, Endpoint& endpoint) {
    constexpr std::byte kNothingYet[sizeof(Acknowledgement)]{};
    Channel& channel = *endpoint.channel;
    Fragment* fragment = make_control(m, endpoint, Kind::kCredits,
                                      std::span(kNothingYet).first(channel.repairs ? sizeof kNothingYet : 0));
    if (fragment == nullptr) return;
    Fragment* const fragments[] = {fragment};
    if (!number_unordered(channel, fragments, 0)) return m.fragments.give_back(*fragment);
    fragment->header->psn = fragment->work.psn;
    fragment->header->check = check_of(*fragment->header);
    channel.arrived = channel.arrived_bytes = 0;  // load_credits() acknowledges them
    ++channel.credit_messages;
    fragment->work.bytes = static_cast<std::uint32_t>(sizeof(Header)) + fragment->header->bytes;
    fragment->work.ordered = fragment->work.wants_credit = false;
    channel.send_first(fragment->work);
}

bool number_unordered(Channel& channel, std::span<Fragment* const> fragments, std::uint32_t reserve) {
    const auto count = static_cast<std::uint32_t>(fragments.size());
    if (channel.repairs && !channel.unordered.has_room_for(count, reserve)) return false;
    for (Fragment* const fragment : fragments) {
        fragment->work.psn = channel.repairs ? channel.unordered.take() : 0;
        if (!channel.repairs) continue;
        fragment->held = true;
        channel.held_unordered.hold(fragment->work.psn, *fragment);
    }
    return true;
}

void post_receive_credits(Module& m, Endpoint& endpoint) {
    for (std::size_t rails = endpoint.channel->rails_that_owe_half(); rails > 0; --rails) post_credits(m, endpoint);
}

namespace {

// Returns credits for which no number was left when they were due.
void return_late_credits(Module& m, Endpoint& endpoint) {
    const Channel& channel = *endpoint.channel;
    if (channel.state != ChannelState::kConnected) return;
    post_receive_credits(m, endpoint);
    if (channel.inbox && channel.inbox->slots.owes_half()) post_credits(m, endpoint);
}

}  // namespace

void take_acknowledgement(Module& m, Endpoint& endpoint, const Acknowledgement& got) {
    Channel& channel = *endpoint.channel;
    const bool had_numbers = channel.unordered.has_room_for(1);
    const auto let_go = [&](Fragment& fragment) { m.fragments.let_go(fragment); };
    if (!channel.on_acknowledged(got.expected)) damaged("acknowledgement", endpoint.proc, got.expected);
    channel.held.acknowledge(channel.window.first(), let_go);
    if (!channel.unordered.landed_before(got.unordered)) damaged("acknowledgement", endpoint.proc, got.unordered);
    channel.held_unordered.acknowledge(channel.unordered.first(), let_go);
    if (!had_numbers && channel.unordered.has_room_for(1)) return_late_credits(m, endpoint);
}

void take_receive_credits(Endpoint& endpoint, sched::Grant grant) {
    Channel& channel = *endpoint.channel;
    const Rail* const rail = channel.rails.find(grant.rail);
    const bool connected = channel.state == ChannelState::kConnected;
    if (connected && (rail == nullptr || !rail->counts_credits)) damaged("rail of credits", endpoint.proc, grant.rail);
    if (!channel.on_grant(grant)) damaged("credits", endpoint.proc, grant.count);
}

}  // namespace coop::ib
