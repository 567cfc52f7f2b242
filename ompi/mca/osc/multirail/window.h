// SPDX-License-Identifier: BSD-3-Clause
//
// A window: what this process knows of the others, its epochs, and the operations under way.
//
// An operation takes one of five ways (communicate.cc chooses):
//
//     shared-memory  the origin copies: the target's memory is its own, or mapped here
//     cma            the origin reads or writes the target's memory by system calls (cma.cc)
//     direct         RDMA between the target's memory and the program's buffer
//     staged         RDMA between the target's memory and registered memory of the component (staging.h)
//     message        a record in a frame (coop/rma/packet.h), which the target executes
//
// Accumulates that may access the same memory at the same time must all be executed in the same way, to be atomic with
// each other. The locks of passive synchronization are kept in the same place:
//
//     all processes have mapped the window    the origin executes them under a lock in that memory
//     all are on one node, and may copy by    passive epochs: the origin, under a lock in shared memory; the target
//     CMA (has_words_, not all_mapped_)       takes it, too, for an origin that the kernel refuses later
//                                             active epochs: the target, in the order of the frames
//     HCAs control it (has_control_)          passive epochs: the origin, under a lock that HCAs change (remote.cc)
//                                             active epochs: the target, in the order of the frames
//     otherwise                               the target, in the order of the frames
//
// MPI forbids locking the memory of a process while it is exposed, so the rules of active and passive epochs never
// meet.
//
// Puts and gets to a process of the node go by CMA in windows with processes on several nodes, too. HCAs, or the
// targets, keep the locks of these, and execute their accumulates.
//
//     communicate.cc   MPI_Put and the like         active.cc, passive.cc   synchronization
//     quick.h          short calls on shared memory
//     mapped.cc        shared memory                 target.cc               executes records, answers
//     cma.cc           memory of the node by CMA     info.cc                 the info keys of the window
//     cma_queued.cc    short operations by CMA, collected
//     messages.cc      records                       frames.cc               sends and receives packets
//     direct.cc        RDMA                          create.cc, memory.cc    makes the window
//     staged.cc        RDMA through staging memory   remote.cc               locks and accumulates by HCAs
//     queued.cc        short accumulates by HCAs, collected
//     rendezvous.cc    long ones by the PML           signals.cc              ends of epochs over several rails
//
// Threading: mutex_ guards everything that changes after the creation, except for atomics. It is never held while a
// transport starts or sends anything, opal_progress() runs or a request completes: those may call back into the window.
// Functions that take a Lock& are called with the mutex held, and may release and retake it. Ownership: the module owns
// the window; the window owns its communicator and the memory that it allocated. Errors: functions that MPI calls
// return Open MPI's codes; damage in a packet, or a transport that fails, ends the job.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "compat.h"
#include "coop/base/handle_table.h"
#include "coop/extension/btl_extension.h"
#include "coop/rma/attachments.h"
#include "coop/rma/cover.h"
#include "coop/rma/epoch.h"
#include "coop/rma/lock_queue.h"
#include "coop/rma/node_sync.h"
#include "coop/rma/pscw.h"
#include "coop/rma/range.h"
#include "coop/rma/rank_table.h"
#include "coop/rma/ready_targets.h"
#include "coop/rma/refusals.h"
#include "coop/rma/remote_lock.h"
#include "coop/rma/sync_counters.h"
#include "counts.h"
#include "group_ranks.h"
#include "memory.h"
#include "mutex.h"
#include "ompi/mca/shim/inside.h"
#include "peer.h"
#include "process.h"

