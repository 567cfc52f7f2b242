// SPDX-License-Identifier: BSD-3-Clause
//
// State of pml/coop per communicator (Comm, at c_pml_comm) and per process of a communicator (Peer). A Peer is created
// by the first message to or from the process; reach() finds its transports before the first message to it.
#pragma once

#include <memory>

#include "module.h"
#include "hca_copies.h"
#include "processes.h"
#include "coop/base/sparse_usage.h"
#include "coop/match/contexts.h"
#include "coop/match/engine.h"
#include "coop/node/lane_traffic.h"

namespace coop::pml {

// A send that is queued in Peer::line.
struct Waiting {
    ListNode node;
    SendRequest* request;
};

void serve_line(Deferred* deferred);  // send_request.cc

struct Peer {
    match::Source source;  // under Comm::lock
    std::atomic<std::uint16_t> next_sequence{0};
    std::atomic<std::uint32_t> run{0};  // long blocking sends to the peer since its last message to us
    std::atomic<bool> streams{false};   // one that nobody waits for, above LaneOut::alone_max(), was begun since
    node::LaneTraffic traffic;          // of long messages; used inside a node only
    std::int32_t rank = 0;              // in the communicator
    ompi_proc_t* proc = nullptr;
    std::atomic<mca_bml_base_endpoint_t*> endpoint{nullptr};  // null until reach(), which also sets the fields below

    mca_bml_base_btl_t* rdma = nullptr;            // transport for RGET and RPUT; null: none
    const BtlExtension* rdma_extension = nullptr;  // its extension; null: none
    HcaWay hca;                                    // loopback of the HCAs to it
    Process* process = nullptr;                    // held from connect() until the Peer is destroyed
    Neighbour* neighbour = nullptr;                // the same as in `process`; null: on another node, or ourselves
    float rdma_share = 1;                          // share of `rdma` in the bandwidth to the peer
    std::size_t eager_payload = 0;                 // largest payload that every transport for first packets takes
    std::size_t awaited_payload = 0;               // the same for a message whose sender waits
    std::size_t long_payload = 0;                  // largest payload of BtlExtension::send_long; 0: none
    SparseUsage* usage = nullptr;                  // the messages to it, for pml_coop_report 2; null: not counted

    // Sends that their transport had no room for, in order. Later sends to the peer queue after them.
    List<Waiting, &Waiting::node> line;     // under Module::lock
    std::atomic<std::uint32_t> waiting{0};  // length of `line`
    Deferred deferred{{}, serve_line, nullptr};
    bool has_line() const noexcept { return waiting.load(std::memory_order_relaxed) > 0; }

