// SPDX-License-Identifier: BSD-3-Clause
//
// A cooperative copy (COOP, RTR) from one side: the same code for a SendRequest,
// which puts, and a RecvRequest, which gets. It goes on chunk by chunk, from the
// progress function, until the board says that all is copied.
// (Cooperative Rendezvous Protocols, sections II-A1 and II-C)
//
//     claim a chunk --> copy it --> say so on the board --> let others have a turn
//       | none left, or the other side leads                     |
//       +--> look at the board now and then                <-----+
//              nothing moves: take over what is left
//
// With a chunk claimed no step ends, but where the transport goes on without us: whoever leaves the library has no chunk that the other side
// would wait for. A transport that copies with our CPU has copied when it returns.
//
// The receiver lets HCAs copy some of its chunks meanwhile, where they can (hca_lane.h).
//
// Errors: a chunk that the transport refuses goes back to the other side; when
// both are refused the receiver asks for fragments instead. A peer that dies
// ends the job with a diagnosis.
#pragma once

#include <optional>
#include <utility>

#include "coop/rndv/chunk.h"
#include "coop/rndv/offload.h"
#include "coop/rndv/takeover.h"
#include "diagnose.h"
#include "rdma.h"

namespace coop::pml {

// The HCAs' part: hca_lane.cc. A sender has none.
void offload(RecvRequest& r) noexcept;                                      // gives them more, if they can do with it
bool is_offloading(const RecvRequest& r) noexcept;                          // some of it is under way
std::optional<std::uint32_t> left_by_hcas(RecvRequest& r) noexcept;         // a chunk that they have not copied after all
void count_cpu_time(RecvRequest& r, std::uint64_t start_ns) noexcept;
std::uint64_t cpu_clock_ns(const RecvRequest& r) noexcept;                  // 0: nobody wants to know
inline void offload(SendRequest&) noexcept {}
inline bool is_offloading(const SendRequest&) noexcept { return false; }
inline std::optional<std::uint32_t> left_by_hcas(SendRequest&) noexcept { return std::nullopt; }
inline void count_cpu_time(SendRequest&, std::uint64_t) noexcept {}
inline std::uint64_t cpu_clock_ns(const SendRequest&) noexcept { return 0; }

struct SharedCopy {
    rndv::Claims claims;
    rndv::ChunkPlan plan;
    std::size_t from = 0;                // first byte of the message in the plan
    rndv::Choice choice{rndv::Row::kCoop, rndv::Reason::kForced};
    std::optional<std::uint32_t> chunk;  // claimed, and being copied …
    std::size_t at = 0;                  // … up to this byte of the message
    std::atomic<bool> failed{false};     // … or refused by the transport
    rndv::Takeover takeover;
    std::uint64_t waiting_since_ns = 0;  // 0: not waiting
    int missed = 0;                      // looks for the peer in a row that did not find it

    void start(rndv::Slot& slot, rndv::Side my_side, std::uint32_t generation, std::size_t from_byte, std::size_t bytes, std::uint32_t chunk_bytes,
               const rndv::Choice& by) noexcept {
        plan = {bytes, chunk_bytes};
        claims.start(slot, my_side, generation, static_cast<std::uint32_t>(plan.count()), by.split == rndv::Split::kHalves && plan.count() <= 2);
        from = from_byte;
        choice = by;
        chunk.reset();
        failed.store(false, std::memory_order_relaxed);
        takeover.start(by.split, my_side);
        waiting_since_ns = 0;
        missed = 0;
    }

    // Where the other side leads we help while we seem to have nothing else to do, unless it is to copy all; take_over() does not depend on that.
    bool may_claim() const noexcept {
        if (takeover.may_claim_all() || choice.split == rndv::Split::kHalves || claims.other_is_refused()) return true;
        return choice.row != rndv::Row::kRput && module.idle.load(std::memory_order_relaxed) && rndv::load_of(*my_board()) == 0;
    }

    // True, once: the other side makes no progress, and we may claim what it was to copy.
    bool take_over(std::uint64_t now) noexcept {
        if (!takeover.look(claims.progress(), now, static_cast<std::uint64_t>(module.config.patience) * 1000)) return false;
        claims.take_all();
        module.counters.count(Counter::kTakeovers);
        return true;
    }

    bool claim(std::optional<std::uint32_t> left) noexcept {
        chunk = left;
        if (!chunk && may_claim()) chunk = claims.claim();
        if (chunk) at = begin();
        return chunk.has_value();
    }
    std::size_t begin() const noexcept { return from + plan.begin(*chunk); }
    std::size_t end() const noexcept { return begin() + plan.bytes(*chunk); }
};

// Bytes of a chunk: short enough for others to get a turn, and for the transport.
inline std::uint32_t shared_chunk(const mca_btl_base_module_t& btl, rndv::Split split, std::size_t bytes, bool offloads) noexcept {
    std::uint64_t chunk = split == rndv::Split::kHalves ? rndv::half_bytes(bytes)
                                                        : rndv::chunk_bytes(bytes, static_cast<std::uint64_t>(module.config.copy_chunk));
    if (offloads) chunk = std::min(chunk, rndv::offload_chunk_bytes(bytes));
    for (std::size_t limit : {btl.btl_get_limit, btl.btl_put_limit})
        if (limit > 0) chunk = std::min<std::uint64_t>(chunk, limit);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(chunk, UINT32_MAX));
}