namespace coop::osc {

// Most blocks of staging memory that go through accumulates before the lock is released, so that others do not wait too long.
constexpr std::size_t kTurnsUnderLock = 8;
constexpr std::size_t kLeastFrame = 1024;  // the window cannot be created if a transport has shorter packets

struct Direct;
struct Acquisition;
struct AtomicCall;
struct Execution;
struct Move;

// The fields that all records of one MPI call share.
struct Operation {
    rma::Kind kind;
    std::uint64_t id = 0;  // of the Result, which the target returns as cookie; 0: none
    bool has_data = true;
    // Of accumulates.
    std::uint8_t type = 0;
    std::uint8_t operation = 0;
    std::uint32_t granule = 1;   // records are cut only at multiples of this many bytes
    std::uint64_t position = 0;  // in the result, of what the first record reads
};

class Window {
public:
    // Makes the window together with all processes of `comm`. Returns one of Open MPI's codes, the same in all
    // processes, unless memory is lacking for the communicator itself.
    static int create(ompi_win_t& win, void** base, std::size_t size, int unit, ompi_communicator_t& comm,
                      opal_info_t* info, int flavor, std::unique_ptr<Window>& made);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    // --- quick.h: short calls on memory that is mapped here. False: nothing is done, and the general call follows ---
    bool put_quickly(const Origin& origin, const Target& target) noexcept;
    bool get_quickly(const Origin& origin, const Target& target) noexcept;
    // Null `result`: the old values are not wanted.
    bool accumulate_quickly(const Origin& origin, const Origin* result, const Target& target, ompi_op_t& op) noexcept;
    bool flush_quickly(std::uint32_t rank) noexcept;

    // --- communicate.cc: arguments and results as in MPI; `request` receives the request; null: the call has none ---
    int put(const Origin& origin, const Target& target, ompi_request_t** request);
    int get(const Origin& origin, const Target& target, ompi_request_t** request);
    int accumulate(const Origin& origin, const Target& target, ompi_op_t& op, ompi_request_t** request);
    int get_accumulate(const Origin& origin, const Origin& result, const Target& target, ompi_op_t& op,
                       ompi_request_t** request);
    int compare_and_swap(const void* value, const void* comparand, void* result, ompi_datatype_t& type,
                         std::uint32_t rank, std::ptrdiff_t displacement);

    // --- active.cc ---
    int fence(int assertion);
    int start(ompi_group_t& group, int assertion);
    int complete();
    int post(ompi_group_t& group, int assertion);
    int wait();
    int test(int* flag);

    // --- passive.cc ---
    int lock(int type, std::uint32_t rank, int assertion);
    int unlock(std::uint32_t rank);
    int lock_all(int assertion);
    int unlock_all();
    int flush(std::uint32_t rank, bool local);
    int flush_all(bool local);
    int sync() noexcept;

    // --- create.cc ---
    int attach(void* base, std::size_t bytes);
    int detach(const void* base);
    int shared_query(int rank, std::size_t* size, int* unit, void* base) const;
    // Returns MPI_ERR_RMA_SYNC if an epoch is open. Otherwise a barrier of all processes.
    int free();

    // --- called by transports and by the progress function (frames.cc, unless another file is named) ---
    // The window, retained; null: none has this context id.
    static Window* find(std::uint32_t context) noexcept;
    // Returns what is wrong with the packet, which ends the job, like all text that functions here return; null:
    // nothing.
    const char* on_packet(const rma::Packet& packet, std::span<const std::byte> bytes) noexcept;
    bool has_waiting() const noexcept { return any_waiting_.load(std::memory_order_acquire); }
    // Sends packets that had no room in a transport, frames whose results somebody waits for, and parts of long
    // answers. Returns the number of packets.
    int send_waiting() noexcept;
    bool has_messages() const noexcept { return any_message_.load(std::memory_order_acquire); }
    // Starts the PML messages that peers have asked for, and finishes completed ones (rendezvous.cc). Returns their
    // number.
    int progress_messages();
    // Gives staging blocks back as soon as the transfers through them have ended (staged.cc).
    void close_blocks();
    // The window is not destroyed between these calls.
    void retain() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept { users_.fetch_sub(1, std::memory_order_release); }
    std::uint32_t context() const noexcept { return context_; }
    WindowCounts& counts() noexcept { return counts_; }

private:
    friend class Replies;
    using Lock = std::unique_lock<Mutex>;

    Window(ompi_win_t& win, ompi_communicator_t* comm, int flavor);

    Peer& peer(std::uint32_t rank);  // mutex_ is held
    bool is_dynamic() const noexcept { return flavor_ == MPI_WIN_FLAVOR_DYNAMIC; }
    bool is_shared() const noexcept { return flavor_ == MPI_WIN_FLAVOR_SHARED; }

