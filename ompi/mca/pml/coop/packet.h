// SPDX-License-Identifier: BSD-3-Clause
//
// Hands packets to a BTL and translates its return codes to Sent.
#pragma once

#include <algorithm>

#include "comm.h"

namespace coop::pml {

// The BTL tags under which the kinds of packets travel.
constexpr mca_btl_base_tag_t tag_of(wire::Kind kind) noexcept {
    return static_cast<mca_btl_base_tag_t>(MCA_BTL_TAG_PML + static_cast<int>(kind));
}

// The sealed header of an eager message.
[[gnu::always_inline]] inline wire::MatchWords match_words(const ompi_communicator_t* comm, int tag,
                                                           std::uint16_t sequence) noexcept {
    return wire::sealed_match(static_cast<std::uint16_t>(comm->c_contextid), comm->c_my_rank, tag, sequence);
}

// A header, followed by a registration handle or a list of pieces.
constexpr std::size_t kLongestControl = wire::kLargestHeader +
                                        std::max(wire::kMaxHandleBytes, wire::kMaxPieces * sizeof(wire::Piece));

// True if messages to and from the peer may be copied piece by piece: its transport needs no registration handle, and a
// list of pieces fits into a packet.
inline bool takes_pieces(const Peer& peer) noexcept {
    return peer.neighbour && peer.rdma && peer.rdma->btl->btl_registration_handle_size == 0 &&
           peer.rdma->btl->btl_eager_limit >= kLongestControl;
}

enum class Sent {
    kYes,      // the transport has it
    kRefused,  // no resources just now: retry later
};

// Sends a control packet without payload and callback: a header, and the handle, slot or pieces that follow it. It is
// copied before this returns. `kind` also selects the fault knob that may damage it.
// `peer`: of an RTS, which has a sequence number (Peer::begin_unsent()); null for other kinds.
Sent send_control(mca_bml_base_btl_t& btl, wire::Kind kind, const void* header, std::size_t bytes,
                  const Peer* peer = nullptr) noexcept;

// A packet whose payload the BTL takes from the convertor's position. The caller writes the header into the first
// `room` bytes.
//
//   begin_packet()   returns a descriptor with `payload` bytes packed (sets `payload` to fewer if a data element
//                    does not fit), or null: refused
//   finish_packet()  hands it to the BTL; on_sent is called exactly once unless refused
mca_btl_base_descriptor_t* begin_packet(mca_bml_base_btl_t& btl, opal_convertor_t& convertor, std::size_t room,
                                        std::size_t& payload, std::uint32_t flags) noexcept;
Sent finish_packet(mca_bml_base_btl_t& btl, mca_btl_base_descriptor_t* descriptor, wire::Kind kind,
                   mca_btl_base_completion_fn_t on_sent, void* context) noexcept;

// Flips a bit of a sealed header if the fault knob of its kind asks for it.
inline void damage_if_told(wire::Kind kind, void* header, std::size_t bytes) noexcept {
    if (module.faults.armed()) [[unlikely]]
        module.faults.corrupt(static_cast<Fault>(static_cast<int>(Fault::kCorruptMatch) + static_cast<int>(kind) - 1),
                              header, bytes);
}
static_assert(static_cast<int>(Fault::kCorruptFin) - static_cast<int>(Fault::kCorruptMatch) ==
              static_cast<int>(wire::Kind::kFin) - static_cast<int>(wire::Kind::kMatch));

// Writes and seals the header of a packet. A registration handle that follows it must be in place already.
template <class Header>
void write_header(mca_btl_base_descriptor_t& descriptor, wire::Kind kind, const Header& header) noexcept {
    auto& place = *static_cast<Header*>(descriptor.des_segments->seg_addr.pval);
    place = header;
    wire::seal(place);
    damage_if_told(kind, &place, sizeof place);
}

// Sends an eager message with btl_sendi, which copies it before this returns. Returns false if the transport has no
// sendi or no room just now.
inline bool send_immediate(mca_bml_base_btl_t& btl, opal_convertor_t& convertor, wire::MatchWords header,
                           std::size_t bytes) noexcept {
    if (!btl.btl->btl_sendi || module.faults.hit(Fault::kSendi)) return false;
    damage_if_told(wire::Kind::kMatch, &header, sizeof header);
    return mca_bml_base_sendi(&btl, &convertor, &header, sizeof header, bytes, MCA_BTL_NO_ORDER,
                              MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP, tag_of(wire::Kind::kMatch),
                              nullptr) == OMPI_SUCCESS;
}

// The same for a payload that lies in order and without gaps in host memory: no convertor is prepared. `send`: the
// transport's BtlExtension::send_contiguous, or send_long for a packet above the eager limit.
inline bool send_immediate(mca_bml_base_btl_t& btl, decltype(BtlExtension::send_contiguous) send,
                           wire::MatchWords header, const void* payload, std::size_t bytes) noexcept {
    if (module.faults.hit(Fault::kSendi)) return false;
    damage_if_told(wire::Kind::kMatch, &header, sizeof header);
    return send(btl.btl, btl.btl_endpoint, &header, sizeof header, payload, bytes, tag_of(wire::Kind::kMatch));
}

// Sends an eager message in a descriptor, for a transport that has no sendi or still has to connect. It is copied before this
// returns. Returns false if there is no room just now.
bool send_packet(const Peer& peer, mca_bml_base_btl_t& btl, opal_convertor_t& convertor, wire::MatchWords header,
                 std::size_t bytes) noexcept;

}  // namespace coop::pml
