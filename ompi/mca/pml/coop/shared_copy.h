// SPDX-License-Identifier: BSD-3-Clause
//
// A cooperative copy (COOP, RTR) from one side: the same code for a SendRequest,
// which puts, and a RecvRequest, which gets. It goes on chunk by chunk, from the
// progress function, until the board says that all is copied.
// (Cooperative Rendezvous Protocols, sections II-A1 and II-C)
//
//     claim a chunk --> copy it --> say so on the board --> let others have a turn
//       | none left                                              |
//       +--> look at the board now and then                <-----+
//
// Errors: a chunk that the transport refuses goes back to the other side; when
// both are refused the receiver asks for fragments instead. A peer that dies
// ends the job with a diagnosis.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "coop/rndv/chunk.h"
#include "diagnose.h"
#include "rdma.h"

namespace coop::pml {

struct SharedCopy {
    rndv::Claims claims;
    rndv::ChunkPlan plan;
    std::size_t from = 0;                // first byte of the message in the plan
    rndv::Split split = rndv::Split::kBoth;
    rndv::Side side = rndv::Side::kReceiver;
    bool holds = false;                  // a claimed chunk that the transport had no room for
    std::uint32_t held = 0;
    std::chrono::steady_clock::time_point waiting_since{};

    void start(rndv::Slot& slot, rndv::Side my_side, std::uint32_t generation, std::size_t from_byte, std::size_t bytes, std::uint32_t chunk,
               rndv::Split by) noexcept {
        plan = {bytes, chunk};
        claims.start(slot, my_side, generation, static_cast<std::uint32_t>(plan.count()), by == rndv::Split::kHalves);
        from = from_byte;
        split = by;
        side = my_side;
        holds = false;
        waiting_since = {};
    }

    // The other side leads, and may have its reasons: we help while we have
    // nothing else to do.
    bool may_claim() const noexcept {
        using rndv::Split;
        if (split == Split::kBoth || split == Split::kHalves) return true;
        if (split == (side == rndv::Side::kReceiver ? Split::kReceiverLeads : Split::kSenderLeads) || claims.other_is_refused()) return true;
        return module.idle.load(std::memory_order_relaxed) && !module.crowded && rndv::load_of(*my_board()) == 0;
    }

    std::optional<std::uint32_t> next_chunk() noexcept {
        if (std::exchange(holds, false)) return held;
        return may_claim() ? claims.claim() : std::nullopt;
    }
    void keep(std::uint32_t chunk) noexcept {
        holds = true;
        held = chunk;
    }
};

template <class Request>
void on_chunk_done(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*, mca_btl_base_registration_handle_t*, void*, void* context,
                   int status) {
    auto* op = static_cast<RdmaOp*>(context);
    auto& r = *static_cast<Request*>(op->request);
    if (status == OMPI_SUCCESS) r.shared.claims.copied();
    else r.shared.claims.refused(static_cast<std::uint32_t>(op->offset));
    give_back(module.rdma_ops, op);
    r.run.in_flight.down();
    advance(r);
    drop(r);
}

enum class Shared {
    kUnderWay,   // a transport has our chunk
    kShortage,   // retry later
    kChunkDone,  // let others have their turn, then go on
    kWait,       // nothing to do for us at present: look again
    kOver,       // all is copied
    kStuck,      // neither side can copy
};

// Whoever waits for a peer looks now and then whether it is still there.
template <class Request>
void watch_peer(Request& r) noexcept {
    using namespace std::chrono_literals;
    const auto now = std::chrono::steady_clock::now();
    if (r.shared.waiting_since == std::chrono::steady_clock::time_point{}) r.shared.waiting_since = now;
    if (now - r.shared.waiting_since < 200ms) return;
    r.shared.waiting_since = now;
    if (!node::is_alive(r.peer->neighbour->pid)) peer_died(*r.peer);
}

// Copies chunks until enough has been copied for others to get a turn.
template <class Request>
Shared drive_shared(Request& r, const RdmaKind& kind) noexcept {
    for (std::uint64_t copied = 0;;) {
        if (!r.run.drained()) return Shared::kUnderWay;
        if (r.shared.claims.over()) return Shared::kOver;
        if (copied >= static_cast<std::uint64_t>(module.config.copy_chunk)) return Shared::kChunkDone;
        const auto chunk = r.shared.next_chunk();
        if (!chunk && copied > 0) return Shared::kChunkDone;
        if (!chunk) return r.shared.claims.stuck() ? Shared::kStuck : (watch_peer(r), Shared::kWait);
        r.shared.waiting_since = {};
        const std::uint64_t bytes = r.shared.plan.bytes(*chunk);
        const int rc = issue(r, kind, contiguous_copy(r, r.shared.from + r.shared.plan.begin(*chunk), bytes), *chunk, on_chunk_done<Request>);
        copied += bytes;
        if (rc == OMPI_SUCCESS) continue;
        module.counters.count(kind.retries);
        if (is_shortage(rc)) {
            r.shared.keep(*chunk);
            return Shared::kShortage;
        }
        r.shared.claims.refused(*chunk);
        return Shared::kWait;
    }
}

}  // namespace coop::pml
