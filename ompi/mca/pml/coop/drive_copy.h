// SPDX-License-Identifier: BSD-3-Clause
//
// Drives one side of a cooperative copy (coop/rndv/copy_side.h): a SendRequest puts its chunks, a RecvRequest gets
// them. The receiver may let HCAs copy some chunks at the same time (hca_copies.h). A transport that copies with our
// CPU has completed the copy when its call returns.
#pragma once

#include <optional>

#include "coop/rndv/copy_side.h"
#include "coop/rndv/offload.h"
#include "diagnose.h"
#include "rdma.h"

namespace coop::pml {

// The chunks that HCAs copy for the receiver (hca_copies.cc). The overloads for a sender do nothing.
void offload(RecvRequest& r) noexcept;                               // gives HCAs more chunks if they can take them
bool is_offloading(const RecvRequest& r) noexcept;                   // an HCA is copying a chunk
std::optional<std::uint32_t> left_by_hcas(RecvRequest& r) noexcept;  // a claimed chunk that an HCA has failed to copy
void count_cpu_time(RecvRequest& r, std::uint64_t start_ns) noexcept;
std::uint64_t cpu_clock_ns(const RecvRequest& r) noexcept;  // 0: not measured
inline void offload(SendRequest&) noexcept {}
inline bool is_offloading(const SendRequest&) noexcept { return false; }
inline std::optional<std::uint32_t> left_by_hcas(SendRequest&) noexcept { return std::nullopt; }
inline void count_cpu_time(SendRequest&, std::uint64_t) noexcept {}
inline std::uint64_t cpu_clock_ns(const SendRequest&) noexcept { return 0; }

// Chunk size: short enough to let other messages have their turn in between, and within the limits of the transport.
inline std::uint32_t shared_chunk(const mca_btl_base_module_t& btl, rndv::Split split, std::size_t bytes,
                                  bool offloads) noexcept {
    std::uint64_t chunk = split == rndv::Split::kHalves
                              ? rndv::half_bytes(bytes)
                              : rndv::chunk_bytes(bytes, static_cast<std::uint64_t>(module.config.copy_chunk));
    if (offloads) chunk = std::min(chunk, rndv::offload_chunk_bytes(bytes));
    for (std::size_t limit : {btl.btl_get_limit, btl.btl_put_limit})
        if (limit > 0) chunk = std::min<std::uint64_t>(chunk, limit);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(chunk, UINT32_MAX));
}

// Ends the job if the chunks of a peer's plan for `bytes` bytes cannot be numbered.
inline void check_chunk(wire::Kind kind, std::uint32_t peer, std::uint64_t bytes, std::uint32_t chunk) noexcept {
    const rndv::ChunkPlan plan{bytes, chunk};
    if (!plan.is_countable()) diagnose_field(kind, "chunk bytes", peer, chunk, plan.least_chunk(), UINT32_MAX);
}

template <class Request>
void on_chunk_done(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*, mca_btl_base_registration_handle_t*, void*,
                   void* data, int status) {
    const Callback turn;
    auto* op = static_cast<RdmaOp*>(data);
    auto& r = *static_cast<Request*>(op->request);
    if (status != OMPI_SUCCESS) r.copy.fail();
    give_back(module.rdma_ops, op);
    operation_done(r);
}

// What CopySide has to know of this process (`Hands` in copy_side.h).
template <class Request>
struct CopyHands {
    Request& r;

    bool transport_is_busy() const noexcept { return !r.run.drained(); }
    void feed_hcas() noexcept { offload(r); }
    bool hcas_are_busy() const noexcept { return is_offloading(r); }
    std::optional<std::uint32_t> chunk_left_by_hcas() noexcept { return left_by_hcas(r); }
    std::uint64_t quantum() const noexcept { return static_cast<std::uint64_t>(module.config.copy_chunk); }
    bool is_idle() const noexcept {
        return module.idle.load(std::memory_order_relaxed) && rndv::load_of(*my_board()) == 0;
    }
    std::uint64_t now_ns() const noexcept { return pml::now_ns(); }
    std::uint64_t patience_ns() const noexcept { return static_cast<std::uint64_t>(module.config.patience) * 1000; }
    void took_over() noexcept { module.counters.count(Counter::kTakeovers); }
    bool peer_is_alive() const noexcept { return node::is_alive(r.peer->neighbour->card.pid); }
};

// Copies chunks until CopySide::next() returns anything but kCopy, and returns that. Returns kNoRoom if the transport
// has no room.
template <class Request>
rndv::CopyDo drive_copy(Request& r, const RdmaKind& kind) noexcept {
    rndv::CopySide& side = r.copy;
    CopyHands<Request> hands{r};
    side.begin_turn();
    for (;;) {
        if (const rndv::CopyDo what = side.next(hands); what != rndv::CopyDo::kCopy) return what;
        const std::uint64_t start_ns = cpu_clock_ns(r);
        const Copy piece = next_copy(r, side.at(), side.end() - side.at());
        const int rc = issue(r, kind, piece, side.at(), on_chunk_done<Request>);
        count_cpu_time(r, start_ns);
        if (rc == OMPI_SUCCESS) {
            side.issued(piece.bytes);
            continue;
        }
        module.counters.count(kind.retries);
        if (!is_shortage(rc)) side.fail();
        else if (side.no_room(!r.run.drained())) return rndv::CopyDo::kNoRoom;
    }
}

}  // namespace coop::pml
