// SPDX-License-Identifier: BSD-3-Clause
#include "message.h"

#include <algorithm>
#include <cstring>

#include "coop/async/urgent.h"
#include "diagnose.h"
#include "module.h"
#include "rail.h"
#include "request.h"

namespace coop::ib {
namespace {

// From the rail that owes most.
sched::Grant take_owed_receives(Channel& channel) {
    Rail* most = nullptr;
    for (Rail& rail : channel.rails)
        if (most == nullptr || rail.own_receives.owed() > most->own_receives.owed()) most = &rail;
    if (most == nullptr || most->own_receives.owed() == 0) return {};
    return {most->number(), most->own_receives.take_owed()};
}

// Sequence numbers follow the order in which messages are handed to the rails, even if a rail queues them.
void seal(Channel& channel, Header& header) {
    header.psn = channel.window.take();
    header.ring_credits = header.receive_credits = 0;
    header.check = check_of(header);
}

// The address in the peer's ring where a message of `length` is to be written, its tail added; 0: the ring does not take it.
std::uint64_t enter_ring(Channel& channel, Header& header, std::uint32_t length) {
    if (!channel.outbox || header.kind != static_cast<std::uint8_t>(Kind::kMessage) || !channel.outbox->slots.fits(length)) return 0;
    const auto place = channel.outbox->slots.take();
    if (!place) return 0;
    const sched::RingTail tail = sched::make_tail(length, *place);
    std::memcpy(reinterpret_cast<std::byte*>(&header) + sched::padded(length), &tail, sizeof tail);
    ++channel.ring_messages;
    return channel.outbox->end_of(place->slot) - sched::written(length);
}

// A fragment goes whole over one rail, like a message below the striping threshold.
sched::RailIndex rail_of_fragment(Module& m, Channel& channel, std::uint32_t bytes) {
    return channel.scheduler->rail_of_small(std::min<std::uint64_t>(bytes, m.sched.striping_threshold - 1));
}

// Null: no memory.
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

bool may_send(const Channel& channel) { return channel.beyond.empty() && channel.window.has_room(); }

void send_fragment(Module& m, Channel& channel, Fragment& fragment) {
    const std::uint32_t length = static_cast<std::uint32_t>(sizeof(Header)) + fragment.header->bytes;
    const bool urgent = (fragment.base.des_flags & async::kUrgentFlag) != 0;
    fragment.ring_address = urgent ? 0 : enter_ring(channel, *fragment.header, length);
    seal(channel, *fragment.header);
    fragment.work.rail = rail_of_fragment(m, channel, length);
    submit(m, fragment.work);
}

}  // namespace

// Add credits only when posting; a queued message holding them could deadlock both sides.
void load_credits(Channel& channel, Header& header) {
    header.ring_credits = channel.inbox ? channel.inbox->slots.take_owed() : std::uint16_t{0};
    header.receive_credits = channel.has_own_receives ? take_owed_receives(channel).word() : std::uint16_t{0};
    if (header.ring_credits != 0 || header.receive_credits != 0) header.check = check_of(header);
}

void post_fragment(Module& m, Endpoint& endpoint, Fragment& fragment) {
    Channel& channel = *endpoint.channel;
    if (may_send(channel)) return send_fragment(m, channel, fragment);
    ++channel.window_waits;
    channel.beyond.push_back(&fragment.work);
    send_beyond(m, channel);
}

// If the window stays full, inline sends may have landed whose completion nobody has asked for: ask now.
void send_beyond(Module& m, Channel& channel) {
    while (!channel.beyond.empty() && channel.window.has_room()) send_fragment(m, channel, Fragment::of(*channel.beyond.pop_front()));
    if (channel.beyond.empty()) return;
    for (Rail& rail : channel.rails) mark_now(m, rail);
}

bool post_inline(Module& m, Endpoint& endpoint, Header& header, bool urgent) {
    Channel& channel = *endpoint.channel;
    if (!may_send(channel)) return false;
    const std::uint32_t length = static_cast<std::uint32_t>(sizeof(Header)) + header.bytes;
    Rail& rail = channel.rails[rail_of_fragment(m, channel, length)];
    if (length > rail.max_inline || !has_room(rail)) return false;
    ibv_sge sge{reinterpret_cast<std::uint64_t>(&header), length, 0};
    ibv_send_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    if (urgent) request.send_flags = IBV_SEND_SOLICITED;
    // An urgent message is sent: a write into the ring raises no interrupt.
    const std::uint64_t address = !urgent && sched::written(length) <= rail.max_inline ? enter_ring(channel, header, length) : 0;
    if (address != 0) {
        sge.length = sched::written(length);
        fill_ring_write(*channel.outbox, address, rail, request);
    } else if (rail.counts_credits && !channel.receive_credits[rail.number()].take()) {
        return false;
    }
    seal(channel, header);
    load_credits(channel, header);
    post_inline_now(m, rail, request, header.psn);
    return true;
}

bool post_control(Module& m, Endpoint& endpoint, Kind kind, std::span<const std::byte> payload) {
    Fragment* fragment = make_control(m, endpoint, kind, payload);
    if (fragment != nullptr) post_fragment(m, endpoint, *fragment);
    return fragment != nullptr;
}

// Jump the queue: both sides may be blocked on credits.
void post_credits(Module& m, Endpoint& endpoint) {
    Fragment* fragment = make_control(m, endpoint, Kind::kCredits, {});
    if (fragment == nullptr) return;
    Channel& channel = *endpoint.channel;
    ++channel.credit_messages;
    fragment->work.rail = rail_of_fragment(m, channel, sizeof(Header));
    submit_first(m, fragment->work);
}

void take_receive_credits(Module& m, Endpoint& endpoint, sched::Grant grant) {
    Channel& channel = *endpoint.channel;
    const bool connected = channel.state == ChannelState::kConnected;
    Rail* const rail = channel.rails.find(grant.rail);
    if (connected && (rail == nullptr || !rail->counts_credits)) damaged("rail of credits", endpoint.proc, grant.rail);
    if (!channel.receive_credits[grant.rail].give(grant.count)) damaged("credits", endpoint.proc, grant.count);
    if (connected) pump(m, channel, *rail);
}

}  // namespace coop::ib