    // --- create.cc ---
    int agree(std::size_t size, int unit, opal_info_t* info, void** base);
    int look_at_transports();
    int make_memory(const std::vector<Share>& parts, bool share, bool contiguous, bool controls, void** base);
    bool try_memory(const std::vector<Share>& parts, bool share, bool contiguous, void* given);
    struct Ticket;
    // Makes the segment of this node, or attaches to it. Every process takes part; `tickets`: of all. False: there is none.
    bool join_segment(const SegmentPlan& plan, bool is_possible, std::vector<Ticket>& tickets);
    bool share_memory(const SegmentPlan& plan);
    bool own_memory();
    mca_btl_base_endpoint_t* rdma_to(std::uint32_t rank) const noexcept;
    bool is_near(std::uint32_t rank) const noexcept;
    bool make_control();
    bool wants_cma() const noexcept;
    // Makes the words of a node whose memory is not shared, and tries CMA to all of its processes. Every process takes
    // part. Returns 0, or why it cannot be: an errno, or kNoNode.
    std::int32_t share_words(const std::vector<Share>& parts);
    // `errors`: what share_words() has returned, by rank.
    void use_words(const std::vector<std::uint32_t>& members, const std::vector<std::int32_t>& errors);

    // --- communicate.cc ---
    struct Place {
        std::uint64_t offset;  // of the displacement in the target's part; in dynamic windows: its address
        std::byte* mapped;     // valid if is_mapped
        bool is_mapped;
    };
    // Checks epoch and range, and waits until the target permits the access. OMPI_SUCCESS: `place` is valid.
    int enter(Lock& lock, const Target& target, Place* place);
    void wait_until_ready(Lock& lock, Peer& peer);
    // Before the first operation of an epoch on a target. False: the epoch does not permit it.
    bool make_ready(std::uint32_t rank) noexcept;
    struct Choice {
        Way way;
        Reason reason;
    };
    // In a passive epoch: whether to send these blocks as a message, because the target can execute many at once.
    bool wants_help(std::uint32_t rank, std::uint64_t blocks) const noexcept;
    // For RDMA of the program's memory, `here` has the blocks of the origin.
    Choice choose(const Origin& origin, const Target& target, const rma::RunBuilder& layout, OriginBlocks& here);
    // Whether HCAs execute the current epoch: it is passive, and they control the window.
    bool by_hcas() const noexcept { return has_control_ && is_passive(); }
    bool is_passive() const noexcept {
        const rma::Access access = epochs_.access_state();
        return access == rma::Access::kLocks || access == rma::Access::kLockAll;
    }
    Reason why_mapped(std::uint32_t rank) const noexcept {
        return rank == rank_ ? Reason::kOwnMemory : Reason::kSameNode;
    }
    // Whether the epoch is passive, and its locks are in shared memory, but not the memory of the window.
    bool by_words() const noexcept { return has_words_ && !all_mapped_ && is_passive(); }
    void move_directly(Lock& lock, Peer& there, bool puts, const OriginBlocks& origin, const rma::RunBuilder& layout,
                       Request* request);
    int combine(const Origin& origin, const Origin* result, const Target& target, ompi_op_t& op,
                ompi_request_t** request);
    template <class F>
    void wait_for(Lock& lock, F done);  // waiting.h

    // --- messages.cc ---
    // Appends records for all of `runs` to the open frame, and sends each frame that is full. pack(to, bytes) copies
    // the next bytes of data. Releases the mutex while it sends.
    template <class F>
    void write_records(Lock& lock, Peer& peer, const Operation& what, std::span<const rma::Run> runs, F pack);
    void append(Lock& lock, Peer& peer, const rma::Record& record);
    void open_frame(Lock& lock, Peer& peer);
    void close_frame(Peer& peer, std::vector<Outgoing>& out);
    // The same for many peers: sends what has been closed before `out` becomes long.
    void close_frame(Lock& lock, Peer& peer, std::vector<Outgoing>& out);
    // Closes and sends the open frame. Releases the mutex while it sends.
    void send_frame(Lock& lock, Peer& peer);
    // Notes that a flush of all targets has to visit the peer.
    void touch(Peer& peer);
    template <class F>
    void wait_for_results(Lock& lock, F done);
    Result& new_result(Lock& lock, Peer& peer, std::uint64_t bytes, Request* request);
    Result& new_result(Lock& lock, Peer& peer, const Origin& to, const ElementType* element, std::uint64_t bytes,
                       Request* request);
    void put_message(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout);
    void get_message(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout, Request* request);
    // The part of an accumulate that this process has executed: so many bytes of its elements. The unpacker, if there is one, has
    // their old values.
    struct Executed {
        std::uint64_t bytes = 0;
        std::unique_ptr<Unpacker> unpacker{};
    };
    // What is not `done`. Null `result`: the old values are not wanted.
    void accumulate_message(Lock& lock, Peer& peer, const Origin& origin, const Origin* result, const Target& target,
                            std::uint64_t offset, const ElementType& element, std::uint8_t operation, Request* request,
                            Executed done);
    void swap_message(Lock& lock, Peer& peer, const Origin& value, const void* comparand, const Origin& result,
                      std::uint64_t offset);
    // Lets the progress function send the open frame: the program may wait for a request, which does not flush it.
    void expect(Peer& peer) noexcept;

