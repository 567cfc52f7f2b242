// SPDX-License-Identifier: BSD-3-Clause
//
// Packets of the lane: headers and payload straight into the ring of the peer. (packet.h does the same for transports)
#pragma once

#include <cstring>

#include "coop/base/short_copy.h"

#include "comm.h"
#include "device_memory.h"
#include "pack_part.h"
#include "packet.h"
#include "stack_convertor.h"

namespace coop::pml {

// The length of a message.
[[gnu::always_inline]] inline std::size_t bytes_of(const opal_datatype_t& type, std::size_t count) noexcept {
    return type.size * count;
}

// Whether the bytes of such a message lie in order and without gaps.
inline bool is_contiguous(const opal_datatype_t& type, std::size_t count) noexcept {
    return (type.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) && (count == 1 || (type.flags & OPAL_DATATYPE_FLAG_NO_GAPS));
}

// Where the bytes of such a message begin. An integer, because pointer arithmetic on MPI_BOTTOM, which is null, is undefined.
inline const char* start_of(const opal_datatype_t& type, const void* buffer) noexcept {
    return reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                         static_cast<std::uintptr_t>(type.true_lb));
}

// Where the bytes of a message lie in a buffer of the user in order and without gaps. Null: nowhere, or perhaps in
// device memory.
inline const char* contiguous_base(const opal_datatype_t& type, std::size_t count, const void* buffer) noexcept {
    return is_contiguous(type, count) && !device_memory_is_possible() ? start_of(type, buffer) : nullptr;
}

// Whether a test wants this packet to be refused (pml_coop_fault); counted as a transport's refusal.
inline bool is_refused_by_fault() noexcept {
    if (!module.faults.hit(Fault::kBusy)) return false;
    module.counters.count(Counter::kRetrySendBusy);
    return true;
}

// The payload of the RTS (lane_payload()) and of each fragment (lane_fragment()) of a message that takes several packets. The receiver
// can copy a packet when all of it is written, so with longer ones it begins later; shorter ones need more headers.
constexpr std::size_t kLaneFragment = 32 * 1024;
inline std::size_t lane_payload(const LaneOut& lane) noexcept {
    return std::min(lane.longest_payload(), static_cast<std::size_t>(module.config.lane_small_max));
}
inline std::size_t lane_fragment(const LaneOut& lane) noexcept {
    return std::min(lane.longest_payload(), kLaneFragment);
}

inline bool kernel_may_copy(const Peer& peer, rndv::Wish wish) noexcept {
    return wish != rndv::Wish::kSend && !peer.copy_denied();
}

// The largest message that may use the lane if it does not go at once.
inline std::size_t longest_for(const LaneOut& lane, const Peer& peer, bool waits, rndv::Wish wish) noexcept {
    return lane.message_max(waits, kernel_may_copy(peer, wish));
}

// The payload in the cache line of a record's word. It is written last: the receiver polls the line, and each poll takes it
// away from this core.
constexpr std::size_t kInFirstLine = node::kLaneLine - node::kLaneWord - sizeof(wire::MatchWords);
static_assert(kInFirstLine == kShortCopy);

inline void copy_behind_first(std::byte* payload, const char* from, std::size_t bytes) noexcept {
    if (bytes > kInFirstLine) std::memcpy(payload + kInFirstLine, from + kInFirstLine, bytes - kInFirstLine);
}
inline void copy_first(std::byte* payload, const char* from, std::size_t bytes) noexcept {
    if (bytes >= kInFirstLine) std::memcpy(payload, from, kInFirstLine);
    else copy_short(payload, reinterpret_cast<const std::byte*>(from), bytes);
}

// The header with the damage that a test wants. By value: it stays in a register.
inline wire::MatchWords damaged_if_told(wire::MatchWords header) noexcept {
    if (!module.faults.armed()) [[likely]]
        return header;
    wire::MatchWords damaged = header;
    damage_if_told(wire::Kind::kMatch, &damaged, sizeof damaged);
    return damaged;
}

