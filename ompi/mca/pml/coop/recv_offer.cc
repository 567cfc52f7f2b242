// SPDX-License-Identifier: BSD-3-Clause
//
// Offers of receives to their senders, and the slots of our board.
#include <utility>

#include "diagnose.h"
#include "hints.h"
#include "recv_steps.h"

namespace coop::pml {

bool take_slot(RecvRequest& r) noexcept {
    if (r.has_slot) return true;
    Guard guard(module.lock);
    const auto slot = module.slots.acquire();
    if (!slot) return false;
    r.has_slot = true;
    r.slot = *slot;
    r.generation = rndv::arm(my_board()->slots[r.slot]);
    return true;
}

void free_slot(RecvRequest& r) noexcept {
    if (!std::exchange(r.has_slot, false)) return;
    Guard guard(module.lock);
    module.slots.release(r.slot);
}

bool worth_offering(const Comm& c, Peer* peer, RecvRequest& r) noexcept {
    if (!peer || peer->source.offered || prefers_lane(c, *peer, r.capacity)) return false;
    const rndv::Wish wish = wish_for(c.comm);
    if (wish != rndv::Wish::kHybrid && wish != rndv::Wish::kCoopColl) return false;
    return peer->may_offer(r.capacity, wish) && !OMPI_COMM_CHECK_ASSERT_ALLOW_OVERTAKE(c.comm) && r.contiguous_base;
}

// The sender of an offered receive does not have to ask before it writes (RTR). (Cooperative Rendezvous Protocols,
// Table II)
void offer(Comm& c, Peer& peer, RecvRequest& r) noexcept {
    if (peer.source.offered || !c.engine.is_next_for(peer.source, &r.posted) || !take_slot(r)) return;
    rndv::open_offer(*my_board(), r.slot, r.generation,
                     {name_of(peer.proc), static_cast<std::uint32_t>(c.comm->c_contextid), r.posted.tag,
                      peer.source.expected, r.capacity},
                     reinterpret_cast<std::uint64_t>(r.contiguous_base),
                     call_for(c.comm, r.call) == rndv::RecvCall::kRecv);
    r.offered = true;
    peer.source.offered = &r.posted;
    module.counters.count(Counter::kOffers);
}

bool withdraw(RecvRequest& r) noexcept {
    if (!rndv::close_offer(*my_board(), r.slot, r.generation)) return false;
    r.offered = false;
    of(r.comm()).peer(r.posted.source).source.offered = nullptr;
    free_slot(r);
    return true;
}

void meet_offered(Peer& peer, const wire::MatchHeader& header, match::Posted* posted) noexcept {
    RecvRequest& r = *RecvRequest::from(peer.source.offered);
    if (posted != &r.posted) return rndv::message_passed(*my_board(), r.slot, peer.source.expected);
    peer.source.offered = nullptr;
    r.offered = false;
    const bool by_offer =
        header.kind == wire::Kind::kRts &&
        rndv::protocol(static_cast<rndv::Row>(reinterpret_cast<const wire::RtsHeader&>(header).row)).starts_at_once;
    if (by_offer) return;  // join_copy() checks that the offer was taken
    if (!rndv::close_offer(*my_board(), r.slot, r.generation))
        protocol_error(header.kind, header,
                       "the sender has taken the offer of the receive, but the message does not use it");
    free_slot(r);
}

}  // namespace coop::pml