    // References to this record: one of the communicator, and one until serve_line() has run. When the last send in the
    // line is complete, another thread may free the communicator while serve_line() still uses the record.
    std::atomic<std::uint32_t> holders{1};
    void hold() noexcept { holders.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept {
        if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }
    ~Peer() {
        if (process) leave(*process);
    }

    // Returns false if it is not the last one that was taken.
    bool give_back_sequence(std::uint16_t number) noexcept {
        auto next = static_cast<std::uint16_t>(number + 1);
        return next_sequence.compare_exchange_strong(next, number, std::memory_order_relaxed);
    }
    std::uint16_t take_sequence() noexcept {
        if (module.threads) return next_sequence.fetch_add(1, std::memory_order_relaxed);
        const std::uint16_t sequence = next_sequence.load(std::memory_order_relaxed);
        next_sequence.store(static_cast<std::uint16_t>(sequence + 1), std::memory_order_relaxed);
        return sequence;
    }

    // Returns the transport for the next first packet; they take turns.
    mca_bml_base_btl_t* eager() noexcept {
        return mca_bml_base_btl_array_get_next(&endpoint.load(std::memory_order_relaxed)->btl_eager);
    }

    // True if both sides may copy from and to the buffers of the other one, and its board is mapped here.
    bool can_share() const noexcept {
        constexpr std::uint32_t kBoth = MCA_BTL_FLAGS_GET | MCA_BTL_FLAGS_PUT;
        return neighbour && neighbour->is_mapped() && !neighbour->copy_error && rdma &&
               (rdma->btl_flags & kBoth) == kBoth;
    }
    // Maps the peer's board, unless it cannot be of use for such a message: on a crowded node there are many peers, and both
    // sides copy only messages that are much longer.
    void look_for_board(std::size_t bytes, rndv::Wish wish) noexcept {
        if (!neighbour || neighbour->is_mapped()) return;
        const bool too_short = module.crowded && wish == rndv::Wish::kHybrid && neighbour->may_have_lane() &&
                               bytes < rndv::kCrowdedFactor * static_cast<std::size_t>(module.config.coop_min);
        if (!too_short) neighbour->look_again();
    }
    // True if the peer's memory is mapped here.
    bool is_seen() const noexcept { return neighbour && neighbour->is_mapped(); }
    // The peer has told us that our memory is mapped there.
    void note_that_it_sees_us() noexcept {
        if (neighbour) neighbour->sees_us.store(true, std::memory_order_relaxed);
    }
    // True if receives may be offered to the peer: it is another process of this node, and its transport needs no
    // registration and completes a copy before the call returns.
    bool may_offer(std::size_t bytes, rndv::Wish wish) noexcept;

    // The largest message that goes to the peer in one packet, without a handshake. `waits`: its sender waits for it.
    std::size_t whole_max(const LaneOut* through, bool waits) const noexcept {
        if (through) return through->whole_max();
        return waits ? awaited_payload : eager_payload;
    }

    // Our end of the lane to the peer; null: none, or not yet.
    LaneOut* lane() const noexcept { return neighbour ? neighbour->lane_out.load(std::memory_order_acquire) : nullptr; }
    // Called once for each message to the peer that does not take the hot path, and before each answer to one of its
    // messages. Opens the lane when it is due.
    void begin_message() const noexcept {
        if (neighbour) neighbour->begin_message();
    }
    void begin_answer() const noexcept {
        if (neighbour) neighbour->begin_answer();
    }

    // As for Neighbour.
    Unsent* begin_unsent() const noexcept { return neighbour ? neighbour->begin_unsent() : nullptr; }

    bool copy_denied() const noexcept { return neighbour && neighbour->copy_error; }

    std::uint32_t job_rank() const noexcept { return proc->super.proc_name.vpid; }

    // Counts a message to the peer. Returns true from the second one on since its last message to us.
    bool goes_one_way() noexcept {
        const std::uint32_t before = run.load(std::memory_order_relaxed);
        run.store(before + 1, std::memory_order_relaxed);
        return before > 0;
    }

    // The same as count() for a message that fits the lane.
    void count_in_lane(std::size_t bytes) noexcept {
        module.lane_usage.add(bytes);
        if (usage) [[unlikely]]
            usage->add(static_cast<std::uint32_t>(rndv::Row::kLane),
                       static_cast<std::uint32_t>(rndv::Reason::kFitsLane), bytes);
    }

    void count(rndv::Row row, rndv::Reason reason, std::size_t bytes) noexcept {
        const auto r = static_cast<std::uint32_t>(row), why = static_cast<std::uint32_t>(reason);
        module.usage.add(r, why, bytes);
        if (usage) usage->add(r, why, bytes);
    }
};

// The sequence number of a message to a peer, taken when it is first used. A message that has taken its number must be
// sent, because the receiver waits for each number, or give it back.
class SequenceNumber {
public:
    explicit SequenceNumber(Peer& peer) noexcept : peer_(peer) {}
    bool is_taken() const noexcept { return taken_; }
    operator std::uint16_t() noexcept {
        if (!taken_) number_ = peer_.take_sequence();
        taken_ = true;
        return number_;
    }
    // Makes the message one that was never begun. Returns false if it is too late: a later message has taken its number.
    [[nodiscard]] bool give_back() noexcept {
        taken_ = taken_ && !peer_.give_back_sequence(number_);
        return !taken_;
    }

private:
    Peer& peer_;
    std::uint16_t number_ = 0;
    bool taken_ = false;
};

struct Comm {
    explicit Comm(ompi_communicator_t* comm);
    ~Comm();

    // Returns the record of `rank`, which is created on first use. Precondition: 0 <= rank < size.
    Peer& peer(std::int32_t rank) noexcept {
        Peer* known = peers[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
        return known ? *known : make_peer(rank);
    }

    ompi_communicator_t* comm;
    std::int32_t size;
    std::atomic<std::int8_t> protocol_hint{-1}, overlap_hint{-1};  // from info keys; -1: not set (hints.h)
    opal_mutex_t lock;                                             // protects `engine` and each Peer::source
    match::Engine engine;
    std::unique_ptr<std::atomic<Peer*>[]> peers;

private:
    Peer& make_peer(std::int32_t rank) noexcept;
};

inline Comm& of(ompi_communicator_t* comm) noexcept { return *reinterpret_cast<Comm*>(comm->c_pml_comm); }

// Finds the transports to the peer. Returns false if there is none, which Open MPI has reported. Ends the job if the
// peer has another architecture or runs an incompatible version.
bool connect(Peer& peer) noexcept;

inline bool reach(Peer& peer) noexcept {
    return peer.endpoint.load(std::memory_order_acquire) != nullptr || connect(peer);
}

// Keeps a message until its communicator exists. Returns the communicator, and keeps nothing, if it has been created in
// the meantime; otherwise null.
Comm* keep_homeless(Arrived* arrived, std::uint16_t context) noexcept;

// The communicators by context id. Open MPI's own table does not serve: it is reallocated as it grows, which the thread
// of async.h cannot notice, and it yields the parent while a new communicator is being agreed on.
extern match::Contexts<Comm> contexts;

// Returns the communicator with this context id, or null if it does not exist here yet.
inline Comm* find_comm(std::uint16_t context) noexcept { return contexts.find(context); }

}  // namespace coop::pml
