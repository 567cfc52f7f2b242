// SPDX-License-Identifier: BSD-3-Clause
#include "hca_copies.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "awaited.h"
#include "device_memory.h"
#include "send_request.h"

namespace coop::pml {
namespace {

using State = HcaCopies::State;

// After this many messages without HCAs one chunk is tried, because they may be less busy now.
constexpr std::uint32_t kTryAgain = 16;

bool is_wanted(const Peer& peer, std::size_t bytes, rndv::Split split) noexcept {
    if (hca_mode() == HcaMode::kOff || !peer.hca.btl || bytes < static_cast<std::size_t>(module.config.hca_min))
        return false;
    if (split == rndv::Split::kHalves || module.config.hca_load == 0) return false;
    return hca_mode() == HcaMode::kOn || !module.crowded;
}

bool is_ready(const Peer& peer) noexcept {
    const HcaWay& way = peer.hca;
    return way.extension->loopback_way(way.btl->btl, way.btl->btl_endpoint) == LoopbackWay::kReady;
}

// Reads the sender's key and registers our buffer. Returns false if the key is not there yet or the registration fails.
bool has_keys(RecvRequest& r) noexcept {
    HcaCopies& hca = r.hca;
    if (!hca.has_key) {
        const auto key = rndv::published_key(r.copy.claims().slot(), r.copy.claims().generation());
        if (!key) return false;
        hca.key = *key;
        hca.has_key = true;
    }
    if (hca.registration) return true;
    mca_bml_base_register_mem(r.peer->hca.btl, address_in(r, r.copy.from()), r.copy.plan().total,
                              MCA_BTL_REG_FLAG_LOCAL_WRITE, &hca.registration);
    if (hca.registration) return true;
    hca.on.store(false, std::memory_order_relaxed);
    module.counters.count(Counter::kOffloadsRefused);
    return false;
}

// Number of chunks that the HCA should start to read now.
std::uint32_t chunks_for_hca(RecvRequest& r) noexcept {
    HcaWay& way = r.peer->hca;
    const std::uint32_t under_way = way.under_way.load(std::memory_order_relaxed);
    std::uint32_t wanted = rndv::chunks_to_offload(r.copy.claims().left(), under_way, way.hca.bytes_per_s(),
                                                   way.cpu.bytes_per_s());
    if (wanted == 0 && under_way == 0 && way.passed_over.load(std::memory_order_relaxed) >= kTryAgain) wanted = 1;
    if (wanted == 0) return 0;
    const auto most = static_cast<std::uint32_t>(module.config.hca_load),
               now = way.extension->hca_operations(way.btl->btl, way.btl->btl_endpoint);
    if (now < most) return std::min(wanted, most - now);
    if (!std::exchange(r.hca.was_held, true)) module.counters.count(Counter::kOffloadsHeld);
    return 0;
}

HcaCopies::Chunk* chunk_in(HcaCopies& hca, State state) noexcept {
    for (HcaCopies::Chunk& chunk : hca.chunks)
        if (chunk.state.load(std::memory_order_acquire) == state) return &chunk;
    return nullptr;
}

void fail(RecvRequest& r, HcaCopies::Chunk& chunk) noexcept {
    module.counters.count(Counter::kOffloadsRefused);
    chunk.state.store(State::kFailed, std::memory_order_release);
    r.hca.on.store(false, std::memory_order_relaxed);
}

void on_chunk_read(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*, mca_btl_base_registration_handle_t*, void*,
                   void* data, int status) {
    const Callback turn;
    auto& chunk = *static_cast<HcaCopies::Chunk*>(data);
    RecvRequest& r = *chunk.request;
    const std::uint64_t bytes = r.copy.plan().bytes(chunk.number);
    r.peer->hca.under_way.fetch_sub(1, std::memory_order_relaxed);
    if (status != OMPI_SUCCESS || module.faults.hit(Fault::kHcaLost)) {
        fail(r, chunk);
    } else {
        r.hca.last_ns.store(now_ns(), std::memory_order_relaxed);
        r.hca.bytes.fetch_add(bytes, std::memory_order_relaxed);
        module.counters.count(Counter::kOffloads);
        module.counters.count(Counter::kOffloadedBytes, bytes);
        chunk.state.store(State::kFree, std::memory_order_release);
        r.copy.claims().copied();  // last, because the copy may be over now
    }
    drop(r);
}

int read_chunk(RecvRequest& r, HcaCopies::Chunk& chunk) noexcept {
    if (module.faults.hit(Fault::kHcaBusy)) return OMPI_ERR_OUT_OF_RESOURCE;
    if (module.faults.hit(Fault::kHcaGet)) return OMPI_ERR_NOT_AVAILABLE;
    HcaWay& way = r.peer->hca;
    const std::size_t at = r.copy.from() + r.copy.plan().begin(chunk.number);
    void* const local = address_in(r, at);
    auto* key = reinterpret_cast<mca_btl_base_registration_handle_t*>(r.hca.key.data());
    r.references.take();  // held by the transport
    way.under_way.fetch_add(1, std::memory_order_relaxed);
    const int rc = way.extension->get(way.btl->btl, way.btl->btl_endpoint, local, r.remote_address + at,
                                      r.hca.registration, key, r.copy.plan().bytes(chunk.number), {.marker = marker(r)},
                                      on_chunk_read, &chunk);
    if (rc == OMPI_SUCCESS) return rc;
    way.under_way.fetch_sub(1, std::memory_order_relaxed);
    static_cast<void>(r.references.drop());  // never the last: our caller holds one
    return rc;
}

// Returns false if no chunk is left or the HCA refuses it.
bool offload_one(RecvRequest& r) noexcept {
    HcaCopies::Chunk* chunk = chunk_in(r.hca, State::kFree);
    if (!chunk) return false;
    const auto number = r.copy.claims().claim();
    if (!number) return false;
    chunk->number = *number;
    chunk->request = &r;
    chunk->state.store(State::kUnderWay, std::memory_order_relaxed);
    if (r.hca.first_ns == 0) r.hca.first_ns = now_ns();
    if (const int rc = read_chunk(r, *chunk); rc != OMPI_SUCCESS) {
        fail(r, *chunk);
        if (is_shortage(rc))
            r.hca.on.store(true, std::memory_order_relaxed);  // a shortage is temporary: try again later
        return false;
    }
    return true;
}

}  // namespace

void find_hca_way(HcaWay& way, mca_bml_base_endpoint_t& endpoint) noexcept {
    for (std::size_t i = 0; i < endpoint.btl_rdma.arr_size; ++i) {
        mca_bml_base_btl_t& candidate = endpoint.btl_rdma.bml_btls[i];
        const mca_btl_base_module_t& btl = *candidate.btl;
        const BtlExtension* const extension = extension_of(btl);
        if (!extension || !extension->loopback_way) continue;
        if (!(btl.btl_flags & MCA_BTL_FLAGS_GET) || !btl.btl_register_mem ||
            btl.btl_registration_handle_size > sizeof(rndv::Key))
            continue;
        way.btl = &candidate;
        way.extension = extension;
    }
}

bool may_offload(RecvRequest& r, std::size_t bytes) noexcept {
    if (!is_wanted(*r.peer, bytes, r.engine.choice().split) || r.local_pieces.any() || r.remote_pieces.any())
        return false;
    const rndv::Situation& s = r.engine.situation();
    return s.sender_contiguous && s.receiver_contiguous && is_ready(*r.peer);
}

bool may_offload(SendRequest& r, rndv::Split split) noexcept {
    return is_wanted(*r.peer, r.bytes(), split) && !r.local_pieces.any() && needs_no_convertor(r.convertor()) &&
           is_ready(*r.peer);
}

void start_hca_copies(RecvRequest& r, bool offloads) noexcept {
    HcaCopies& hca = r.hca;
    for (HcaCopies::Chunk& chunk : hca.chunks) chunk.state.store(State::kFree, std::memory_order_relaxed);
    hca.on.store(offloads, std::memory_order_relaxed);
    hca.was_held = hca.has_key = false;
    hca.first_ns = hca.cpu_ns = 0;
    hca.last_ns.store(0, std::memory_order_relaxed);
    hca.bytes.store(0, std::memory_order_relaxed);
    if (offloads) r.peer->hca.passed_over.fetch_add(1, std::memory_order_relaxed);
}

void end_hca_copies(RecvRequest& r) noexcept {
    HcaCopies& hca = r.hca;
    if (hca.registration) mca_bml_base_deregister_mem(r.peer->hca.btl, hca.registration);
    hca.registration = nullptr;
    const std::uint64_t bytes = hca.bytes.exchange(0, std::memory_order_relaxed), cpu_ns = std::exchange(hca.cpu_ns, 0);
    if (cpu_ns > 0) r.peer->hca.cpu.measured(r.copy.plan().total - bytes, cpu_ns);
    if (bytes == 0) return;
    r.peer->hca.hca.measured(bytes, hca.last_ns.load(std::memory_order_relaxed) - hca.first_ns);
    r.peer->hca.passed_over.store(0, std::memory_order_relaxed);
}

void offload(RecvRequest& r) noexcept {
    if (!r.hca.on.load(std::memory_order_relaxed) || r.copy.claims().is_refused() || !is_awaited(r) || !has_keys(r))
        return;
    for (std::uint32_t n = chunks_for_hca(r); n > 0 && offload_one(r); --n) {
    }
}

bool is_offloading(const RecvRequest& r) noexcept {
    return std::any_of(r.hca.chunks.begin(), r.hca.chunks.end(), [](const HcaCopies::Chunk& chunk) {
        return chunk.state.load(std::memory_order_acquire) == State::kUnderWay;
    });
}

std::optional<std::uint32_t> left_by_hcas(RecvRequest& r) noexcept {
    HcaCopies::Chunk* failed = chunk_in(r.hca, State::kFailed);
    if (!failed) return std::nullopt;
    const std::uint32_t number = failed->number;
    const bool is_ours = !r.copy.claims().is_refused();
    if (is_ours || r.copy.claims().give_back(number)) failed->state.store(State::kFree, std::memory_order_relaxed);
    return is_ours ? std::optional(number) : std::nullopt;
}

std::uint64_t cpu_clock_ns(const RecvRequest& r) noexcept {
    return r.hca.on.load(std::memory_order_relaxed) ? now_ns() : 0;
}

void count_cpu_time(RecvRequest& r, std::uint64_t start_ns) noexcept {
    if (start_ns > 0) r.hca.cpu_ns += now_ns() - start_ns;
}

void open_key(SendRequest& r) noexcept {
    const HcaWay& way = r.peer->hca;
    if (hca_mode() == HcaMode::kOff || !way.btl || r.hca_registration || module.faults.hit(Fault::kHcaKey)) return;
    void* address;
    opal_convertor_get_offset_pointer(&r.convertor(), 0, &address);
    mca_bml_base_register_mem(way.btl, address, r.bytes(), MCA_BTL_REG_FLAG_REMOTE_READ, &r.hca_registration);
    if (!r.hca_registration) return;
    rndv::Key key{};
    std::memcpy(key.data(), r.hca_registration, way.btl->btl->btl_registration_handle_size);
    rndv::publish_key(r.copy.claims().slot(), r.copy.claims().generation(), key);
}

void close_key(SendRequest& r) noexcept {
    if (r.hca_registration) mca_bml_base_deregister_mem(r.peer->hca.btl, r.hca_registration);
    r.hca_registration = nullptr;
}

}  // namespace coop::pml