    // What has not been executed of accumulates that have waited: from number `first` on. Of those before number `next`, only
    // the elements at offsets from `offset` on.
    struct Unexecuted {
        std::size_t first, next;
        std::uint64_t offset;
    };
    // accumulate_message() for them.
    void send_queued(Lock& lock, Peer& peer, const rma::AccumulateQueue& queue, const Unexecuted& rest);
    // put_message() or get_message() for one block of bytes at `local`: the rest of a refused RDMA.
    void move_blocks(Lock& lock, Peer& peer, bool puts, std::byte* local, const rma::RunBuilder& layout,
                     Request* request);

    // --- rendezvous.cc ---
    // A block that another process wants this one to receive or to send.
    struct BlockWanted {
        std::uint32_t source;
        rma::Record record;
    };
    // A receive of the PML that is under way.
    struct PmlMessage {
        ompi_request_t* request;
        Peer* peer;
        std::uint64_t cookie;  // if `answers`: for the answer to the origin; otherwise the generation of the operation
        Request* wanted;       // the program's request; null: none
        bool answers;          // this process is the target of a put and must answer when the data have arrived
    };
    bool suits_rendezvous(const Origin& origin, const rma::RunBuilder& layout, std::uint32_t rank) const noexcept;
    bool is_long_block(const Origin& origin, const rma::RunBuilder& layout) const noexcept;
    void wait_for_messages(Lock& lock, Peer& peer);
    void ask_for_block(Lock& lock, Peer& peer, rma::Kind kind, std::uint64_t offset, std::uint64_t bytes,
                       std::uint32_t tag, std::uint64_t cookie);
    void put_rendezvous(Lock& lock, Peer& peer, const std::byte* from, const rma::Run& to);
    void get_rendezvous(Lock& lock, Peer& peer, std::byte* to, const rma::Run& from, Request* request);
    const char* on_block_wanted(std::uint32_t source, const rma::Record& record);
    void end_messages(std::span<PmlMessage> ended);

    // --- direct.cc ---
    static bool suits_rdma(const mca_btl_base_module_t& btl) noexcept;
    // Starts RDMA of the blocks at the cursors, of the origin and of the target, and moves the cursors past them. Returns
    // how many bytes the transport has accepted; fewer than all if it refused.
    std::uint64_t transfer(Lock& lock, Peer& peer, bool puts, const OriginBlocks& origin, rma::RunCursor& here,
                           rma::RunCursor& there, Request* request);
    // One RDMA operation. Lets transports progress until they have room. Call it without the mutex.
    int start_rdma(Peer& peer, bool puts, std::byte* local, mca_btl_base_registration_handle_t* handle,
                   std::uint64_t offset, std::uint64_t bytes, mca_btl_base_rdma_completion_fn_t done, void* context,
                   bool beside_atomics = false);
    // The same for several. Their remote addresses are offsets in the window, and become addresses. The pieces stay
    // until `done` is called.
    int start_pieces(Peer& peer, bool puts, std::span<RdmaPiece> pieces, mca_btl_base_registration_handle_t* handle,
                     mca_btl_base_rdma_completion_fn_t done, void* context);
    // Calls start() again as long as it returns a shortage.
    template <class F>
    static int start_when_possible(bool puts, F start);
    void end_part(Direct* direct, bool was_transfer) noexcept;
    rma::TransfersUnderLock::Number add_transfer(Peer& peer) noexcept;
    void end_transfer(Peer& peer) noexcept;
    // Before a transfer to the peer. Not in callbacks.
    void wait_for_room(Lock& lock, const Peer& peer);
    static void on_rdma_done(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void*,
                             mca_btl_base_registration_handle_t*, void*, void* data, int status);

