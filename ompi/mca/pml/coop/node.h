// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of this node: our board, theirs, and whether the kernel lets us
// copy from and to them. (coop/rndv/board.h, coop/node/neighbour.h)
//
// Threading: open_node() is called before there are other threads.
#pragma once

#include <memory>

#include "module.h"
#include "node_lane.h"

#include "coop/node/neighbour.h"
#include "coop/node/retry.h"
#include "coop/rndv/board.h"
#include "coop/rndv/bounce.h"
#include "coop/rndv/hca_load.h"
#include "coop/rndv/long_way.h"

namespace coop::pml {

// The memory that each process shares with its node.
struct NodeMemory {
    rndv::Board board;
    rndv::BounceBuffers bounces;
    rndv::HcaLoads loads;  // used only in the memory of the job's first process on the node
};

// Where other processes find the memory of a process (published by modex.cc).
struct BoardCard {
    std::int32_t pid = 0;
    std::int32_t fd = -1;  // -1: no memory to share
    std::uint64_t nonce = 0;
    std::uint64_t nonce_address = 0;  // of the nonce in the process; neighbours read it to test copies
};

// Counts the packets with sequence numbers that transports have accepted and perhaps not sent yet. A lane must not open
// before they are sent: what goes through it would overtake them, and a receiver can order no more than half of all
// sequence numbers (see also kMostBeforeLane). A transport may complete a packet after the Neighbour has gone, so the last of them destroys this.
class Unsent {
public:
    // From the first packet until the lane opens or is given up. Each begin() is followed by end(), once.
    void begin() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
    void end() noexcept {
        if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }
    bool none() const noexcept { return holders_.load(std::memory_order_acquire) == 1; }

private:
    std::atomic<std::uint32_t> holders_{1};  // packets, and the Neighbour
};

// Another process of this node. Its Process owns it.
struct Neighbour {
    Neighbour() = default;
    Neighbour(const Neighbour&) = delete;
    Neighbour& operator=(const Neighbour&) = delete;
    ~Neighbour() { unsent->end(); }

    BoardCard card{};
    std::uint64_t name = 0;                    // name_of() its process
    int copy_error = 0;                        // errno of the test copy; 0: it worked, or copies need no test
    bool copies_by_cma = false;                // we can read its memory by CMA, and it has read memory of its own so
    std::atomic<NodeMemory*> memory{nullptr};  // null: not mapped here; look_again() maps it
    std::atomic<bool> sees_us{
        false};                  // it has told us that it has mapped our memory, so it can read our bounce buffers
    node::SharedMemory mapping;  // under Module::lock
    node::Retry retry;           // of mapping its memory; under Module::lock

    LaneCard lane_card;
    bool is_guest = false;                       // it belongs to another job
    std::atomic<LaneOut*> lane_out{nullptr};     // our end of the lane to it; null: its packets use a transport
    std::atomic<std::int64_t> lane_in{kNoLane};  // messages to go before the lane is opened; kNoLane: it is open, or
                                                 // never will be
    std::unique_ptr<LaneOut> lane;               // under Module::lock
    std::int64_t before_lane = 0;                // messages to it so far, while the lane may open; under Module::lock
    std::int64_t next_pause = kFirstPause;       // messages, if the lane cannot be opened; under Module::lock
    std::atomic<bool> lane_failed{false};        // it could not be opened so far
    Unsent* const unsent = new Unsent;           // packets to it, while the lane may open
    rndv::LongWay long_way;                      // of its messages to us; only if there are no threads
    static constexpr std::int64_t kNoLane = -1, kFirstPause = 1024, kLongestPause = 128 * kFirstPause;
    // A process of another job is reached by btl/tcp before it has a lane. Sent messages are then in a socket, perhaps unread for
    // long. After so many, no lane opens any more, because its messages would overtake them all. A quarter of all sequence
    // numbers.
    static constexpr std::int64_t kMostBeforeLane = 1 << 14;

    bool is_mapped() const noexcept { return memory.load(std::memory_order_acquire) != nullptr; }
    rndv::Board& board() const noexcept {
        return memory.load(std::memory_order_acquire)->board;
    }  // precondition: is_mapped()
    // Maps its memory; retries from time to time if that has failed so far.
    void look_again() noexcept {
        if (!is_mapped() && card.fd >= 0) [[unlikely]]
            try_to_map();
    }
    // From now on packets to it use a transport, unless there is a lane already.
    void keep_to_transport() noexcept { lane_in.store(kNoLane, std::memory_order_relaxed); }
    // Whether our messages to it use a lane, or most likely will.
    bool may_have_lane() const noexcept {
        return lane_out.load(std::memory_order_relaxed) ||
               (lane_in.load(std::memory_order_relaxed) != kNoLane && !lane_failed.load(std::memory_order_relaxed));
    }
    // Called for each packet with a sequence number that a transport is about to accept and may keep. Returns what to
    // tell when it has sent the packet; null: nothing, because no lane will open.
    Unsent* begin_unsent() noexcept {
        if (lane_in.load(std::memory_order_relaxed) == kNoLane) return nullptr;
        unsent->begin();
        return unsent;
    }
    // Called once for each message to it: opens the lane, or counts the message if others have to go before.
    void begin_message() noexcept {
        if (lane_in.load(std::memory_order_relaxed) != kNoLane) [[unlikely]]
            open_lane_if_due(true);
    }
    // Called before each answer (CTS, FIN) to a message from it: opens the lane if no message has to go before.
    void begin_answer() noexcept {
        if (lane_in.load(std::memory_order_relaxed) == 0) [[unlikely]]
            open_lane_if_due(false);
    }

private:
    void try_to_map() noexcept;
    void open_lane_if_due(bool is_message) noexcept;
    void pause_before_lane(int error) noexcept;
};

// Creates the memory that we share. If the system provides none, this process works without.
void open_node() noexcept;
void close_node() noexcept;
BoardCard board_card() noexcept;
// Reports that this process has no memory to share, unless the first process of the node, or rank 0, has none either
// and reports it.
void report_missing_memory() noexcept;

rndv::Board* my_board() noexcept;            // null: we have no memory to share
rndv::BounceBuffers* my_bounces() noexcept;  // null: we have no memory to share

// Shows on our board whether this process waits for all its sends that are under way (awaited.h).
inline void show_waiting(bool waits) noexcept {
    rndv::Board* const board = my_board();
    if (board && board->waits.load(std::memory_order_relaxed) != waits)
        board->waits.store(waits, std::memory_order_relaxed);
}

// Starts to count the large operations on the node's HCAs, in memory that all processes of the node see (HcaLoads).
void count_hca_loads() noexcept;
void stop_counting_hca_loads() noexcept;  // before the transports end

// Tests a copy from another process of this node, which has published the card. Its memory is mapped when a long message needs it
// (look_again()). Returns null for other nodes.
struct Card;
std::unique_ptr<Neighbour> make_neighbour(ompi_proc_t* proc, const Card& card) noexcept;

// The name of a process on a board.
inline std::uint64_t name_of(const ompi_proc_t* proc) noexcept {
    return (std::uint64_t{proc->super.proc_name.jobid} << 32) | proc->super.proc_name.vpid;
}

// True if the processes of the job on this node outnumber the CPUs that they may run on, or the CPU time that their
// control groups allow.
bool is_crowded() noexcept;

}  // namespace coop::pml
