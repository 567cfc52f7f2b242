// SPDX-License-Identifier: BSD-3-Clause
//
// The first step of a send: chooses a protocol and sends the first packet.
#include <cstring>
#include <new>

#include "device_memory.h"
#include "hints.h"
#include "lane_packet.h"
#include "send_steps.h"
#include "streams.h"

namespace coop::pml {
namespace {

// Messages of up to this many bytes try btl_sendi several times before they use a descriptor.
constexpr std::size_t kWorthWaiting = 768;

wire::MatchHeader match_header(const SendRequest& r, wire::Kind kind, std::uint8_t flags) noexcept {
    const auto& b = r.base.req_base;
    return {kind,       flags, static_cast<std::uint16_t>(b.req_comm->c_contextid), b.req_comm->c_my_rank, b.req_tag,
            r.sequence, 0};
}

// Finds the pieces of a buffer that is not contiguous, if the receiver can copy them one by one: they must be large,
// and few enough for the RTS to list them.
bool find_pieces(SendRequest& r, const rndv::Situation& s) noexcept {
    if (!s.can_get || !takes_pieces(*r.peer) || s.bytes <= s.eager_limit) return false;
    return r.local_pieces.collect(r.convertor(), s.bytes, static_cast<std::size_t>(module.config.piece_min));
}

rndv::Situation situation_of(SendRequest& r) noexcept {
    rndv::Situation s;
    s.bytes = r.bytes();
    s.eager_limit = r.whole_max;
    s.rdma_min = static_cast<std::size_t>(module.config.rdma_min);
    s.coop_min = static_cast<std::size_t>(module.config.coop_min);
    s.wish = wish_for(r.base.req_base.req_comm);
    s.send_call = call_for(r.base.req_base.req_comm, r.call);
    if (r.lane) s.lane_max = longest_for(*r.lane, *r.peer, rndv::sender_waits(s.send_call), s.wish);
    s.crowded = module.crowded;
    s.synchronous = r.base.req_send_mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    s.sender_contiguous = r.bytes() == 0 || needs_no_convertor(r.convertor());
    if (const mca_bml_base_btl_t* rdma = r.peer->rdma) {
        s.rdma_share = r.peer->rdma_share;
        s.kernel_copy_denied = r.peer->copy_denied();
        s.can_get = (rdma->btl_flags & MCA_BTL_FLAGS_GET) && !s.kernel_copy_denied;
        s.can_put = (rdma->btl_flags & MCA_BTL_FLAGS_PUT) && !s.kernel_copy_denied;
        // If the caller does not wait, a put of another transport may still be under way when it leaves the library.
        // Such a message is copied by the receiver alone.
        s.can_share = r.peer->can_share() && (copies_at_once(*rdma->btl) || rndv::sender_waits(r.call));
    }
    s.same_node = r.peer->neighbour != nullptr;
    if (!s.sender_contiguous) s.large_pieces = find_pieces(r, s);
    set_stream_limit(r, s);
    return s;
}

// Takes the offer of the receive that this message will match, if there is one.
void look_for_offer(SendRequest& r, rndv::Situation& s) noexcept {
    // If a receive of ours is offered to the peer, the peer may be sending to us. Then it chooses the protocol of this
    // message when it has matched it, because it then knows both sides.
    if (r.peer->source.offered || !rndv::wants_offer(s) || r.peer->rdma->btl->btl_registration_handle_size > 0) return;
    const auto& b = r.base.req_base;
    rndv::Board& theirs = r.peer->neighbour->board();
    const auto taken = rndv::take_offer(
        theirs, {name_of(ompi_proc_local()), b.req_comm->c_contextid, b.req_tag, r.sequence, r.bytes()});
    if (!taken) return;
    module.counters.count(Counter::kOffersTaken);
    r.peer->note_that_it_sees_us();  // it offers receives only to processes whose memory it has mapped
    s.offered = true;
    s.recv_call = taken->blocking ? rndv::RecvCall::kRecv : rndv::RecvCall::kIrecv;
    s.sender_load = rndv::load_of(*my_board());
    s.receiver_load = rndv::load_of(theirs);
    r.offer = *taken;
}

// Starts our side of the copy into an offered receive.
void start_offered(SendRequest& r, rndv::Choice choice) noexcept {
    r.offered = true;
    r.remote_address = r.offer.address;
    const bool offloads = may_offload(r, choice.split);
    const std::uint32_t chunk = shared_chunk(*r.peer->rdma->btl, choice.split, r.bytes(), offloads);
    rndv::Board& theirs = r.peer->neighbour->board();
    r.copy.start(theirs.slots[r.offer.slot], rndv::Side::kSender, r.offer.generation, 0, r.bytes(), chunk, choice);
    if (offloads) open_key(r);
    const rndv::Shares share = rndv::shares(choice, r.bytes());
    r.load = share.sender;
    rndv::add_load(*my_board(), share.sender);
    rndv::add_load(theirs, share.receiver);
}

// The transport was full a moment ago. Waiting for room is cheaper on both sides than sending a descriptor, but the
// number of attempts is limited because btl_sendi may fail for another reason.
bool prefers_to_wait(SendRequest& r, const mca_bml_base_btl_t& btl) noexcept {
    if (!btl.btl->btl_sendi || r.bytes() > kWorthWaiting || r.patience == 0) return false;
    --r.patience;
    return true;
}

Next eager_sent(SendRequest& r) noexcept {
    r.peer->count(rndv::Row::kEager, rndv::Reason::kFitsEager, r.bytes());
    r.engine.eager_out();
    return Next::kGoOn;
}

Next start_whole(SendRequest& r) noexcept {
    const auto& b = r.base.req_base;
    const wire::MatchWords header = match_words(b.req_comm, b.req_tag, r.sequence);
    if (is_refused_by_fault() ||
        !send_whole(
            *r.lane, *r.peer, b.req_addr, b.req_count, b.req_datatype, [&] { return header; }, r.bytes()))
        return wait_in_line(r);
    r.peer->count(rndv::Row::kLane, rndv::Reason::kFitsLane, r.bytes());
    r.engine.eager_out();
    return Next::kGoOn;
}

Next start_eager(SendRequest& r, mca_bml_base_btl_t& btl) noexcept {
    const auto& b = r.base.req_base;
    const wire::MatchWords header = match_words(b.req_comm, b.req_tag, r.sequence);
    if (send_immediate(btl, r.convertor(), header, r.bytes())) {
        end_unsent(r);
        return eager_sent(r);
    }
    if (prefers_to_wait(r, btl)) return wait_in_line(r);
    rewind(r);  // the attempt may have moved it
    std::size_t payload = r.bytes();
    mca_btl_base_descriptor_t* descriptor = begin_packet(btl, r.convertor(), sizeof(wire::MatchHeader), payload,
                                                         MCA_BTL_DES_FLAGS_PRIORITY);
    if (!descriptor) return wait_in_line(r);

    write_header(*descriptor, wire::Kind::kMatch, match_header(r, wire::Kind::kMatch, 0));
    if (hand_over(r, btl, descriptor, wire::Kind::kMatch) == Sent::kRefused) return wait_in_line(r);
    return eager_sent(r);
}

// Writes the RTS and the handle, slot or pieces that follow it. Returns its length.
std::size_t write_rts(unsigned char* packet, const wire::RtsHeader& header, const SendRequest& r,
                      const rndv::Choice& offer) noexcept {
    std::size_t length = sizeof header;
    const auto add = [&](const void* from, std::size_t bytes) {
        if (bytes > 0) std::memcpy(packet + length, from, bytes);
        length += bytes;
    };
    add(r.registration, header.handle_bytes);
    if (rndv::protocol(offer.row).starts_at_once) {
        const wire::SlotWords words{r.offer.slot,
                                    r.offer.generation,
                                    static_cast<std::uint32_t>(r.copy.plan().chunk),
                                    static_cast<std::uint8_t>(offer.split),
                                    {}};
        add(&words, sizeof words);
    }
    add(r.local_pieces.data(), header.inline_bytes);
    wire::seal(*new (packet) wire::RtsHeader(header));
    return length;
}

Next start_rendezvous(SendRequest& r, mca_bml_base_btl_t& eager, const rndv::Situation& s,
                      rndv::Choice offer) noexcept {
    if (!r.answer_due) {
        r.references.take();  // held by the answer
        r.answer_due = true;
        module.counters.up(Gauge::kRendezvous);
    }

    const rndv::Protocol& protocol = rndv::protocol(offer.row);
    mca_bml_base_btl_t& btl = protocol.needs_rdma ? *r.peer->rdma : eager;
    wire::RtsHeader header{};
    header.match = match_header(r, wire::Kind::kRts, 0);
    header.length = r.bytes();
    header.send_id = r.id;
    header.row = static_cast<std::uint8_t>(offer.row);
    header.reason = static_cast<std::uint8_t>(offer.reason);
    if (s.sender_contiguous) header.match.flags |= wire::kFlagContiguous;
    if (s.synchronous) header.match.flags |= wire::kFlagSync;
    if (s.can_share) header.match.flags |= wire::kFlagShare;
    header.match.flags |= wire::wish_flag(static_cast<std::uint8_t>(s.wish));
    header.call = static_cast<std::uint8_t>(s.send_call);

    std::size_t handle_bytes = 0, payload = 0;
    const bool shows_buffer = protocol.shows_buffer(s);
    if (shows_buffer && r.local_pieces.any()) {
        header.match.flags |= wire::kFlagGet | wire::kFlagPieces;
        header.inline_bytes = static_cast<std::uint32_t>(r.local_pieces.count() * sizeof(wire::Piece));
    } else if (shows_buffer) {
        void* address;
        opal_convertor_get_current_pointer(&r.convertor(), &address);
        header.match.flags |= wire::kFlagGet;
        header.address = reinterpret_cast<std::uint64_t>(address);
        if (r.registration) handle_bytes = btl.btl->btl_registration_handle_size;
    } else if (protocol.payload == rndv::Inline::kWhole) {
        payload = r.bytes();
    } else if (protocol.payload == rndv::Inline::kHead) {
        const std::size_t limit = std::min(static_cast<std::size_t>(module.config.rndv_inline),
                                           btl.btl->btl_rndv_eager_limit);
        payload = r.lane ? std::min(lane_payload(*r.lane), r.bytes())
                         : std::min({limit, r.peer->eager_payload, r.bytes()});
    }
    header.handle_bytes = static_cast<std::uint8_t>(handle_bytes);

    if (!r.paced) pace_begins(r, offer.reason);
    r.engine.rts_out(offer);
    if (payload == 0) {
        unsigned char packet[kLongestControl];
        const std::size_t bytes = write_rts(packet, header, r, offer);
        if (send_control(*r.peer, btl, wire::Kind::kRts, packet, bytes) == Sent::kYes) {
            end_unsent(r);
            return Next::kGoOn;
        }
    } else if (r.lane) {
        const auto set_inline = [](wire::RtsHeader& h, std::size_t n) {
            h.inline_bytes = static_cast<std::uint32_t>(n);
        };
        if (send_packed(*r.lane, wire::Kind::kRts, header, r.convertor(), 0, payload, set_inline)) return Next::kGoOn;
    } else if (mca_btl_base_descriptor_t* descriptor = begin_packet(btl, r.convertor(), sizeof header, payload,
                                                                    MCA_BTL_DES_FLAGS_PRIORITY)) {
        header.inline_bytes = static_cast<std::uint32_t>(payload);
        write_header(*descriptor, wire::Kind::kRts, header);
        if (hand_over(r, btl, descriptor, wire::Kind::kRts) == Sent::kYes) return Next::kGoOn;
    }
    r.engine.rts_refused();
    return wait_in_line(r);
}

}  // namespace

Next start_step(SendRequest& r) noexcept {
    rewind(r);
    take_in_written_parameters();
    not_idle();
    mca_bml_base_btl_t& btl = *r.peer->eager();
    if (r.lane && r.lane->is_too_short_for(r.bytes())) [[unlikely]]
        leave_lane(r);
    if (r.bytes() > r.whole_max) r.peer->look_for_board(r.bytes(), wish_for(r.base.req_base.req_comm));
    rndv::Situation s = situation_of(r);
    r.rdma = r.peer->rdma;
    r.extension = r.peer->rdma_extension;
    if (r.offered)
        return start_rendezvous(r, btl, s, r.engine.choice());  // the transport had no room for the RTS a moment ago
    if (s.bytes > s.eager_limit) look_for_offer(r, s);
    rndv::Choice offer = rndv::choose(s);
    if (rndv::protocol(offer.row).starts_at_once) {
        start_offered(r, offer);
        return start_rendezvous(r, btl, s, offer);
    }
    if (rndv::protocol(offer.row).shows_buffer(s) && !open_memory(r, 0, r.bytes(), kShareAccess)) {
        s.get_refused = true;
        offer = rndv::choose(s);
    }
    if (offer.reason == rndv::Reason::kFitsEager) return start_eager(r, btl);
    if (offer.reason == rndv::Reason::kFitsLane && !s.synchronous) return start_whole(r);
    return start_rendezvous(r, btl, s, offer);
}

}  // namespace coop::pml