    // --- staged.cc ---
    void put_staged(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout);
    void get_staged(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout, Request* request);
    Staging::Block& take_block(Lock& lock);
    // A block with room for so many bytes.
    Staging::Block& open_block(Lock& lock, Peer& peer, std::uint32_t room);
    void close_block(Lock& lock, Peer& peer);
    void note_open(Peer& peer) noexcept;
    // If RDMA writes to the peer may not be visible to all of its HCAs: starts reads behind them, as operations of the
    // peer. Releases the mutex.
    void read_behind(Lock& lock, Peer& peer);
    static void drop(Staging::Block& block) noexcept;
    StagedPartPtr new_part(Peer& peer, Staging::Block& block, bool puts);
    void give_back(StagedPartPtr part) noexcept;
    StagedPart& part_for(Lock& lock, Peer& peer, Staging::Block& block, bool puts);
    // These release the mutex.
    void start_part(Lock& lock, StagedPartPtr part);
    void start_waiting_part(Lock& lock, Peer& peer, bool puts);
    void start_waiting_parts(Lock& lock, Peer& peer);
    void put_block(Lock& lock, Peer& peer, const std::byte* from, const rma::Block& to);
    void add_write(Lock& lock, Peer& peer, Staging::Block& block, const rma::Transfer& transfer);
    void get_block(Lock& lock, Peer& peer, std::byte* to, const rma::Block& from, Request* request);
    void get_blocks(Lock& lock, Peer& peer, const Origin& origin, const rma::RunBuilder& layout, Request* request);
    StagedPart& add_read(Lock& lock, Peer& peer, Staging::Block& block, const rma::Transfer& transfer,
                         std::optional<std::uint32_t> gap);
    std::optional<std::uint32_t> gap_to(Peer& peer, const Staging::Block& block, const rma::Block& first) const;
    void deliver(const StagedPart& part, RequestList& done) noexcept;
    void end_staged(StagedPartPtr part) noexcept;
    static void on_staged_done(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void*,
                               mca_btl_base_registration_handle_t*, void*, void* data, int status);

    // --- remote.cc ---
    enum class Word : std::uint8_t { kLock, kAccumulate };  // of ControlWords
    // Carries out an atomic operation, and returns what was in the word before.
    std::uint64_t change_word(Lock& lock, Peer& peer, Word word, const rma::AtomicStep& step);
    // Starts an atomic addition, and does not wait for its result.
    void add_later(Lock& lock, Peer& peer, Word word, std::uint64_t operand);
    void start_atomic(Lock& lock, AtomicCall* call, Word word, const rma::AtomicStep& step);
    static void on_atomic_done(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, void*,
                               mca_btl_base_registration_handle_t*, void*, void* data, int status);
    std::uint64_t take_result(const AtomicCall& call);
    void acquire(Lock& lock, Peer& peer, Word word, rma::LockType type, bool overtakes);
    void acquire(Lock& lock, Peer& peer, Word word, rma::RemoteLock& steps, rma::AtomicStep step);
    void release(Lock& lock, Peer& peer, Word word, rma::LockType type);
    void start_moves(Lock& lock, Peer& peer, bool puts, std::span<const Move> moves, std::uint32_t* missing);
    // The same, and waits for their end.
    void move(Lock& lock, Peer& peer, bool puts, std::span<const Move> moves);
    // Take the lock of a target's accumulates, and read. Between the first two, wait until has_looked(). look_at() returns whether
    // the lock is held; if not, end_acquisition() waits for it.
    void begin_acquisition(Lock& lock, Acquisition& wanted, std::span<const Move> reads);
    bool look_at(Acquisition& wanted);
    void end_acquisition(Lock& lock, Acquisition& wanted, std::span<const Move> reads);
    // All of that.
    void acquire_and_read(Lock& lock, Peer& peer, std::span<const Move> reads);
    void write_and_release(Lock& lock, Peer& peer, std::span<const Move> writes);
    std::vector<Staging::Block*> take_blocks(Lock& lock, std::uint64_t bytes);
    void accumulate_remote(Lock& lock, Peer& peer, const Origin& origin, const Origin* result, const Target& target,
                           const Place& place, const ElementType& element, std::uint8_t operation);
    void swap_remote(Lock& lock, Peer& peer, const void* value, const void* comparand, void* result, std::size_t bytes,
                     const Place& place);

