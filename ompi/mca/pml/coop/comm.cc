// SPDX-License-Identifier: BSD-3-Clause
#include "comm.h"

#include <algorithm>
#include <new>

#include "arrived.h"
#include "bounce.h"
#include "diagnose.h"
#include "hints.h"
#include "on_match.h"
#include "report.h"
#include "streams.h"

namespace coop::pml {

match::Contexts<Comm> contexts;

namespace {

// Chooses the BTL for RDMA to this peer among those that also carry first packets (others exist for one-sided
// communication only): the fastest one that has get, or the fastest one if none has get.
void choose_rdma(Peer& peer, mca_bml_base_endpoint_t& endpoint) noexcept {
    const auto carries_first_packets = [&](const mca_bml_base_btl_t& candidate) {
        return mca_bml_base_btl_array_find(&endpoint.btl_eager, candidate.btl) != nullptr;
    };
    const auto rank = [](const mca_bml_base_btl_t& b) {
        return ((b.btl_flags & MCA_BTL_FLAGS_GET) ? 2.f : 0.f) + b.btl_weight;
    };

    float all = 0;
    for (std::size_t i = 0; i < endpoint.btl_send.arr_size; ++i) all += endpoint.btl_send.bml_btls[i].btl_weight;
    for (std::size_t i = 0; i < endpoint.btl_rdma.arr_size; ++i) {
        mca_bml_base_btl_t& candidate = endpoint.btl_rdma.bml_btls[i];
        if (candidate.btl->btl_registration_handle_size > wire::kMaxHandleBytes || !carries_first_packets(candidate))
            continue;
        if (!peer.rdma || rank(candidate) > rank(*peer.rdma)) peer.rdma = &candidate;
    }
    if (OPAL_PROC_ON_LOCAL_NODE(peer.proc->super.proc_flags) && peer.proc != ompi_proc_local()) {
        find_hca_way(peer.hca, endpoint);
        if (!peer.hca.btl && hca_mode() == HcaMode::kOn) no_offload(peer);
    }
    // The weights in btl_send are those that the BML has computed for this peer.
    if (!peer.rdma) return;
    peer.rdma_extension = extension_of(*peer.rdma->btl);
    const mca_bml_base_btl_t* sends = mca_bml_base_btl_array_find(&endpoint.btl_send, peer.rdma->btl);
    peer.rdma_share = sends && all > 0 ? sends->btl_weight / all : 1;
}

// Adds a message that arrived before its communicator was created: to the unexpected messages if it is in order, else
// to the early ones. No receive can have been posted yet.
void adopt(Comm& c, Arrived* arrived) noexcept {
    match::Source& source = c.peer(arrived->arrival.source).source;
    for (match::Arrival* a = &arrived->arrival; a; a = match::Engine::next_early(source)) {
        if (a == &arrived->arrival &&
            match::Engine::take_sequence(source, a->sequence) != match::ArrivalOrder::kInOrder) {
            if (!match::Engine::keep_early(source, a)) diagnose_repeated(arrived->header());
            return;
        }
        c.engine.keep_unexpected(source, a);
        module.counters.up(Gauge::kUnexpected);
    }
}

// Publishes the communicator and gives it the messages that came before it. Under both locks, so that messages from now
// on come after these.
void settle_homeless(Comm& c) noexcept {
    Guard matching(c.lock);
    List<match::Arrival, &match::Arrival::node> mine;
    {
        Guard guard(module.lock);
        contexts.publish(static_cast<std::uint16_t>(c.comm->c_contextid), &c);
        for (match::Arrival* a = module.homeless.front(); a;) {
            match::Arrival* next = module.homeless.next(a);
            if (Arrived::from(a)->context == c.comm->c_contextid) {
                module.homeless.remove(a);
                mine.push_back(a);
            }
            a = next;
        }
    }
    while (match::Arrival* a = mine.pop_front()) {
        if (a->source >= c.size) diagnose_rank(Arrived::from(a)->header(), c.size);
        adopt(c, Arrived::from(a));
    }
}

// Discards a message that no receive will take. Its bounce buffer becomes free.
void discard_unreceived(const Peer& peer, Arrived* arrived) noexcept {
    if (arrived->header().kind == wire::Kind::kRts) empty_bounce(peer, arrived->rts());
    discard(arrived);
}

}  // namespace

Comm::Comm(ompi_communicator_t* of_comm)
    : comm(of_comm), size(static_cast<std::int32_t>(of_comm->c_remote_group->grp_proc_count)),
      peers(new (std::nothrow) std::atomic<Peer*>[static_cast<std::size_t>(size)]) {
    OBJ_CONSTRUCT(&lock, opal_mutex_t);
    for (std::int32_t i = 0; peers && i < size; ++i)
        peers[static_cast<std::size_t>(i)].store(nullptr, std::memory_order_relaxed);
}

Comm::~Comm() {
    while (match::Arrival* a = engine.first_unexpected()) {
        engine.remove_unexpected(a);
        module.counters.down(Gauge::kUnexpected);
        discard_unreceived(peer(a->source), Arrived::from(a));
    }
    for (std::int32_t i = 0; peers && i < size; ++i) {
        Peer* peer = peers[static_cast<std::size_t>(i)].load(std::memory_order_relaxed);
        if (!peer) continue;
        while (match::Arrival* a = peer->source.early.pop_front()) discard_unreceived(*peer, Arrived::from(a));
        peer->let_go();
    }
    OBJ_DESTRUCT(&lock);
}

Peer& Comm::make_peer(std::int32_t rank) noexcept {
    Guard guard(module.lock);
    auto& slot = peers[static_cast<std::size_t>(rank)];
    Peer* peer = slot.load(std::memory_order_acquire);
    if (!peer) {
        peer = new (std::nothrow) Peer;
        if (!peer) out_of_memory("a peer record");
        peer->rank = rank;
        peer->proc = ompi_comm_peer_lookup(comm, rank);
        slot.store(peer, std::memory_order_release);
    }
    return *peer;
}

bool Peer::may_offer(std::size_t bytes, rndv::Wish wish) noexcept {
    if (proc == ompi_proc_local() || !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags)) return false;
    if (!reach(*this)) return false;
    look_for_board(bytes, wish);
    return can_share() && copies_at_once(*rdma->btl) && rdma->btl->btl_registration_handle_size == 0;
}

