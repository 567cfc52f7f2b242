// SPDX-License-Identifier: BSD-3-Clause
//
// A queue pair of this process: its send queue and the requester's half of the
// transport (InfiniBand chapter 9: packet sequence, retries, migration). The
// responder's half is in shared memory (QueuePair), because the peer's requester
// executes it.
//
// A work request passes four marks. They only move forward, except that a retry
// moves `executed` and `sent` back to the request that is to be repeated, and that
// RESET sets all to 0:
//
//     head ≤ executed ≤ sent ≤ tail
//     head      oldest request that is not completed (completions are in order)
//     executed  next request to execute at the responder, once its data has arrived
//     sent      next request to put onto the first link
//     tail      next request to be posted
//
// Threading: any. This object's lock guards its members. It is taken before the
// shared QueuePair's, and released while a thread copies or notifies.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "fabric/engine/agenda.h"
#include "fabric/engine/completion.h"
#include "fabric/engine/link.h"
#include "fabric/engine/memory.h"
#include "fabric/engine/route.h"

namespace coop::fabric {

class Client;
struct LateMessage;
struct Strike;
struct Struck;
enum class Answer : int;

struct SendCapacity {
    std::uint32_t requests;
    std::uint32_t sges;
    std::uint32_t inline_bytes;
    bool all_signaled;
};

// Where a datagram goes: an address handle, resolved when it was created.
struct DatagramAddress {
    Route route;
    Path path;
    std::uint32_t pd;
    std::uint32_t addresses;  // Header::addresses when the route was found
};

// A posted send work request. The verbs layer fills in the first part.
struct SendWork {
    std::uint64_t wr_id;
    ibv_wr_opcode opcode;
    std::uint32_t flags;  // ibv_send_flags
    std::uint32_t imm;    // network byte order
    std::uint32_t rkey;
    std::uint64_t remote_address;
    std::uint64_t compare_add, swap;
    DatagramAddress to;  // UD
    std::uint32_t to_qp, to_qkey;
    std::uint32_t sges;  // 0 with IBV_SEND_INLINE
    Sge sge[kMaxSges];
    std::uint32_t inline_bytes;  // with IBV_SEND_INLINE: number of bytes at inline_data()

    // The engine fills in the rest.
    std::byte* inline_at;
    std::uint64_t bytes;
    std::uint64_t moved;  // bytes that have been copied
    std::uint64_t chunk;  // bytes in transit
    std::uint32_t first_psn, packets;
    std::int64_t posted_ns;
    Slot first_link;      // of the chunk
    std::int64_t due_ns;  // when the current stage ends
    ibv_wc_status status;
    // waiting     for its turn or a retry
    // queued      for the first link; due when it gets the link
    // on_the_way  due when the chunk, or the request of a read, arrives at the responder
    // responding  of a read: due when the chunk arrives at the requester
    // done        due when the requester has the acknowledgement
    enum class Stage : std::uint8_t { waiting, queued, on_the_way, responding, done } stage;
    // When done: whether the acknowledgement arrives.
    // by_path  if the path back is up until then
    // lost     due when the requester's timer expires
    // certain  whatever happens to the path
    enum class Heard : std::uint8_t { by_path, lost, certain } heard;
};

inline constexpr std::uint64_t kInlineBytes = 32
                                              << 10;  // messages larger than this are not copied inside ibv_post_send

class LocalQp {
public:
    LocalQp(Client& client, std::uint32_t index, const SendCapacity& capacity);
    ~LocalQp();
    LocalQp(const LocalQp&) = delete;
    LocalQp& operator=(const LocalQp&) = delete;

    std::uint32_t index() const { return index_; }
    QueuePair& shared() const { return shared_; }
    const SendCapacity& capacity() const { return capacity_; }

    // To post: begin(), then slot() and add() for each request, then end(), which starts the work.
    void begin() { lock_.lock(); }
    SendWork* slot();                              // null if the queue is full
    std::uint32_t room() const;                    // number of free slots
    std::byte* inline_data(const SendWork& work);  // room for capacity().inline_bytes
    int add(SendWork& work);                       // returns 0, or the errno of a request that cannot be posted
    void end();

    // Applies the attributes of both halves and enters the new state. The verbs layer has checked the transition and
    // the attributes. `mask` says which fields of `attribute` are valid.
    void modify(const ibv_qp_attr& attribute, int mask);
    // Fills in the attributes of both halves and the current state, for ibv_query_qp.
    void query(ibv_qp_attr& attribute);

    // Does the work that is due and tells the agenda when the next is. Called for entries of the agenda.
    void work() noexcept;
    // Called when the verbs layer has posted receives to a QP in the error state, or another process has moved it to
    // that state.
    void on_attention() noexcept;

private:
    SendWork& at(std::uint32_t mark) { return ring_[mark & (ring_.size() - 1)]; }
    const SendWork& at(std::uint32_t mark) const { return ring_[mark & (ring_.size() - 1)]; }
    std::uint32_t state() const { return shared_.state.load(std::memory_order_acquire); }
    bool is_mute() const { return shared_.mute.load(std::memory_order_relaxed) != Mute::no; }

    // local_qp.cc: posting, attributes, state
    void wait_until_nobody_works();
    void take_attributes(const ibv_qp_attr& attribute, int mask);
    void enter(std::uint32_t state, const ibv_qp_attr& attribute, int mask);
    ibv_wc_status first_flaw(const SendWork& work, std::uint64_t longest) const;
    void reset_queue();
    void flush_sends();
    void flush_if_failed();
    void emit(std::uint32_t mark, ibv_wc_status status);
    void let_late_go();
    bool is_late(const SendWork& work) const;
    void trace_message(TraceKind kind, const SendWork& work, ibv_wc_status status) const;