    // --- queued.cc ---
    // Lets a short accumulate wait for execute_queued(), with its operand packed. Null `result`: the old values are not wanted.
    // False: it does not suit.
    bool queue_accumulate(Lock& lock, Peer& peer, const Origin& origin, const Origin* result, const Target& target,
                          const Place& place, const ElementType& element, std::uint8_t operation);
    // Executes the accumulates that wait, and waits for those that other threads are executing.
    void execute_queued(Lock& lock, Peer& peer);
    // The same for several; without `all`, only where some have results. Where HCAs execute them, those of different targets are
    // under way at the same time.
    void execute_queued(Lock& lock, std::span<Peer* const> peers, bool all);
    void execute_together(Lock& lock, std::span<Peer* const> peers);
    void begin(Lock& lock, Execution& run);
    void end(Lock& lock, Execution& run);
    void begin_and_end(Lock& lock, Execution& run);
    void execute_mapped(Lock& lock, const Card& card, const rma::AccumulateQueue& queue);
    std::unique_ptr<rma::AccumulateQueue> take_queue();
    void give_back(std::unique_ptr<rma::AccumulateQueue> queue) noexcept;

    // --- quick.h ---
    std::byte* quick_place(const Target& target) noexcept;
    // Lets transports progress in one of `every` calls, a power of two.
    void progress_sometimes(std::uint32_t every = 256) noexcept;

    // --- mapped.cc ---
    static int put_mapped(const Origin& origin, const Target& target, std::byte* at);
    static int get_mapped(const Origin& origin, const Target& target, const std::byte* at);
    // The lock of accumulates that all origins use; null: the window's mutex is enough.
    SharedLocks* words_of(std::uint32_t rank) const noexcept {
        return all_mapped_ || by_words() ? memory_.locks[rank] : nullptr;
    }
    void accumulate_mapped(const Origin& origin, const Origin* result, const Target& target, std::byte* at,
                           const ElementType& element, std::uint8_t operation, SharedLocks* words);
    void swap_mapped(const void* value, const void* comparand, void* result, std::size_t bytes, std::byte* at,
                     SharedLocks* words);

    // --- cma.cc, cma_queued.cc ---
    // For a process of the node; nothing: other conditions decide.
    std::optional<Choice> choose_near(const Origin& origin, std::uint32_t rank, const rma::RunBuilder& layout) const;
    bool may_copy(std::uint32_t rank, std::span<const rma::Run> runs) const;
    bool knows_attached(Peer& peer) const;
    // A put or a get. If the kernel refuses, it is a message.
    void copy_near(Lock& lock, bool puts, const Origin& origin, const Target& target, const rma::RunBuilder& layout,
                   Request* request);
    static int put_near(const Card& card, const Origin& origin, const rma::RunBuilder& layout);
    static int get_near(const Card& card, const Origin& origin, const rma::RunBuilder& layout, bool gaps);
    // Whether what lies between the blocks may be read, too. Precondition: may_copy(), with the mutex held since.
    bool may_read_gaps(std::uint32_t rank, std::span<const rma::Run> runs) const noexcept;
    // Whether an accumulate is executed here; the mutex is held.
    bool accumulates_near(const Target& target, const Place& place) const;
    // An accumulate on one block of at most kShortBlock bytes. Null `from`: nothing changes; null `result`: the old values are
    // not wanted. Returns how many bytes of it have been executed; fewer than all if the kernel refuses.
    std::uint64_t combine_block(std::uint32_t rank, const rma::Block& there, const std::byte* from, std::byte* result,
                                const ElementType& element, std::uint8_t operation);
    std::uint64_t write_elements(std::uint32_t rank, std::byte* from, std::span<const rma::Transfer> writes,
                                 const ElementType& element);
    // Both are counted, and release the mutex. False: the kernel refuses what is not `done`, and the mutex is held. Of a swap,
    // nothing is done then.
    bool accumulate_near(Lock& lock, const Origin& origin, const Origin* result, const Target& target,
                         const Place& place, const ElementType& element, std::uint8_t operation, Executed& done);
    bool swap_near(Lock& lock, const void* value, const void* comparand, void* result, std::size_t bytes,
                   std::uint32_t rank, const Place& place);
    // Lets a short put or get wait for execute_copies(). False: it does not suit.
    bool queue_copy(Lock& lock, bool puts, const Origin& origin, const Target& target, const Place& place);
    // Executes the puts and gets that wait, and waits for those that other threads are executing.
    void execute_copies(Lock& lock, Peer& peer) {
        if (peer.has_copies()) [[unlikely]]
            execute_all_copies(lock, peer);
    }
    void execute_all_copies(Lock& lock, Peer& peer);
    void execute_copies(Lock& lock, Peer& peer, bool puts);
    // Executes accumulates that have waited; what the kernel refuses becomes messages.
    void execute_near(Lock& lock, Peer& peer, const rma::AccumulateQueue& queue);
    Unexecuted try_near(std::uint32_t rank, const rma::AccumulateQueue& queue, rma::AccumulateBatch& batch);
    // Before an accumulate that does not wait. False: others before it are messages, so it has to be one, too.
    bool may_overtake_none(Lock& lock, std::uint32_t rank);
    bool change_attached(bool attaches, const void* base, std::size_t bytes);

