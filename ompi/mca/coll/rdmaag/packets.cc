// SPDX-License-Identifier: BSD-3-Clause
//
// The packets of a group: short steps, announcements, notices, and long steps that are not put.
#include <algorithm>
#include <cstring>

#include "diagnose.h"
#include "group.h"
#include "running.h"

namespace coop::ag {
namespace {

constexpr std::uint32_t kFlags = MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
constexpr std::size_t kMaxData = 64 * 1024;  // bytes of a packet of a long step
constexpr std::uint32_t kMostUnderWay = 16;  // such packets under way: a transport could buffer the whole step

constexpr Fault fault_of(coll::Kind kind) noexcept {
    switch (kind) {
    case coll::Kind::kShort: return Fault::kCorruptMatch;
    case coll::Kind::kAnnounce:
    case coll::Kind::kBuffer: return Fault::kCorruptRts;
    case coll::Kind::kData: return Fault::kCorruptFrag;
    case coll::Kind::kLanded: break;
    }
    return Fault::kCorruptFin;
}

extern "C" void mca_coll_rdmaag_on_packet(mca_btl_base_module_t* btl, mca_btl_base_tag_t,
                                          mca_btl_base_descriptor_t* descriptor, void*) {
    const async::Polling turn(handler().get());
    const mca_btl_base_segment_t& segment = *descriptor->des_segments;
    coll::Packet packet{};
    const bool whole = segment.seg_len >= sizeof packet;
    if (whole) std::memcpy(&packet, segment.seg_addr.pval, sizeof packet);
    const char* why = whole ? coll::find_damage(packet, segment.seg_len) : "length";
    Group* group = nullptr;
    if (!why) {
        group = Group::find(packet.context);
        why = group ? group->on_packet(packet, static_cast<std::byte*>(segment.seg_addr.pval) + sizeof packet, btl)
                    : "context id";
    }
    if (why) wrong_packet(packet, whole, why);
}

}  // namespace

const char* Group::on_packet(const coll::Packet& packet, const void* data, mca_btl_base_module_t* btl) noexcept {
    if (packet.source >= members_.processes()) return "source";
    if (packet.kind == coll::Kind::kBuffer) return buffers_->on_packet(packet, data, btl);
    const Following following(*this);
    return inbox_->on_packet(packet, data, btl);
}

coll::Packet Group::packet_of(const Running& call, coll::Kind kind, std::uint32_t step) const noexcept {
    coll::Packet packet{};
    packet.kind = kind;
    packet.context = members_.context();
    packet.source = members_.rank();
    packet.lap = call.job->lap;
    packet.step = step;
    return packet;
}

// Sends the packet and the pieces of the call's memory after it. The bytes of an announced handle lie in the staging buffer
// already. False: the transport has no room just now.
bool Group::send(Running& call, mca_bml_base_btl_t& btl, coll::Packet& packet, const coll::Pieces& pieces) noexcept {
    if (has_to_wait(*btl.btl)) return false;
    const bool announces = packet.kind == coll::Kind::kAnnounce || packet.kind == coll::Kind::kBuffer;
    const std::size_t following = announces ? packet.parts : pieces.bytes();
    const std::size_t bytes = sizeof packet + following;
    coll::seal(packet);
    if (process.faults.armed()) [[unlikely]] {
        if (process.faults.hit(Fault::kBusy)) return false;
        process.faults.corrupt(fault_of(packet.kind), &packet, sizeof packet);
    }
    const auto fill = [&](std::byte* to) {
        std::memcpy(to, &packet, sizeof packet);
        to += sizeof packet;
        if (announces && to != staging_.data() + sizeof packet)
            std::memcpy(to, staging_.data() + sizeof packet, following);
        for (const coll::Piece& piece : pieces) {
            std::memcpy(to, call.job->memory + piece.offset, piece.bytes);
            to += piece.bytes;
        }
    };
    const BtlExtension* const urgent = call.job->urgent ? extension_of(*btl.btl) : nullptr;
    if (bytes <= staging_.size() && btl.btl->btl_sendi && !process.faults.hit(Fault::kSendi)) {
        static opal_convertor_t no_payload{};  // some transports look at its flags even so
        fill(staging_.data());
        if (urgent ? urgent->send_urgent(btl.btl, btl.btl_endpoint, staging_.data(), bytes, kTag)
                   : mca_bml_base_sendi(&btl, &no_payload, staging_.data(), bytes, 0, MCA_BTL_NO_ORDER, kFlags, kTag,
                                        nullptr) == OMPI_SUCCESS)
            return true;
    }
    mca_btl_base_descriptor_t* descriptor = nullptr;
    if (!process.faults.hit(Fault::kAlloc))
        mca_bml_base_alloc(&btl, &descriptor, MCA_BTL_NO_ORDER, bytes, kFlags | MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
    if (!descriptor) return false;
    fill(static_cast<std::byte*>(descriptor->des_segments->seg_addr.pval));
    if (urgent) urgent->make_urgent(btl.btl, descriptor);
    descriptor->des_cbfunc = on_sent;
    descriptor->des_cbdata = &call;
    call.under_way.fetch_add(1, std::memory_order_relaxed);
    const int rc = mca_bml_base_send(&btl, descriptor, kTag);
    if (rc >= 0) return true;
    call.under_way.fetch_sub(1, std::memory_order_relaxed);
    mca_bml_base_free(&btl, descriptor);
    if (!is_shortage(rc)) transport_failed(*btl.btl, "send", rc);
    return false;
}

void Group::on_sent(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t* descriptor,
                    int status) {
    // The partner would wait for this packet for ever.
    if (status < 0) transport_failed(*btl, "send", status);
    const async::Polling turn(handler().get());
    Running& call = *static_cast<Running*>(descriptor->des_cbdata);
    const Following following(*call.group);
    call.under_way.fetch_sub(1, std::memory_order_release);
}

bool Group::announce(Running& call, std::uint32_t to, std::uint32_t number) noexcept {
    mca_bml_base_endpoint_t& there = members_.endpoint(to);
    mca_bml_base_btl_t* const puts = call.job->in_packets ? nullptr : puts_to(there);
    if (puts && has_to_wait(*puts->btl)) return false;
    coll::Packet packet = packet_of(call, coll::Kind::kAnnounce, number);
    packet.at = reinterpret_cast<std::uintptr_t>(call.job->memory);
    if (puts) {
        const Registered& memory = registered(call, *puts);
        packet.bytes = memory.usable;
        if (memory.handle) {
            packet.parts = static_cast<std::uint32_t>(puts->btl->btl_registration_handle_size);
            std::memcpy(staging_.data() + sizeof packet, memory.handle, packet.parts);
        }
    }
    // It travels by the transport that the handle belongs to, so that the other side knows it.
    if (!send(call, puts ? *puts : *packets_to(there), packet, {})) return false;
    process.count(Count::kAnnouncements);
    return true;
}

bool Group::send_short(Running& call, std::uint32_t to, std::uint32_t step, const coll::Pieces& pieces) noexcept {
    // A write into a buffer interrupts nobody.
    switch (call.job->urgent
                ? BufferRow::Put::kNever
                : buffers_->put(to, step, call.job->lap, call.job->memory, pieces, pieces.bytes() <= packet_bytes_)) {
    case BufferRow::Put::kStarted: break;
    case BufferRow::Put::kBusy: return false;
    case BufferRow::Put::kNever:
        if (!send_short_packet(call, to, step, pieces)) return false;
    }
    process.count(Count::kShortSteps);
    return true;
}

bool Group::send_short_packet(Running& call, std::uint32_t to, std::uint32_t step,
                              const coll::Pieces& pieces) noexcept {
    coll::Packet packet = packet_of(call, coll::Kind::kShort, step);
    packet.bytes = pieces.bytes();
    return send(call, *packets_to(members_.endpoint(to)), packet, pieces);
}

bool Group::send_notice(Running& call, mca_bml_base_btl_t& btl, std::uint32_t step, std::uint64_t bytes) noexcept {
    coll::Packet packet = packet_of(call, coll::Kind::kLanded, step);
    packet.bytes = bytes;
    packet.parts = 1;
    return send(call, btl, packet, {});
}

bool Group::send_empty(Running& call, std::uint32_t to, std::uint32_t step) noexcept {
    return send_notice(call, *packets_to(members_.endpoint(to)), step, 1);
}

std::uint64_t Group::send_data(Running& call, std::uint32_t to, std::uint32_t step, std::uint64_t at,
                               const coll::Piece& piece) noexcept {
    if (call.under_way.load(std::memory_order_relaxed) >= kMostUnderWay) return 0;
    mca_bml_base_btl_t& btl = *packets_to(members_.endpoint(to));
    const std::uint64_t most = std::min(kMaxData, btl.btl->btl_max_send_size - sizeof(coll::Packet));
    coll::Packet packet = packet_of(call, coll::Kind::kData, step);
    packet.bytes = std::min(piece.bytes, most);
    packet.at = at;
    coll::Pieces pieces;
    pieces.add({piece.offset, packet.bytes});
    if (!send(call, btl, packet, pieces)) return 0;
    process.count(Count::kDataPackets);
    return packet.bytes;
}

bool receive_packets() noexcept {
    static const bool registered = [] {
        if (!pml_uses_btls() || !mca_bml.bml_register) return false;
        look_up_extensions();
        return mca_bml.bml_register(kTag, mca_coll_rdmaag_on_packet, nullptr) == OMPI_SUCCESS;
    }();
    return registered;
}

std::size_t longest_packet(ompi_communicator_t& comm, std::uint32_t rank) noexcept {
    mca_bml_base_endpoint_t* const there = mca_bml_base_get_endpoint(
        ompi_comm_peer_lookup(&comm, static_cast<int>(rank)));
    const mca_bml_base_btl_t* const btl = there ? packets_to(*there) : nullptr;
    return btl ? btl->btl->btl_eager_limit : 0;
}

}  // namespace coop::ag
