// SPDX-License-Identifier: BSD-3-Clause
//
// A queue pair of this process: its send queue and the requester's half of the
// transport (InfiniBand chapter 9: packet sequence, retries, migration). The
// responder's half is in shared memory (QueuePair), because the peer's requester
// executes it.
//
// A work request passes four marks, each of which only moves on (or, for a
// retry, back to the oldest request that is not acknowledged):
//
//     head ≤ executed ≤ sent ≤ tail
//     head      oldest not completed        (completions in order)
//     executed  next to be executed at the responder, when its data has arrived
//     sent      next to be put onto the first link
//     tail      next to be posted
//
// Threading: the lock of this object guards everything but the constructor.
// It is taken before the shared QueuePair's. Nothing here blocks, but for a copy.
#pragma once

#include <mutex>
#include <vector>

#include "fabric/engine/agenda.h"
#include "fabric/engine/memory.h"
#include "fabric/engine/route.h"

namespace coop::fabric {

class Client;

struct SendCapacity {
    std::uint32_t requests;
    std::uint32_t sges;
    std::uint32_t inline_bytes;
    bool all_signaled;
};

// A datagram's address: that of an address handle, resolved when the handle was made.
struct DatagramAddress {
    Route route;
    Path path;
};

// A posted send work request. The verbs layer fills in the first part.
struct SendWork {
    std::uint64_t wr_id;
    ibv_wr_opcode opcode;
    std::uint32_t flags;       // ibv_send_flags
    std::uint32_t imm;         // network byte order
    std::uint32_t rkey;
    std::uint64_t remote_address;
    std::uint64_t compare_add, swap;
    DatagramAddress to;        // UD
    std::uint32_t to_qp, to_qkey;
    std::uint32_t sges;
    Sge sge[kMaxSges];
    std::uint32_t inline_bytes;  // with IBV_SEND_INLINE: how many lie at inline_data()

    // The engine's.
    std::uint64_t bytes;
    std::uint64_t moved;       // bytes that have been copied
    std::uint32_t first_psn, packets;
    std::int64_t posted_ns;
    std::int64_t due_ns;       // when the chunk on its way arrives; when it is done, the acknowledgement
    std::int64_t link_free_ns; // when the first link is done with it
    ibv_wc_status status;
    enum class Stage : std::uint8_t { waiting, on_the_way, responding, done } stage;
};

class LocalQp {
public:
    LocalQp(Client& client, std::uint32_t index, const SendCapacity& capacity);
    ~LocalQp();
    LocalQp(const LocalQp&) = delete;
    LocalQp& operator=(const LocalQp&) = delete;

    std::uint32_t index() const { return index_; }
    QueuePair& shared() const { return shared_; }
    const SendCapacity& capacity() const { return capacity_; }

    // Posting: begin(), then slot() / add() for each request, then end(), which sets the engine to work.
    void begin() { lock_.lock(); }
    SendWork* slot();                  // null: the queue is full
    std::byte* inline_data(const SendWork& work);
    int add(SendWork& work);           // 0, or the errno of a request that cannot be posted
    void end();

    // The verbs layer has checked the transition and the attributes; these take what concerns the engine and set the
    // shared state, migration and paths. `attribute` is read where `mask` says so.
    void modify(const ibv_qp_attr& attribute, int mask);
    // Requester attributes and the current state, for ibv_query_qp.
    void query(ibv_qp_attr& attribute);

    // Does what is due now; tells the agenda when to come back.
    void work() noexcept;
    // Somebody else moved it to the error state, or took it down.
    void on_attention() noexcept;

private:
    Client& client_;
    const std::uint32_t index_;
    QueuePair& shared_;
    const SendCapacity capacity_;
    std::mutex lock_;
};

}  // namespace coop::fabric
