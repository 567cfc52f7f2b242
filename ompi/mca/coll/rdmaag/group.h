// SPDX-License-Identifier: BSD-3-Clause
//
// The processes of one communicator that have agreed to use coll/rdmaag, or the leaders of its nodes (hierarchy.h), and
// the wire between them.
//
// Short steps are written into buffers of their receivers (buffer_row.h) or are packets. Packets and announcements are
// active messages of the BTLs that the PML uses, under a tag of our own, so no matching takes place. Long steps are puts
// where the transport has them. A notice follows a put when it is complete here, or with its data if the transport can
// send it itself (coop/extension/btl_extension.h). Where there is no put, the transport refuses one, or the call is
// to use packets, the data go in packets.
//
// The calls of a communicator are numbered in the order in which the program makes them, blocking and non-blocking ones
// together; that order is the same in all processes. A call by several rings has a number for each ring; calls that do
// not go through the group have none. As many as the window of coop/coll/inbox.h are in progress, the others wait in a
// queue. Whoever polls continues all of them: a thread in a blocking call, the progress function (outstanding.h), or
// the asynchronous handler when something arrives (ompi/mca/shim/inside.h).
//
// Threading: a communicator's calls are made one after the other, in any threads; they are continued by one thread at a
// time, and packets arrive in any thread. Ownership: the module of the communicator owns its group, the hierarchy owns
// that of the leaders. Errors: a damaged packet, or a transport that fails, ends the job.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "buffer_row.h"
#include "compat.h"
#include "coop/base/spin_lock.h"
#include "coop/coll/call.h"
#include "coop/coll/tuner.h"
#include "job.h"
#include "members.h"

namespace coop::ag {

class Group {
public:
    // Null: out of memory.
    static std::unique_ptr<Group> create(Members members, std::size_t short_bytes) noexcept;
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    // All processes have a group now; steps up to `packet_bytes`, which fit a packet, are short.
    void agree(std::uint64_t packet_bytes) noexcept { packet_bytes_ = short_bytes_ = packet_bytes; }
    // All processes can write all steps up to `step_bytes` into collective buffers: these are short, too, in blocking
    // calls. (The others may need interrupts, so they need packets.)
    void agree_on_buffers(std::uint64_t step_bytes) noexcept { short_bytes_ = std::max(packet_bytes_, step_bytes); }
    std::uint64_t packet_bytes() const noexcept { return packet_bytes_; }
    std::uint64_t short_bytes() const noexcept { return short_bytes_; }
    // Rings take this order. All processes call it before the first call, or none. The caller keeps the ranks.
    void order_rings(const coll::RingOrder& order) noexcept { order_ = order; }

    // Whether transports that can write into collective buffers lead to all partners of short steps.
    bool may_write_all_steps() const noexcept { return buffers_->may_write_all_steps(); }
    // Exchanges the addresses of collective buffers with the partners of short steps. All processes call it after
    // agree(), or none. Returns whether this process can write all of its steps up to `step_bytes`.
    bool exchange_buffers(std::uint64_t step_bytes) noexcept;
    // Gathers the blocks into `memory`, which has the own block already. Returns when it has all blocks. Precondition: the
    // way has an algorithm.
    void gather(std::byte* memory, const coll::Blocks& blocks, const coll::Way& way) noexcept;

    // Begins a non-blocking call, which calls job.on_done, perhaps at once.
    void start(Job& job) noexcept;
    // Does what can be done now for all calls. Appends the non-blocking ones that are done; the caller calls on_done.
    void drive(JobList& done) noexcept;

    // Non-blocking calls from start() until end_one().
    std::uint32_t outstanding() const noexcept { return outstanding_.load(std::memory_order_acquire); }
    void end_one() noexcept { outstanding_.fetch_sub(1, std::memory_order_release); }

    ListNode polled;  // of outstanding.cc

