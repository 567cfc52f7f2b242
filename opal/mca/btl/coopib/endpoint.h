// SPDX-License-Identifier: BSD-3-Clause
//
// A peer: the channel to it, which is all rails between two processes.
//
//     unused ──first use──► connecting ──all rails ready──► connected
//                               │
//                               └──no rail can be opened──► broken
//                                (inside the node, where nothing waits for it:
//                                nobody uses it; else the end of the job)
//
// What is posted before the channel is connected waits in `waiting` and
// `waiting_ops`, in order.
//
// Threading: under Module::lock. Ownership: the module's.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coop/path/pairing.h"
#include "coop/path/port.h"
#include "coop/rail/rails.h"
#include "coop/rail/verbs/rc.h"
#include "coop/sched/delivery.h"
#include "coop/sched/read_tokens.h"
#include "coop/sched/receive_credits.h"
#include "coop/sched/scheduler.h"
#include "coop/sched/send_window.h"
#include "params.h"
#include "ring.h"
#include "work.h"

namespace coop::ib {

// One path with its own queue pair.
struct Rail {
    std::vector<std::unique_ptr<ReceiveBuffer>> receives;  // without a shared receive queue
    rail::Qp qp;
    sched::RailIndex number() const noexcept { return mark.rail; }  // valid in a channel
    std::uint32_t local_hca = 0, remote_hca = 0;
    std::uint32_t in_flight = 0;   // work requests on the queue pair
    std::uint32_t depth = 0;       // most of them
    std::uint32_t max_inline = 0;  // bytes
    rail::RailState state = rail::RailState::kOpening;
    bool counts_credits = false;   // the peer has receive buffers for this rail alone: a message needs a credit
    sched::ReceiveCredits own_receives;  // valid without a shared receive queue here
    WorkList waiting;              // in order
    Work mark;                     // posted with an inline send now and then: when it completes, so have those before it
    std::uint32_t unmarked = 0;    // inline sends since the last mark was posted
    std::uint32_t marked = 0;      // those that complete with the mark under way; 0: it is not
    std::vector<sched::SequenceNumber> unmarked_psns, marked_psns;  // of the messages among them
    sched::ReadTokens<StripeWork, &StripeWork::read_node> reads{0};
    std::uint64_t sent_bytes = 0, sends = 0, stripes = 0;
    std::uint64_t waits = 0, read_waits = 0;  // for room in the send queue; for a turn to read
    std::uint64_t early = 0;                  // arrivals over this rail ahead of an earlier one
};

// How far ahead of a missing message another may be seen. The peer goes no further ahead than its window of one that has not
// landed; but one that has landed may wait in a receive queue or a ring that is looked at after others.
constexpr std::size_t kMostAhead = 1 << 16;
static_assert(kMostAhead > sched::kSendWindow + 2 * kMostReceives + sched::kMostRingSlots);

enum class ChannelState : std::uint8_t { kUnused, kConnecting, kConnected, kBroken };

struct Channel {
    Channel() = default;
    ~Channel();  // receive.cc
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    ChannelState state = ChannelState::kUnused;
    std::unique_ptr<Inbox> inbox;  // the ring that the peer writes into; before the rails, which write there
    std::optional<Outbox> outbox;  // the peer's ring
    std::array<sched::SendCredits, sched::kMaxRails> receive_credits;  // of each rail that counts them; the peer may give some before we are connected
    bool has_own_receives = false;  // of some rail
    std::uint32_t until_ring = 0;  // messages that the peer has yet to send before it is offered one; 0: it is not
    rail::Rails<Rail> rails;  // by number; none before the channel is connected or broken
    std::string why_broken;                     // kBroken
    std::optional<sched::Scheduler> scheduler;
    OpList uncut;  // wait whole: cut into stripes when a rail has less to do
    sched::SendWindow window;
    WorkList beyond;  // fragments that wait for room in the window, in order
    sched::Delivery<ReceiveBuffer, &ReceiveBuffer::due> delivery;  // of messages whose turn has come
    sched::ReorderWindow<ReceiveBuffer> arrivals{kMostAhead};
    std::optional<sched::RailIndex> atomic_rail;  // to the HCA that the peer names for atomic operations; nothing: it has not opened
    std::uint64_t out_of_order = 0;  // arrivals that had to wait for an earlier one
    std::uint64_t window_waits = 0;  // fragments that had to wait for an earlier message to land
    std::uint64_t connect_waits = 0;  // fragments and operations that had to wait for the connection
    std::array<std::uint64_t, sched::kReasons> whole{}, striped{};  // RDMA operations, by the reason
    std::uint64_t ring_messages = 0, credit_messages = 0;  // that we have put into the peer's ring; that carried nothing but credits
};

// Queue pairs of two HCAs may have the same number; 0: it came by the ring, which is no rail's.
inline void count_early(Channel& channel, std::uint32_t hca, std::uint32_t qp_number) noexcept {
    ++channel.out_of_order;
    for (Rail& rail : channel.rails)
        if (rail.local_hca == hca && rail.qp->qp_num == qp_number) ++rail.early;
}

}  // namespace coop::ib

struct mca_btl_base_endpoint_t {
    opal_proc_t* proc = nullptr;
    std::uint64_t id = 0;  // how datagrams name it
    coop::path::PortList remote;
    coop::ib::HcaMask local_hcas = 0;  // ours that have rails to it
    std::uint32_t atomic_hca = 0;      // of its HCAs, the one for atomic operations on its memory
    std::unique_ptr<coop::ib::Channel> channel;  // made at first use
    std::atomic<bool> connected{false};          // the channel is there and connected: read without the lock
    coop::ib::WorkList waiting;
    coop::ib::OpList waiting_ops;
    coop::sched::BegunOperations operations;  // RDMA operations that have begun and are not complete
};
