// SPDX-License-Identifier: BSD-3-Clause
//
// A peer: the channel to it, which is all rails between two processes.
//
//     unused ──first use, here or by the peer──► connecting ──the rails that open have answered──► connected
//                               │
//                               └──no rail can be opened──► broken
//                                (ends the job, unless the peer is on this node and
//                                nothing waits for the channel: then it is not used)
//
// Fragments and operations that are started before the channel is connected wait in
// `waiting` and `waiting_ops`, in order.
//
// Threading: under Module::lock. Ownership: the module owns endpoints.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coop/path/balance.h"
#include "coop/path/pairing.h"
#include "coop/path/partition_clock.h"
#include "coop/path/port.h"
#include "coop/path/rail_life.h"
#include "coop/path/silence.h"
#include "coop/rail/channel.h"
#include "coop/rail/writes.h"
#include "coop/sched/delivery.h"
#include "coop/sched/held.h"
#include "coop/sched/trials.h"
#include "migration.h"
#include "params.h"
#include "queue_pair.h"
#include "ring.h"
#include "work.h"

namespace coop::ib {

struct Module;

struct RailReceives {
    std::vector<std::unique_ptr<ReceiveBuffer>> receives;  // empty with a shared receive queue
};

// A rail of this transport. The order of the bases matters: the queue pair must be destroyed before the buffers that it
// receives into, because a peer may still send.
struct Rail : RailReceives, rail::Rail<QueuePair, Work> {
    std::uint32_t local_hca = 0, remote_hca = 0;
    std::uint64_t early = 0;      // messages that arrived over this rail before an earlier message of the sequence
    std::uint32_t cq_places = 0;  // entries of the HCA's completion queue that are reserved for it
    std::uint32_t in_use = 0;     // own receive buffers that hold messages
    bool drained = false;         // valid while it is closing: `last` has come back, or cannot
    std::uint64_t closed_ns = 0;  // when it was drained
    std::uint8_t port = 0, path_bits = 0;  // of the path that it is on, as far as the application knows
    std::uint64_t moves = 0;               // to another path
    path::NoAlternate no_alternate = path::NoAlternate::kNone;
    std::unique_ptr<MigratingQp> migrating;              // null: it does not migrate
    std::unique_ptr<path::Balance> balance;              // null: it does not leave congested paths
    std::optional<sched::SequenceNumber> last_follower;  // the last message behind stripes that has arrived over it

    // Brings the queue pair to the error state.
    bool stop() noexcept {
        migrating.reset();
        return qp.stop();
    }
    bool can_receive() const noexcept { return state == rail::RailState::kUp || state == rail::RailState::kOpening; }
};

// How far ahead of a missing message another message may be. The peer sends at most its window ahead of a message that
// has not landed. A message that has landed may still wait in a receive queue or a ring that is polled later than
// others.
constexpr std::size_t kMostAhead = 1 << 16;
static_assert(kMostAhead > sched::kSendWindow + 2 * kMostReceives + sched::kMaxRingSlots);

enum class ChannelState : std::uint8_t { kUnused, kConnecting, kConnected, kBroken };

// How a rail of a connected channel fails and comes back (failover.cc).
struct RailRepair {
    path::RailLife life;
    path::PathChoice path, reader_path;
    bool wants_reader = false;
    path::Silence silence, reader_silence;
    std::uint32_t way = 0;  // selects the ports of the next datagram; changes with each repetition
    std::uint64_t lost_ns = 0;
    std::optional<sched::SequenceNumber> attempt_follower;  // Rail::last_follower of the attempt that has failed last
    std::optional<sched::SequenceNumber> arrived;  // the peer's Rail::last_follower; valid when it has closed the rail
    // Since the start.
    std::uint64_t failures = 0, recoveries = 0, repeated = 0, repeated_bytes = 0, down_ns = 0;
};

// The last message behind stripes that has arrived over a queue pair that is not in the channel yet: the peer may use it
// earlier.
struct EarlyFollower {
    std::uint32_t hca, qp_number;
    sched::SequenceNumber number;
};

struct Channel : rail::Channel<Channel, Rail, Work> {
    Channel(Module& m, Endpoint& owner) noexcept : module(m), endpoint(owner) {}
    ~Channel();  // receive.cc
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    // For rail::Channel.
    void prepare(Work& message);                           // message.cc
    void build(Rail& rail, Work& work, Request& request);  // request.cc
    void on_refused(Rail& rail, Work& work, int error);    // failure.cc
    // failover.cc
    std::optional<sched::RailIndex> rail_for(Work& work);
    bool reaches_atomic_hca() const noexcept;  // whether a rail does that is up
    std::optional<sched::RailIndex> rail_in_order(const Work& work, std::optional<sched::RailIndex> taken);

