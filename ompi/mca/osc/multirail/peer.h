// SPDX-License-Identifier: BSD-3-Clause
//
// What a window knows of each of its processes, and what is under way to it.
//
// Units: bytes. Threading: guarded by the mutex of the window, except for atomics. Ownership: a window owns its peers.
// Errors: std::bad_alloc.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "compat.h"
#include "coop/base/list.h"
#include "coop/rma/accumulate_queue.h"
#include "coop/rma/attachments.h"
#include "coop/rma/copy_queue.h"
#include "coop/rma/generations.h"
#include "coop/rma/inbox.h"
#include "coop/rma/lock_queue.h"
#include "coop/rma/node_lock.h"
#include "coop/rma/packet.h"
#include "coop/rma/remote_lock.h"
#include "coop/rma/sync_counters.h"
#include "layout.h"
#include "request.h"
#include "staging.h"

namespace coop::osc {

using rma::Generations;

// Memory of a frame or a reply.
struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
};

class Window;
struct Peer;
struct StagedPart;
struct DeletePart {
    void operator()(StagedPart* part) const noexcept;  // staged.cc
};
using StagedPartPtr = std::unique_ptr<StagedPart, DeletePart>;

// A sealed packet, on its way to a transport.
struct Outgoing {
    Peer* to;
    bool is_reply;
    Buffer buffer;
    std::size_t bytes;
};

// What is missing of the answer to a long get, or to one behind it. A part goes with each packet that has room.
struct LongAnswer {
    LongAnswer(const rma::Record& record, std::span<const rma::Run> layout)
        : cookie(record.cookie), position(record.position), left(record.bytes), runs(layout.begin(), layout.end()),
          cursor(runs) {}
    LongAnswer(const LongAnswer&) = delete;
    LongAnswer& operator=(const LongAnswer&) = delete;

    const std::uint64_t cookie;
    std::uint64_t position;
    std::uint32_t left;
    const std::vector<rma::Run> runs;
    rma::RunCursor cursor;
};

// What this process knows of another one, or of itself. Created when they first communicate.
struct Peer {
    Peer(std::uint32_t of, mca_bml_base_btl_t* packets, mca_btl_base_endpoint_t* for_rdma) noexcept;
    ~Peer();

    const std::uint32_t rank;
    mca_bml_base_btl_t* const btl;        // carries packets to it; null: it is this process
    mca_btl_base_endpoint_t* const rdma;  // endpoint of Window::rdma_; null: that transport does not reach the peer
    Window* window = nullptr;             // it owns this
    std::size_t most_unreported = 0;      // longest packet whose end `btl` need not report
    // As origin.
    Buffer buffer;                // of the open frame; empty: none
    rma::FrameWriter frame;       // the open frame
    ListNode by_use;              // linked while there is one
    std::uint32_t sequence = 0;   // of the next frame
    bool unflushed = false;       // records that no kFlush has followed yet
    bool touched = false;         // it is in Window::touched_
    bool eager = false;           // somebody waits for results of the open frame
    Generations operations;       // results, RDMA reads and answers that are missing
    Generations writes;           // RDMA writes under way
    bool wrote = false;           // writes since the last signal
    std::uint64_t signalled = 0;  // the moment of the last signal (RailSignal)
    std::uint32_t epochs = 0;     // that signals have ended
    enum class Lock : std::uint8_t { kNone, kAsked, kHeld, kReleased } lock = Lock::kNone;
    rma::NodeLock::Request lock_request;  // its ticket is that of the lock in shared memory
    bool acquiring = false;               // a thread is taking the lock by atomic operations
    std::uint32_t messages = 0;           // long blocks that travel as messages of the PML
    bool refused = false;                 // it has refused an operation, and no flush has told the program
    std::uint32_t transfers = 0;          // RDMA reads and writes under way
    // Those since an HCA has taken the lock of passive synchronization for this process. In order with the release are puts on
    // the queue pair of atomic operations.
    rma::TransfersUnderLock under_lock;
    bool unread_writes = false;                  // RDMA writes that no read has followed
    std::uint64_t read_since = 0;                // for the transport: the moment of the last such read
    Staging::Block* staged = nullptr;            // the block that transfers to come use
    std::uint32_t staged_parts = 0;              // those under way (staged.h)
    std::array<StagedPartPtr, 2> waiting_parts;  // of gets, and of puts: wait for others to join them
    StagedPartPtr& waiting_part(bool puts) noexcept { return waiting_parts[puts]; }
    ListNode by_block;  // linked while it has a block, or a part that waits
    // Accumulates that execute_queued() is going to execute; null: there are none.
    std::unique_ptr<rma::AccumulateQueue> queued;
    bool executing = false;  // a thread executes some that have been queued
    // Whether some of them may have results.
    bool fetches() const noexcept { return executing || (queued && queued->has_results()); }
    bool is_contended = false;  // somebody held the lock of accumulates when this process last tried to take it
    // Puts and gets that execute_copies() is going to execute; null: there are none.
    std::array<std::unique_ptr<rma::CopyQueue>, 2> queued_copies;  // gets, puts
    std::unique_ptr<rma::CopyQueue>& copies_of(bool puts) noexcept { return queued_copies[puts]; }
    bool copying = false;  // a thread executes some of them
    bool has_copies() const noexcept { return queued_copies[0] || queued_copies[1] || copying; }
    // No records have been collected or sent that a flush has to ask about.
    bool has_only_rdma() const noexcept { return !buffer.bytes && !unflushed && !refused; }
    // As far as this process knows, records have not been executed, or results are missing.
    bool is_behind() const noexcept { return buffer.bytes || unflushed || !operations.idle(); }
    bool has_waiting_part() const noexcept { return waiting_parts[0] || waiting_parts[1]; }
    // What it has attached to a dynamic window, as far as this process knows.
    std::vector<rma::Region> attached;
    std::uint64_t attached_version = 0;
    // As target.
    std::uint32_t blocks_wanted = 0;  // of it in Window::blocks_wanted_
    rma::Inbox inbox;
    rma::SyncCounter signals;
    std::uint32_t fences = 0;  // that it has ended by signals
    std::deque<std::unique_ptr<LongAnswer>> answers;
    // Packets to send in the next rounds of progress, because a callback must not wait (send_or_keep()). Frames that
    // somebody waits for (`eager`) and the parts of long answers pass through it, too.
    std::deque<Outgoing> waiting;
    bool refused_by_us = false;               // this process refused a record of the peer; its next flush is told
    bool busy = false;                        // it is in Window::busy_
    std::atomic<std::uint32_t> under_way{0};  // packets in descriptors of the transport
};

// A get or fetching accumulate whose result has not arrived completely. Its id travels as the cookie of the records.
struct Result {
    Result(Peer& from, std::uint64_t total) noexcept : peer(from), bytes(total), missing(total) {}
    ~Result();
    Result(const Result&) = delete;
    Result& operator=(const Result&) = delete;

    Peer& peer;
    const std::uint64_t bytes;
    std::uint64_t missing;
    std::uint64_t id = 0;
    Generations::Number generation = 0;
    Request* request = nullptr;
    bool is_fetched = false;             // Window::fetched_bytes_ counts it
    std::byte* memory = nullptr;         // where the result is contiguous
    std::unique_ptr<Unpacker> unpacker;  // otherwise
    void put(std::uint64_t position, const std::byte* data, std::size_t count) noexcept;
};

}  // namespace coop::osc
