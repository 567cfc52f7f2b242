// SPDX-License-Identifier: BSD-3-Clause
//
// Makes, offers, accepts and reads rings, and handles their credits.
#include "ring.h"

#include <algorithm>
#include <cstring>

#include "coop/path/seal.h"
#include "coop/rail/verbs/rc.h"
#include "diagnose.h"
#include "message.h"
#include "module.h"
#include "write_order.h"

namespace coop::ib {
namespace {

constexpr std::uint64_t kOfferSeed = 0x72696e67;  // "ring"

std::uint16_t check_of(const RingOffer& offer) {
    return path::check_of(std::as_bytes(std::span(&offer, 1)), offsetof(RingOffer, check), kOfferSeed);
}

// The number of bytes of a peer's write that arrive in order on every rail. Of a rail that may open later, the packet is
// known.
std::uint32_t in_order_bytes(const Module& m, const Channel& channel) {
    std::uint32_t bytes = sched::kWholeWrite;
    for (const Rail& rail : channel.rails)
        if (!lands_in_order(m, rail)) bytes = std::min(bytes, rail::path_mtu_bytes(rail.qp.get()));
    for (sched::RailIndex number = 0; number < channel.repair.size(); ++number) {
        if ((channel.rails.up() & sched::bit_of(number)) != 0) continue;
        const path::PathChoice& path = channel.repair[number].path;
        const std::uint8_t mtu = std::min(m.own.ports[path.local_port].mtu,
                                          channel.endpoint.remote.ports[path.remote_port].mtu);
        bytes = std::min<std::uint32_t>(bytes, path::mtu_bytes(mtu));
    }
    return bytes;
}

// With failover a write may be repeated and land after its slots are free. It would then overwrite the laps that the
// receiver has restored. So with failover each message has one slot, and the ring has fewer slots. A repeated message is
// sent, so with failover none is longer than a receive buffer.
sched::RingShape shape_of(const Module& m, const Channel& channel) {
    const std::uint32_t in_order = in_order_bytes(m, channel);
    auto wanted = static_cast<std::uint32_t>(m.given.ring_bytes);
    if (channel.repairs) wanted = std::min(wanted, static_cast<std::uint32_t>(m.buffer_bytes()));
    const std::uint32_t most = sched::bytes_in_order(wanted, in_order);
    const auto slots = static_cast<std::uint32_t>(m.given.ring_slots);
    // The receiver keeps back fewer than half of the credits, so the sender has at least this many in the end.
    const std::uint32_t least = sched::padded(most / (slots / 2 + 1) + 1);
    const std::uint32_t slot = std::max(sched::padded(static_cast<std::uint32_t>(m.given.ring_slot_bytes)), least);
    const sched::RingShape shape{slots, std::min(slot, most), most};
    if (!channel.repairs || !shape.has_short_slots()) return shape;
    const std::uint64_t fewer = shape.ring_bytes() / sched::RingShape{1, most}.stride();
    return {std::max(static_cast<std::uint32_t>(fewer), sched::kMinRingSlots), most};
}

// Returns null if there is no memory or it cannot be registered. This is not an error: the peer continues to send.
std::unique_ptr<Inbox> make_inbox(Module& m, Endpoint& endpoint) {
    const sched::RingShape shape = shape_of(m, *endpoint.channel);
    std::vector<rail::Hca*> hcas;
    for (rail::Hca& hca : m.hcas) hcas.push_back(&hca);
    auto inbox = std::make_unique<Inbox>(m.inboxes, endpoint, shape);
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    if (!inbox->memory.make(shape.ring_bytes(), hcas, access)) return nullptr;
    for (std::uint32_t slot = 0; slot < shape.slots; ++slot) {
        inbox->buffers[slot].ring = inbox.get();
        inbox->buffers[slot].slot = slot;
    }
    inbox->watch_next();
    return inbox;
}

RingOffer offer_of(const Module& m, const Inbox& inbox) {
    RingOffer offer{};
    offer.address = reinterpret_cast<std::uint64_t>(inbox.memory.data());
    offer.slots = inbox.slots.shape().slots;
    offer.slot_bytes = inbox.slots.shape().slot_bytes;
    offer.most_bytes = inbox.slots.shape().most_bytes;
    offer.hcas = static_cast<std::uint16_t>(m.hcas.size());
    for (std::uint32_t hca = 0; hca < offer.hcas; ++hca) offer.rkey[hca] = inbox.memory.rkey(hca);
    offer.check = check_of(offer);
    return offer;
}

void offer_ring(Module& m, Endpoint& endpoint) {
    if (m.inboxes.size() >= m.given.ring_peers) return;
    auto inbox = make_inbox(m, endpoint);
    if (!inbox) return;
    const RingOffer offer = offer_of(m, *inbox);
    if (!post_control(m, endpoint, Kind::kRingOffer, std::as_bytes(std::span(&offer, 1)))) return;
    m.inboxes.add(*inbox);
    endpoint.channel->inbox = std::move(inbox);
}

// The number of the peer's HCAs, according to its published ports.
std::uint32_t hcas_of(const path::PortList& remote) {
    std::uint32_t hcas = 0;
    for (const path::PortRecord& port : remote.ports) hcas = std::max<std::uint32_t>(hcas, port.hca + 1u);
    return hcas;
}

const char* word_of(sched::TailFlaw flaw) {
    switch (flaw) {
    case sched::TailFlaw::kNone: break;
    case sched::TailFlaw::kCheck: return "check word of a ring slot";
    case sched::TailFlaw::kSlot: return "number of a ring slot";
    case sched::TailFlaw::kBytes: return "length in a ring slot";
    }
    return "ring slot";
}

void take_offer(Endpoint& endpoint, const Header& header) {
    RingOffer offer;
    std::memcpy(&offer, &header + 1, sizeof offer);
    const sched::RingShape shape{offer.slots, offer.slot_bytes, offer.most_bytes};
    Channel& channel = *endpoint.channel;
    if (offer.check != check_of(offer)) damaged("check word of an offered ring", endpoint.proc, offer.check);
    if (!shape.valid() || (channel.repairs && shape.has_short_slots()))
        damaged("slots or bytes of an offered ring", endpoint.proc,
                std::uint64_t{offer.slots} << 32 | offer.slot_bytes);
    if (offer.hcas > kMostRkeys || offer.hcas < hcas_of(endpoint.remote))
        damaged("HCAs of an offered ring", endpoint.proc, offer.hcas);
    if (channel.outbox) damaged("second offer of a ring", endpoint.proc, offer.address);
    channel.outbox.emplace(shape);
    channel.outbox->address = offer.address;
    std::memcpy(channel.outbox->rkey, offer.rkey, sizeof offer.rkey);
}

}  // namespace

void count_towards_ring(Module& m, Endpoint& endpoint) {
    Channel& channel = *endpoint.channel;
    // Messages may arrive before this side has taken the news of the connection. Until then no offer can be sent.
    if (channel.until_ring == 0 || channel.state != ChannelState::kConnected) return;
    if (--channel.until_ring == 0) offer_ring(m, endpoint);
}

void take_control(Endpoint& endpoint, const Header& header) {
    if (header.kind == static_cast<std::uint8_t>(Kind::kRingOffer)) take_offer(endpoint, header);
}

void take_ring_credits(Module& m, Endpoint& endpoint, std::uint32_t credits) {
    Channel& channel = *endpoint.channel;
    auto& outbox = channel.outbox;
    if (!outbox || !outbox->slots.on_credits(credits)) damaged("credits of a ring", endpoint.proc, credits);
    if (!channel.repairs || credits == 0) return;
    // Slots become free when their messages have been handed on, which is done in the order of the sequence.
    const std::uint32_t slots = outbox->slots.shape().slots, last = (outbox->oldest + credits - 1) % slots;
    outbox->oldest = (last + 1) % slots;
    take_acknowledgement(m, endpoint, {outbox->psns[last] + 1, channel.unordered.first()});
}

ReceiveBuffer* take_slot(Inbox& ring) {
    const std::byte* const end = ring.end_of_next();
    // Acquire: the rest of the slot, written before the last byte, is read after it.
    const std::uint8_t last = __atomic_load_n(reinterpret_cast<const std::uint8_t*>(end - 1), __ATOMIC_ACQUIRE);
    const sched::SlotState state = ring.slots.state(last);
    if (state == sched::SlotState::kEmpty) return nullptr;
    if (state == sched::SlotState::kBroken) damaged("lap of a ring slot", ring.endpoint.proc, last);
    sched::RingTail tail;
    std::memcpy(&tail, end - sizeof tail, sizeof tail);
    if (const auto flaw = ring.slots.flaw(tail, sizeof(Header)); flaw != sched::TailFlaw::kNone)
        damaged(word_of(flaw), ring.endpoint.proc, tail.bytes);
    ReceiveBuffer& buffer = ring.buffers[ring.slots.take(tail)];
    buffer.data = const_cast<std::byte*>(end) - sched::written(tail.bytes);
    buffer.bytes = tail.bytes;
    ring.watch_next();
    return &buffer;
}

void finish_slot(Module& m, const ReceiveBuffer& slot) {
    sched::RingReceiver& slots = slot.ring->slots;
    for (std::uint32_t i = slots.others(slot.slot); i > 0; --i)
        slot.ring->last_byte(slot.slot + i) = std::byte{slots.lap(slot.slot)};
    slots.finish(slot.slot);
    if (slots.owes_half()) post_credits(m, slot.ring->endpoint);
}

}  // namespace coop::ib