    // Releases the lock, then wakes the engine's thread if necessary; while the lock is held, the thread would only
    // block on it.
    void unlock();
    struct Turn {
        explicit Turn(LocalQp& qp) : qp_(qp) { qp.lock_.lock(); }
        ~Turn() { qp_.unlock(); }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        LocalQp& qp_;
    };

    // Calls `act`, which copies or notifies, without holding the lock, so that other threads can post; `working_` keeps
    // them from doing other work.
    template <class Do>
    auto without_lock(Do&& act) {
        lock_.unlock();
        auto result = act();
        lock_.lock();
        return result;
    }

    // requester.cc: work that is due
    void work_until_nothing_is_due(bool posting);
    bool advance(std::int64_t now, bool posting);
    bool may_send(const SendWork& work) const;
    void refresh_address(DatagramAddress& to) const;
    bool send_next(std::int64_t now);
    void send_chunk(SendWork& work, std::int64_t ready_ns, std::int64_t now);
    void leave_first_link(SendWork& work);
    bool execute_next(std::int64_t now, bool posting);
    void execute(SendWork& work, std::int64_t now);
    void execute_datagram(SendWork& work, const Strike& strike);
    void send_again_later(const SendWork& work, std::int64_t delay_ns);
    void execute_unreliable(SendWork& work, const Strike& strike);
    void execute_reliable(SendWork& work, const Strike& strike, std::int64_t now);
    Struck struck(const SendWork& work) const;
    Strike strike_of(const Route& route, const SendWork& work) const;
    bool arrives(const Route& route, const SendWork& work, std::uint32_t mtu, const Strike& strike) const;
    void on_acknowledged(SendWork& work);
    void acknowledge_earlier(std::int64_t due_ns);
    void on_cut(SendWork& work, const Strike& strike, std::int64_t now);
    void on_swallowed(SendWork& work, const Strike& strike);
    bool respond_next(std::int64_t now);
    void respond_chunk(SendWork& work, std::int64_t ready_ns);
    bool complete_next(std::int64_t now);
    bool is_acknowledgement_lost(const SendWork& work) const;
    bool is_due_for_sleepers(std::int64_t due_ns, std::int64_t now) const;
    void notify();
    void finish(SendWork& work, ibv_wc_status status, std::int64_t due_ns);
    void drain();
    std::int64_t next_due() const;
    std::int64_t may_wait_until(std::int64_t due_ns) const;
    void plan();

    // retry.cc: failures
    void on_answer(SendWork& work, Answer answer, std::int64_t now);
    bool is_gap_noticed(const SendWork& work);
    void on_lost(SendWork& work, std::int64_t now);
    void retry(SendWork& work, std::int64_t at_ns);
    void go_back_to(SendWork& work);
    void on_not_ready(SendWork& work, std::int64_t now);
    bool migrate();
    void refresh_routes();
    bool has_peer() const;
    bool hears();
    std::int64_t timeout_ns() const;

    Client& client_;
    const Segment& subnet_;
    const std::uint32_t index_;
    QueuePair& shared_;
    const SendCapacity capacity_;
    const bool traces_messages_;
    const std::uint64_t longest_;  // bytes of a message, except for datagrams
    std::mutex lock_;

    std::vector<SendWork> ring_;  // a power of two entries
    std::vector<std::byte> inline_data_;
    std::uint32_t head_ = 0, executed_ = 0, sent_ = 0, tail_ = 0;
    std::uint32_t begun_ = 0;                // requests before this have been sent at least once
    std::vector<std::uint32_t> responding_;  // marks of reads whose response is in transit
    std::uint64_t in_flight_bytes_ = 0;      // sent but not executed
    std::uint32_t reads_in_flight_ = 0;      // RDMA reads and atomics
    std::uint32_t unheard_ = 0;              // number of requests with Heard::lost
    Notices notices_;                        // of completions in this step; belongs to the thread that works
    bool working_ = false;                   // a thread is working; it may have released the lock to copy
    bool again_ = false;                     // the working thread has to look again
    bool call_ = false;                      // unlock() has to wake the engine's thread
    bool failing_ = false;                   // a request has failed; no later one is executed
    bool flushed_ = false;                   // LAST_WQE_REACHED has been raised
    bool drain_event_ = false;               // SQ_DRAINED has to be raised
    std::int64_t planned_ns_ = Agenda::kNever, planned_latest_ns_ = Agenda::kNever;

    std::int64_t clock_ns_ = 0;  // the last reading of the clock
    std::uint32_t next_psn_ = 0;
    std::uint32_t max_reads_ = 0;
    std::uint32_t retry_count_ = 0, retries_left_ = 0;
    std::uint32_t rnr_retry_ = 0, rnr_left_ = 0;
    // The network keeps this message from its responder until this sender has given up on it. Null: none.
    std::unique_ptr<LateMessage> late_;
    std::int64_t late_by_ns_ = 0;  // with `late_`: how long after that it arrives

    std::int64_t blocked_until_ns_ = 0;  // until a retry timer expires
    std::int64_t link_free_ns_ = 0;      // model time at which the last chunk has left the first link
    Route route_, back_;
    std::uint32_t route_epoch_ = 0, back_epoch_ = 0;
    std::uint32_t addresses_ = 0;  // Header::addresses when the routes were found
    bool routed_ = false;
};

}  // namespace coop::fabric