    Module& module;
    Endpoint& endpoint;
    ChannelState state = ChannelState::kUnused;
    std::unique_ptr<Inbox> inbox;   // the ring that the peer writes into
    std::optional<Outbox> outbox;   // the peer's ring
    bool has_own_receives = false;  // some rail has receive buffers of its own
    std::uint32_t until_ring = 0;   // messages left until the peer is offered a ring; 0: no offer will follow
    std::string why_broken;         // if kBroken
    // The rest of this block is used only if the channel `repairs`.
    std::vector<RailRepair> repair;              // by rail number
    std::vector<std::unique_ptr<Rail>> retired;  // rails that were replaced; their queue pairs are in error
    std::uint64_t partition_ns = 0;              // since when no rail is usable; 0: one is
    path::PartitionClock clock;                  // for how long requests have waited for a rail
    bool left = false;                           // the peer's process has ended
    std::uint64_t partitions = 0;
    std::uint8_t timeout = 0;                      // of its queue pairs (queue_pairs.h)
    sched::Held<Fragment> held;                    // messages of the sequence that the peer has not acknowledged
    sched::Held<Fragment> held_unordered;          // the same for messages without a place in the sequence
    sched::SendWindow unordered;                   // their numbers
    sched::SeenNumbers seen_unordered;             // those of the peer
    std::uint32_t arrived = 0, arrived_bytes = 0;  // not through the ring, since the last acknowledgement
    std::uint64_t duplicates = 0;                  // arrivals that were dropped
    std::vector<EarlyFollower> early_followers;    // at most one of each queue pair
    bool watched = false;                          // repair() looks after it
    // Operations that will be cut into stripes when a rail has less to do, by direction.
    std::array<OpList, sched::kDirections> uncut;
    // By direction: times of operations that were alone, and the one that is being timed; null: none.
    std::array<sched::StripeTrials, sched::kDirections> trials;
    std::array<RdmaOp*, sched::kDirections> timed{};
    sched::Delivery<ReceiveBuffer, &ReceiveBuffer::due> delivery;  // messages that can be handed on
    sched::ReorderWindow<ReceiveBuffer> arrivals{kMostAhead};
    rail::Writes writes;  // the stripes of puts
    // A rail to the HCA that the peer names for atomic operations; empty: none is open.
    std::optional<sched::RailIndex> atomic_rail;
    bool had_atomics = false;         // atomic operations, or requests that keep their order with them, were started
    std::uint64_t out_of_order = 0;   // arrivals that had to wait for an earlier one
    std::uint64_t connect_waits = 0;  // fragments and operations that had to wait for the connection
    std::array<std::uint64_t, sched::kReasons> whole{}, striped{};  // RDMA operations, by scheduling reason
    std::uint64_t ring_messages = 0,
                  credit_messages = 0;  // messages written into the peer's ring; messages that carried only credits
    std::uint64_t signals = 0;          // copies of signals behind writes
    std::uint32_t most_pieces = 0;      // of a list: every queue pair can take as many
};

// Calls each(rail) for the rails that are up or were.
template <class Each>
void for_each_used_rail(const Channel& channel, Each each) {
    for (sched::RailIndex number = 0; number < channel.rails.numbers(); ++number)
        if (const Rail* const rail = channel.rails.find(number))
            if (rail->state == rail::RailState::kUp || rail->state == rail::RailState::kFailed) each(*rail);
}

// What went over a rail and its queue pair for reads.
inline rail::RailCounts counts_of(const Channel& channel, const Rail& rail) noexcept {
    const Rail* const reader = channel.rails.reader(rail.number());
    return reader != nullptr ? rail.counts + reader->counts : rail.counts;
}

// Moves of the rail and of its queue pair for reads to another path.
inline std::uint64_t moves_of(const Channel& channel, const Rail& rail) noexcept {
    const Rail* const reader = channel.rails.reader(rail.number());
    return rail.moves + (reader != nullptr ? reader->moves : 0);
}

// Counts a message that arrived before an earlier one. The HCA is needed because queue pairs of two HCAs may have the
// same number. qp_number 0: it came through the ring, so it is counted for no rail.
inline void count_early(Channel& channel, std::uint32_t hca, std::uint32_t qp_number) noexcept {
    ++channel.out_of_order;
    for (Rail& rail : channel.rails)
        if (rail.local_hca == hca && rail.qp.number() == qp_number) ++rail.early;
}

}  // namespace coop::ib

struct mca_btl_base_endpoint_t {
    opal_proc_t* proc = nullptr;
    std::uint64_t id = 0;  // identifies the peer in datagrams
    coop::path::PortList remote;
    coop::ib::HcaMask local_hcas = 0;            // our HCAs that have rails to it
    std::uint32_t atomic_hca = 0;                // the HCA of the peer that executes atomic operations on its memory
    std::optional<bool> may_reach_atomics;       // before the connection; computed once, since each window asks
    bool survives = false;                       // both processes have failover on
    std::unique_ptr<coop::ib::Channel> channel;  // made at first use
    std::atomic<bool> connected{false};          // the channel exists and is connected; may be read without the lock
    coop::ib::WorkList waiting;
    coop::ib::OpList waiting_ops;
    coop::sched::BegunOperations operations;  // RDMA operations in progress
};