    // --- active.cc ---
    void wait_until_sent(Lock& lock, std::span<Peer* const> peers);
    bool look_up(GroupRanks& known, ompi_group_t& group);
    void order_memory() const noexcept;
    int pass_barrier();
    // Calls f with the counter of posts and completes: in shared memory (NodeSync), or by packets (Pscw).
    template <class F>
    auto with_posts(F f) {
        return all_mapped_ ? f(node_) : f(pscw_);
    }

    // --- signals.cc ---
    // Tells the peer, behind all operations on it, that an epoch has ended. RDMA writes may still be under way; all
    // else has ended or is in frames.
    void end_epoch(Lock& lock, Peer& peer, rma::End end, bool touched, std::vector<Outgoing>& out);
    std::uint32_t signal_writes(Lock& lock, Peer& peer, const rma::Signal& signal);
    const char* on_signal(std::uint32_t source, const rma::Signal& signal);
    bool end_fence(Lock& lock);

    // --- passive.cc ---
    void take_mapped_lock(Lock& lock, Peer& peer, rma::LockType type);
    void release_mapped_lock(Peer& peer) noexcept;
    // Where HCAs control the window, ask_for_lock() only notes the request, and wait_for_lock() takes the lock.
    void ask_for_lock(Lock& lock, Peer& peer, rma::LockType type);
    void wait_for_lock(Lock& lock, Peer& peer);
    void wait_for_asked_lock(Lock& lock);
    void release_lock(Lock& lock, Peer& peer);
    int release_all(Lock& lock, std::span<Peer* const> peers);
    int release_all_by_hcas(Lock& lock, std::span<Peer* const> peers);
    bool is_put_before_release(const Peer& peer) const;
    // Waits for all earlier operations on the peers. With `remote`, until they are complete at the target, too. Returns
    // OMPI_ERR_RMA_RANGE if a target has refused one, because its memory is not attached. Without `with_writes`, RDMA
    // writes may still be under way.
    int finish(Lock& lock, std::span<Peer* const> peers, bool remote, bool with_writes = true);
    // The same for one peer to which there is only RDMA. Keeps its staging block open.
    void finish_rdma(Lock& lock, Peer& peer, bool remote);
    std::vector<Peer*> touched_peers();
    void progress_unless_waited(Lock& lock, std::uint64_t rounds) noexcept;

    // --- frames.cc ---
    void enter_map();
    void leave_map() noexcept;
    void send(std::vector<Outgoing>&& out) noexcept;  // the mutex is not held
    void send_or_keep(std::vector<Outgoing>&& out) noexcept;
    bool try_send(const Outgoing& out) noexcept;
    bool send_unreported(const Outgoing& out, bool interrupts) noexcept;
    bool next_waiting(Peer& peer, Outgoing& out);
    void note_waiting(Peer& peer) noexcept;
    void note_messages() noexcept;
    bool may_continue(const LongAnswer& answer, std::uint32_t bytes) const noexcept;
    void continue_answers(Peer& peer, std::vector<Outgoing>& out);
    void continue_answer(const Peer& peer, LongAnswer& answer, std::uint32_t bytes, class Replies& replies);
    Buffer take_buffer();
    void give_back(Buffer&& buffer) noexcept;
    static void on_sent(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t*, int);