namespace {

// Whether first packets to the peer may have to interrupt it (async.h). The lane cannot do that.
bool interrupts(const mca_bml_base_endpoint_t& endpoint) noexcept {
    if (!module.handler.active()) return false;
    const mca_bml_base_btl_t* const all = endpoint.btl_eager.bml_btls;
    return std::any_of(all, all + endpoint.btl_eager.arr_size,
                       [](const mca_bml_base_btl_t& each) { return extension_of(*each.btl) != nullptr; });
}

// The largest payload of a packet above the eager limit of the transports; 0: there are no such packets. With interrupts
// there are none, because such a packet raises no interrupt, while an RTS does.
std::size_t longest_packet(const Peer& peer, const mca_bml_base_endpoint_t& endpoint) noexcept {
    if (module.handler.active() || OPAL_PROC_ON_LOCAL_NODE(peer.proc->super.proc_flags)) return 0;
    std::size_t longest = static_cast<std::size_t>(module.config.eager_limit);
    for (std::size_t i = 0; i < endpoint.btl_eager.arr_size; ++i) {
        const mca_btl_base_module_t& btl = *endpoint.btl_eager.bml_btls[i].btl;
        const BtlExtension* const extension = extension_of(btl);
        const std::size_t packet = extension && extension->long_packet_max ? extension->long_packet_max(&btl) : 0;
        if (packet <= wire::kLargestHeader) return 0;
        longest = std::min(longest, packet - wire::kLargestHeader);
    }
    return longest;
}

// Stores the transports to the peer. Returns false if another thread has already done so.
bool settle(Peer& peer, mca_bml_base_endpoint_t& endpoint, Process& process) noexcept {
    Guard guard(module.lock);
    if (peer.endpoint.load(std::memory_order_relaxed)) return false;
    peer.eager_payload = peer.awaited_payload = static_cast<std::size_t>(module.config.eager_limit);
    for (std::size_t i = 0; i < endpoint.btl_eager.arr_size; ++i) {
        const mca_btl_base_module_t& btl = *endpoint.btl_eager.bml_btls[i].btl;
        const BtlExtension* const extension = extension_of(btl);
        const std::size_t awaited = extension && extension->awaited_packet_max ? extension->awaited_packet_max(&btl)
                                                                               : btl.btl_eager_limit;
        peer.eager_payload = std::min(peer.eager_payload, btl.btl_eager_limit - wire::kLargestHeader);
        peer.awaited_payload = std::min(peer.awaited_payload, awaited - wire::kLargestHeader);
    }
    peer.long_payload = longest_packet(peer, endpoint);
    choose_rdma(peer, endpoint);
    peer.process = &process;
    if (peer.rdma && !OPAL_PROC_ON_LOCAL_NODE(peer.proc->super.proc_flags)) start_pace(process, *peer.rdma);
    peer.neighbour = process.neighbour.get();
    if (peer.neighbour && interrupts(endpoint)) peer.neighbour->keep_to_transport();
    peer.usage = usage_of_peer(peer.proc);
    peer.endpoint.store(&endpoint, std::memory_order_release);
    return true;
}

}  // namespace

bool connect(Peer& peer) noexcept {
    mca_bml_base_endpoint_t* endpoint = mca_bml_base_get_endpoint(peer.proc);
    if (!endpoint || endpoint->btl_eager.arr_size == 0) return false;
    Process& process = meet(peer.proc);
    if (!settle(peer, *endpoint, process)) leave(process);
    return true;
}

Comm* keep_homeless(Arrived* arrived, std::uint16_t context) noexcept {
    Guard guard(module.lock);
    Comm* c = find_comm(context);  // it may have been created while we copied the packet
    if (!c) module.homeless.push_back(&arrived->arrival);
    return c;
}

extern "C" int mca_pml_coop_add_comm(ompi_communicator_t* comm) {
    const Inside turn;
    if (comm->c_contextid > base_module.pml_max_contextid) return OMPI_ERR_OUT_OF_RESOURCE;
    auto* c = new (std::nothrow) Comm(comm);
    if (!c || !c->peers) {
        delete c;
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    ompi_comm_assert_subscribe(comm, OMPI_COMM_ASSERT_NO_ANY_SOURCE);
    ompi_comm_assert_subscribe(comm, OMPI_COMM_ASSERT_ALLOW_OVERTAKE);

    comm->c_pml_comm = reinterpret_cast<mca_pml_comm_t*>(c);
    settle_homeless(*c);
    subscribe_hints(comm);
    if (comm == &ompi_mpi_comm_self.comm) report_at_finalize();
    if (comm == &ompi_mpi_comm_self.comm && hca_mode() != HcaMode::kOff) count_hca_loads();
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_del_comm(ompi_communicator_t* comm) {
    const Inside turn;
    contexts.withdraw(static_cast<std::uint16_t>(comm->c_contextid));
    delete &of(comm);
    comm->c_pml_comm = nullptr;
    return OMPI_SUCCESS;
}

}  // namespace coop::pml