// Sends an eager message from the user's buffer. make_header() is called only if there is room: a message that has taken
// its sequence number has to be sent. Returns false if the ring is full.
template <class MakeHeader>
bool send_whole(LaneOut& lane, const Peer& peer, const void* buf, std::size_t count, ompi_datatype_t* datatype,
                MakeHeader&& make_header, std::size_t bytes) noexcept {
    return lane.put(wire::Kind::kMatch, sizeof(wire::MatchWords) + bytes, [&](std::byte* body) {
        const char* const from = contiguous_base(datatype->super, count, buf);
        std::byte* const payload = body + sizeof(wire::MatchWords);
        const auto copy = [&] { copy_behind_first(payload, from, bytes); };
        if (from && bytes >= lane.timed_from()) lane.copy_long(bytes, copy);
        else if (from) copy();
        else if (bytes > 0) pack(peer, buf, count, datatype, payload, bytes);
        if (from) copy_first(payload, from, bytes);
        const wire::MatchWords header = damaged_if_told(make_header());
        std::memcpy(body, &header, sizeof header);
        return sizeof header + bytes;
    });
}

// The hot path of a sender: a message of at most lane.short_max() bytes from a contiguous buffer of the host. The same as
// send_whole(), without what such a message does not need, and without the faults of tests. Returns false if the ring is full.
template <class MakeHeader>
[[gnu::always_inline]] inline bool send_short(LaneOut& lane, const char* from, MakeHeader&& make_header,
                                              std::size_t bytes) noexcept {
    return lane.put(
        wire::Kind::kMatch, sizeof(wire::MatchWords) + bytes, [&](std::byte * body) __attribute__((always_inline)) {
            std::byte* const payload = body + sizeof(wire::MatchWords);
            copy_behind_first(payload, from, bytes);
            copy_first(payload, from, bytes);
            const wire::MatchWords header = make_header();
            std::memcpy(body, &header, sizeof header);
            return sizeof header + bytes;
        });
}

// Like send_whole(), but sender and receiver copy the message part by part. Only if the sender waits and
// may_send_parts(). Returns false if the ring is full, the buffer has gaps or may be in device memory, or the receiver
// belongs to another job.
template <class MakeHeader>
bool send_in_parts(LaneOut& lane, const void* buf, std::size_t count, ompi_datatype_t* datatype,
                   MakeHeader&& make_header, std::size_t bytes) noexcept {
    const char* const from = contiguous_base(datatype->super, count, buf);
    return from && lane.put_in_parts([&] { return damaged_if_told(make_header()); }, from, bytes);
}

// Sends a header with at most `payload` bytes of the message from byte `at` on; set_payload(header, n) tells it their
// number before it is sealed. Sets `payload` to the number. Returns false if the ring is full. Precondition: `payload` > 0.
template <class Header, class SetPayload>
bool send_packed(LaneOut& lane, wire::Kind kind, Header header, opal_convertor_t& convertor, std::size_t at,
                 std::size_t& payload, SetPayload&& set_payload) noexcept {
    if (is_refused_by_fault()) return false;
    return lane.put(kind, sizeof header + payload, [&](std::byte* body) -> std::size_t {
        payload = pack_part(convertor, at, body + sizeof header, payload);
        set_payload(header, payload);
        wire::seal(header);
        damage_if_told(kind, &header, sizeof header);
        std::memcpy(body, &header, sizeof header);
        return sizeof header + payload;
    });
}

// Sends a control packet through the lane if there is one with room, otherwise by the transport, whose faults tests can
// ask for. A full ring does not divert an RTS to the transport: there it would overtake what the ring still holds, and if
// that is half of all sequence numbers, the receiver could not tell the order.
inline Sent send_control(const Peer& peer, mca_bml_base_btl_t& btl, wire::Kind kind, const void* packet,
                         std::size_t bytes) noexcept {
    const bool is_rts = kind == wire::Kind::kRts;
    if (!is_rts) peer.begin_answer();
    LaneOut* const lane = peer.lane();
    if (!lane || bytes > lane->longest_payload() || module.faults.armed())
        return send_control(btl, kind, packet, bytes, is_rts ? &peer : nullptr);
    const auto write = [&](std::byte* body) {
        std::memcpy(body, packet, bytes);
        return bytes;
    };
    if (lane->put(kind, bytes, write)) return Sent::kYes;
    return is_rts ? Sent::kRefused : send_control(btl, kind, packet, bytes);
}

// Whether this process may send a message in parts. Not among threads or on a crowded node: it could lose its CPU in the
// middle of the message and hold up the receiver.
inline bool may_send_parts() noexcept { return !module.threads && !module.crowded; }

// Whether a call that waits for the peer, or for anybody, should look at the lane more often than at the transports. Not
// if other threads may need the progress engine, or other processes this CPU.
inline bool waits_on_lane() noexcept { return has_lane_memory() && !module.threads && !module.crowded; }
inline bool waits_on_lane(const Peer& peer) noexcept { return waits_on_lane() && peer.neighbour; }

}  // namespace coop::pml