    // --- target.cc ---
    const char* execute(std::uint32_t source, std::span<const std::byte> frame, class Replies& replies);
    const char* execute(std::uint32_t source, const rma::ReadRecord& record, Replies& replies);
    const char* apply(std::uint32_t source, const rma::ReadRecord& record, std::span<const rma::Run> runs,
                      Replies& replies);
    const char* on_reply(std::uint32_t source, std::span<const std::byte> packet, RequestList& done);
    const char* on_answer(Peer& from, const rma::Reply& reply, const std::byte* data, RequestList& done);
    void end_result(Result* result, RequestList& done) noexcept;
    void grant(std::uint32_t to, Replies& replies);
    std::byte* address_of(std::uint64_t offset) const noexcept;  // of own memory
    bool own_memory_has(std::span<const rma::Run> runs) const noexcept;
    const char* refuse(std::uint32_t source, const rma::Record& record, Replies& replies);

    ompi_win_t* const win_;
    ompi_communicator_t* const comm_;
    const std::uint32_t context_, processes_, rank_;
    const int flavor_;
    bool all_mapped_ = false;   // locks and accumulates are in shared memory
    bool has_words_ = false;    // locks and the barrier are in shared memory; with all_mapped_, and by CMA
    bool wants_words_ = false;  // all processes want CMA within their nodes
    bool is_refused_ = false;   // the kernel does not permit CMA on this node
    bool has_control_ = false;  // HCAs execute passive epochs
    bool has_fences_ = false;   // fences_ serves fences, in all processes
    bool interrupts_ = false;   // frames interrupt a target that has the asynchronous handler (target_helps)
    std::size_t frame_bytes_ = 0;
    mca_btl_base_module_t* rdma_ = nullptr;    // the transport for RDMA; null: none
    const BtlExtension* extension_ = nullptr;  // of rdma_; null: none
    Staging::Block* read_bytes_ = nullptr;     // where all reads behind writes go
    WindowMemory memory_;
    std::vector<Card> cards_;  // by rank

    Mutex mutex_;
    rma::Epochs epochs_;
    rma::ReadyTargets ready_;
    rma::Pscw pscw_;
    rma::Fences fences_;
    rma::NodeSync node_;    // instead of a barrier where has_words_, and of pscw_ where all_mapped_
    rma::LockQueue locks_;  // of this process as target
    rma::Attachments attachments_;
    std::vector<std::unique_ptr<Peer>> peers_;  // by rank
    rma::RankTable by_name_;                    // empty until the first start or post
    std::vector<Peer*> touched_;
    List<Peer, &Peer::by_use> by_use_;  // those with an open frame, the least recently used first
    std::size_t open_frames_ = 0;
    List<Peer, &Peer::by_block> open_blocks_;  // those with a staging block, or a part that waits
    std::uint64_t rounds_ = 0;                 // of progress while a thread waited
    std::uint32_t rdma_rounds_ = 0;            // of waits in passive epochs of HCAs
    std::uint32_t locks_asked_ = 0;            // locks that this process has or waits for
    Peer* lock_asked_ = nullptr;               // the last lock() has asked it for its lock, and need not hold it yet
    bool start_no_check_ = false;              // of the last start
    GroupRanks start_group_, post_group_;      // of the last start and of the last post
    std::uint32_t results_ = 0;                // missing ones without a request
    std::uint64_t fetched_bytes_ = 0;          // of missing results of accumulates without data
    std::vector<Buffer> buffers_;              // free ones
    std::vector<StagedPartPtr> free_parts_;
    std::unique_ptr<rma::AccumulateQueue> free_queue_;
    std::uint32_t queues_ = 0;  // that targets have
    std::unique_ptr<rma::AccumulateBatch> free_batch_;
    std::unique_ptr<rma::CopyQueue> free_copies_;
    rma::Refusals refusals_;                  // of origins' memory, by rdma_
    std::vector<BlockWanted> blocks_wanted_;  // asked for by peers, not started
    std::vector<PmlMessage> messages_;
    std::uint32_t next_tag_ = 0;
    std::vector<Peer*> busy_;                  // those to which send_waiting() may have something to send
    std::vector<rma::Run> runs_;               // of the record that is being executed
    std::vector<std::uint32_t> free_results_;  // of ControlWords
    std::atomic<bool> any_waiting_{false};     // send_waiting() has something to do
    std::atomic<bool> any_message_{false};     // progress_messages() has
    std::atomic<std::uint32_t> users_{0};
    std::atomic<std::uint32_t> calls_{0};  // of progress_sometimes()
    HandleTable<Result> ids_;
    WindowCounts counts_;
};

}  // namespace coop::osc