    // The group whose packets have this context; null: none.
    static Group* find(std::uint32_t context) noexcept;
    const char* on_packet(const coll::Packet& packet, const void* data, mca_btl_base_module_t* btl) noexcept;

private:
    // The receive buffer as a transport knows it; without a handle where the transport needs none.
    struct Registered {
        mca_btl_base_module_t* btl;
        mca_btl_base_registration_handle_t* handle;
        bool usable;
    };
    struct Put;
    struct Running;   // a call in progress
    class Following;  // scope of a callback after which calls can go on

    Group(Members members, std::unique_ptr<coll::Inbox> inbox) noexcept;

    void gather_alone(Job& job) noexcept;
    void gather_by_rings(std::byte* memory, const coll::Blocks& blocks, std::uint32_t rings) noexcept;
    void wait_for(const Job& job) noexcept;
    void enqueue(Job& job) noexcept;
    Job* next_to_begin() noexcept;
    Running& begin(Job& job) noexcept;
    bool advance(JobList& done) noexcept;
    void check_inbox(std::uint32_t lap) const noexcept;  // ends the job if what has come is wrong
    void end(Running& call, JobList& done) noexcept;
    void drive() noexcept;

    // --- the Wire of coll/call.h ---
    bool announce(Running& call, std::uint32_t to, std::uint32_t number) noexcept;
    bool send_short(Running& call, std::uint32_t to, std::uint32_t step, const coll::Pieces& pieces) noexcept;
    std::uint64_t send_long(Running& call, std::uint32_t to, std::uint32_t step, std::uint64_t at,
                            const coll::Piece& piece, const coll::Announcement& there) noexcept;
    bool send_empty(Running& call, std::uint32_t to, std::uint32_t step) noexcept;
    bool settle(Running& call) noexcept;

    const Registered& registered(Running& call, mca_bml_base_btl_t& btl) noexcept;
    static void release_memory(Running& call) noexcept;

    coll::Packet packet_of(const Running& call, coll::Kind kind, std::uint32_t step) const noexcept;
    bool send(Running& call, mca_bml_base_btl_t& btl, coll::Packet& packet, const coll::Pieces& pieces) noexcept;
    bool send_short_packet(Running& call, std::uint32_t to, std::uint32_t step, const coll::Pieces& pieces) noexcept;
    std::uint64_t send_data(Running& call, std::uint32_t to, std::uint32_t step, std::uint64_t at,
                            const coll::Piece& piece) noexcept;
    bool send_notice(Running& call, mca_bml_base_btl_t& btl, std::uint32_t step, std::uint64_t bytes) noexcept;
    int start(Put& put, mca_bml_base_btl_t& btl, bool to_the_end, void* local, std::uint64_t remote,
              mca_btl_base_registration_handle_t* local_handle,
              mca_btl_base_registration_handle_t* remote_handle) noexcept;
    bool settle(Put& put) noexcept;
    static void on_sent(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t* descriptor,
                        int status);
    static void on_put_done(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void* address,
                            mca_btl_base_registration_handle_t*, void* context, void* put, int status);

    const Members members_;
    std::unique_ptr<coll::Inbox> inbox_;
    std::unique_ptr<BufferRow> buffers_;
    std::vector<std::byte> staging_;  // for one packet with its data
    std::uint64_t packet_bytes_ = 0, short_bytes_ = 0;
    coll::RingOrder order_;

    std::uint32_t lap_ = 0;               // of the last call that the program has made
    std::uint32_t begun_ = 0;             // the last one that is or was in progress
    std::unique_ptr<Running[]> running_;  // lap n at n modulo the window
    JobList waiting_;                     // under lock_
    std::atomic<bool> any_waiting_{false};
    SpinLock lock_;
    Baton baton_;  // whoever has it continues the calls
    std::atomic<std::uint32_t> outstanding_{0};
    std::atomic<std::uint32_t> followers_{0};  // callbacks in the scope of a Following
};

// Registers the callback for arriving packets; once per process. False: the PML does not use BTLs.
bool receive_packets() noexcept;

// Whether this process can send packets to the other one, and how long they may be; 0: it cannot.
std::size_t longest_packet(ompi_communicator_t& comm, std::uint32_t rank) noexcept;

}  // namespace coop::ag