// A peer's plan for `bytes` bytes can be counted.
inline void check_chunk(wire::Kind kind, std::uint32_t peer, std::uint64_t bytes, std::uint32_t chunk) noexcept {
    const rndv::ChunkPlan plan{bytes, chunk};
    if (!plan.is_countable()) diagnose_field(kind, "chunk bytes", peer, chunk, plan.least_chunk(), UINT32_MAX);
}

template <class Request>
void on_chunk_done(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*, mca_btl_base_registration_handle_t*, void*, void* context,
                   int status) {
    auto* op = static_cast<RdmaOp*>(context);
    auto& r = *static_cast<Request*>(op->request);
    if (status != OMPI_SUCCESS) r.shared.failed.store(true, std::memory_order_relaxed);
    give_back(module.rdma_ops, op);
    operation_done(r);
}

enum class Shared {
    kUnderWay,   // a transport has our chunk
    kShortage,   // retry later
    kChunkDone,  // let others have their turn, then go on
    kWait,       // nothing to do for us at present: look again
    kOver,       // all is copied
    kStuck,      // neither side can copy
};

// The launcher notices a dead process as well, and ends the job: who aborts it
// at the same moment gets in its way (mpirun of Open MPI 4.1 may then hang). So
// we leave it some seconds.
constexpr int kLooksUntilDead = 25;

// Whoever waits for a peer looks now and then whether it is still there.
constexpr std::uint64_t kLookEveryNs = 200'000'000;

template <class Request>
void watch_peer(Request& r, std::uint64_t now) noexcept {
    if (r.shared.waiting_since_ns == 0) r.shared.waiting_since_ns = now;
    if (now - r.shared.waiting_since_ns < kLookEveryNs) return;
    r.shared.waiting_since_ns = now;
    r.shared.missed = node::is_alive(r.peer->neighbour->card.pid) ? 0 : r.shared.missed + 1;
    if (r.shared.missed >= kLooksUntilDead) peer_died(*r.peer);
}

// Goes on with the claimed chunk: one operation, or several where a buffer is in
// pieces. Returns what the transport returned.
template <class Request>
int copy_some(Request& r, const RdmaKind& kind) noexcept {
    const Copy copy = next_copy(r, r.shared.at, r.shared.end() - r.shared.at);
    const int rc = issue(r, kind, copy, r.shared.at, on_chunk_done<Request>);
    if (rc == OMPI_SUCCESS) r.shared.at += copy.bytes;
    else module.counters.count(kind.retries);
    return rc;
}

// Takes note of a chunk that is copied, or refused.
template <class Request>
void settle_chunk(Request& r) noexcept {
    SharedCopy& s = r.shared;
    if (s.failed.load(std::memory_order_relaxed)) s.claims.refused(*s.chunk);
    else if (s.at == s.end()) s.claims.copied();
    else return;
    s.chunk.reset();
    s.failed.store(false, std::memory_order_relaxed);
}

// A claimed chunk is begun again from its first byte by whoever takes it next. So it is returned only where the transport has no room time and again.
constexpr int kTriesOfAChunk = 16;

// Until the transport has room, the other side may copy the chunk.
template <class Request>
void return_chunk(Request& r) noexcept {
    SharedCopy& s = r.shared;
    if (s.chunk && r.run.drained() && s.claims.give_back(*s.chunk)) s.chunk.reset();
}

// Copies chunks until enough has been copied for others to get a turn.
template <class Request>
Shared drive_shared(Request& r, const RdmaKind& kind) noexcept {
    SharedCopy& s = r.shared;
    int tries = 0;
    for (std::size_t copied = 0;;) {
        if (!r.run.drained()) return Shared::kUnderWay;
        if (s.chunk) settle_chunk(r);
        if (s.claims.over()) return Shared::kOver;
        offload(r);
        if (!s.chunk && (copied >= static_cast<std::size_t>(module.config.copy_chunk) || (copied > 0 && is_offloading(r)))) return Shared::kChunkDone;
        if (!s.chunk && !s.claim(left_by_hcas(r))) {
            if (copied > 0) return Shared::kChunkDone;
            if (s.claims.stuck() && !is_offloading(r)) return Shared::kStuck;
            const std::uint64_t now = now_ns();
            if (s.take_over(now)) continue;
            watch_peer(r, now);
            return Shared::kWait;
        }
        s.waiting_since_ns = 0;
        const std::size_t before = s.at;
        const std::uint64_t start_ns = cpu_clock_ns(r);
        const int rc = copy_some(r, kind);
        count_cpu_time(r, start_ns);
        copied += s.at - before;
        if (is_shortage(rc)) {
            if (++tries < kTriesOfAChunk) continue;
            return_chunk(r);
            return Shared::kShortage;
        }
        tries = 0;
        if (rc != OMPI_SUCCESS) s.failed.store(true, std::memory_order_relaxed);
    }
}

}  // namespace coop::pml
