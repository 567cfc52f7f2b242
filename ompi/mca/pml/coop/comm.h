// SPDX-License-Identifier: BSD-3-Clause
//
// What pml/coop keeps per communicator (Comm, behind c_pml_comm) and per
// process in it (Peer). Peers come into being with the first message to or
// from them; the way to them (reach) with the first message to them.
#pragma once

#include <memory>

#include "module.h"
#include "hca_lane.h"
#include "processes.h"
#include "coop/base/sparse_usage.h"
#include "coop/match/contexts.h"
#include "coop/match/engine.h"

namespace coop::pml {

// A send in its peer's line.
struct Waiting {
    ListNode node;
    SendRequest* request;
};

void serve_line(Deferred* deferred);  // send_request.cc

struct Peer {
    match::Source source;                      // under Comm::lock
    std::atomic<std::uint16_t> next_sequence{0};
    std::atomic<std::uint32_t> run{0};         // long blocking sends to it since its last message
    std::int32_t rank = 0;                     // in the communicator
    ompi_proc_t* proc = nullptr;
    std::atomic<mca_bml_base_endpoint_t*> endpoint{nullptr};  // null until reach(); the fields below belong to it

    mca_bml_base_btl_t* rdma = nullptr;        // transport for RGET and RPUT; null: none
    const BtlExtension* rdma_extension = nullptr;  // its extension; null: none
    HcaWay hca;                                // that HCAs have to it by loopback
    Process* process = nullptr;                // used from connect() to the end
    Neighbour* neighbour = nullptr;            // of `process`; null: on another node
    float rdma_share = 1;                      // of the bandwidth to the peer
    std::size_t eager_payload = 0;             // largest that any of the transports for first packets takes
    SparseUsage* usage = nullptr;              // pml_coop_report 2

    // Sends that found no room, in order. Later ones queue up behind them.
    List<Waiting, &Waiting::node> line;        // under Module::lock
    std::atomic<std::uint32_t> waiting{0};     // its length
    Deferred deferred{{}, serve_line, nullptr};
    bool has_line() const noexcept { return waiting.load(std::memory_order_relaxed) > 0; }

    // The communicator holds a record, and so does whoever is about to serve its line: the last send in it may take the communicator
    // with it, and another thread may free that as soon as the send is complete.
    std::atomic<std::uint32_t> holders{1};
    void hold() noexcept { holders.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept {
        if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }
    ~Peer() {
        if (process) leave(*process);
    }

    std::uint16_t take_sequence() noexcept {
        if (module.threads) return next_sequence.fetch_add(1, std::memory_order_relaxed);
        const std::uint16_t sequence = next_sequence.load(std::memory_order_relaxed);
        next_sequence.store(static_cast<std::uint16_t>(sequence + 1), std::memory_order_relaxed);
        return sequence;
    }

    // The transport whose turn it is for a first packet.
    mca_bml_base_btl_t* eager() noexcept {
        return mca_bml_base_btl_array_get_next(&endpoint.load(std::memory_order_relaxed)->btl_eager);
    }

    // Both of us may copy between each other's buffers, and we see its board.
    bool can_share() const noexcept {
        constexpr std::uint32_t kBoth = MCA_BTL_FLAGS_GET | MCA_BTL_FLAGS_PUT;
        return neighbour && neighbour->is_mapped() && !neighbour->copy_error && rdma && (rdma->btl_flags & kBoth) == kBoth;
    }
    // Its memory is mapped here; ours is mapped there.
    bool is_seen() const noexcept { return neighbour && neighbour->is_mapped(); }
    void note_that_it_sees_us() noexcept {
        if (neighbour) neighbour->sees_us.store(true, std::memory_order_relaxed);
    }
    // Whether receives may be offered to it: it is on this node, another process,
    // its transport needs no registration, and ends what a sender begins with no further call.
    bool may_offer() noexcept;

    bool copy_denied() const noexcept { return neighbour && neighbour->copy_error; }

    std::uint32_t job_rank() const noexcept { return proc->super.proc_name.vpid; }

    void count(rndv::Row row, rndv::Reason reason, std::size_t bytes) noexcept {
        const auto r = static_cast<std::uint32_t>(row), why = static_cast<std::uint32_t>(reason);
        module.usage.add(r, why, bytes);
        if (usage) usage->add(r, why, bytes);
    }
};

// The place of a message among those to its peer, taken when it is first asked for: a message that has one must be sent.
class SequenceNumber {
public:
    explicit SequenceNumber(Peer& peer) noexcept : peer_(peer) {}
    bool is_taken() const noexcept { return taken_; }
    operator std::uint16_t() noexcept {
        if (!taken_) number_ = peer_.take_sequence();
        taken_ = true;
        return number_;
    }

private:
    Peer& peer_;
    std::uint16_t number_ = 0;
    bool taken_ = false;
};

struct Comm {
    explicit Comm(ompi_communicator_t* comm);
    ~Comm();

    // The record of `rank`, made on first use. Precondition: 0 <= rank < size.
    Peer& peer(std::int32_t rank) noexcept {
        Peer* known = peers[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
        return known ? *known : make_peer(rank);
    }

    ompi_communicator_t* comm;
    std::int32_t size;
    std::atomic<std::int8_t> protocol_hint{-1}, overlap_hint{-1};  // info keys; -1: none (hints.h)
    opal_mutex_t lock;  // of the engine and of each Peer::source
    match::Engine engine;
    std::unique_ptr<std::atomic<Peer*>[]> peers;

private:
    Peer& make_peer(std::int32_t rank) noexcept;
};

inline Comm& of(ompi_communicator_t* comm) noexcept { return *reinterpret_cast<Comm*>(comm->c_pml_comm); }

// Makes sure that there is a way to the peer. False: there is none (Open MPI
// has said so) or its version refuses us (the job is ending).
bool connect(Peer& peer) noexcept;

inline bool reach(Peer& peer) noexcept {
    return peer.endpoint.load(std::memory_order_acquire) != nullptr || connect(peer);
}

// Keeps a message until its communicator comes into being. Returns the
// communicator instead when it has just done so.
Comm* keep_homeless(Arrived* arrived, std::uint16_t context) noexcept;

// Open MPI's own table of communicators is no place to look: it moves when it grows, which the thread of async.h cannot know, and
// names the parent while a new communicator is being agreed upon.
extern match::Contexts<Comm> contexts;

// The communicator behind a context id, or null while it is not here.
inline Comm* find_comm(std::uint16_t context) noexcept { return contexts.find(context); }

}  // namespace coop::pml
