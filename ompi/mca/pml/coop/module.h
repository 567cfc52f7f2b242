// SPDX-License-Identifier: BSD-3-Clause
//
// The state of pml/coop in one process, and the list of its entry points.
//
//   component.cc    open, register, init             params.cc       declarations of parameters
//   module.cc       enable, add_procs, progress      comm.cc         communicators, peers
//   send.cc         MPI_Send and related calls       recv.cc         MPI_Recv and related calls
//   send_request.cc the steps of a send              recv_request.cc the steps of a receive
//   send_start.cc   the first step of a send         recv_rts.cc     processing an RTS
//   bounce.cc       sends through a bounce buffer    recv_offer.cc   offers of receives
//   recv_way.cc     long messages through the lane   recv_direct.cc  MPI_Recv without a request
//   on_match.cc     eager messages, RTS, matching    on_answer.cc    CTS, FRAG, FIN
//   rdma.h          gets and puts                    drive_copy.h    cooperative copies
//   hca_copies.cc   chunks copied by HCAs            awaited.cc      receives that a thread waits for
//   packet.cc       handing packets to a BTL         node.cc         neighbours and boards
//   probe.cc        probes                           diagnose.cc     errors and notices
//   async.cc        progress during computations     hints.cc        settings changed at run time
//   report.cc       pml_coop_report                  pvars.cc        performance variables
//   extensions.cc   extensions of transports         choices.cc      words of parameters
//   modex.cc        what a process publishes         processes.cc    processes that this one sends to
//   pieces.cc       buffers in pieces                device_memory.h memory of accelerators
//   streams.cc      when messages that nobody waits for use RDMA
//   lifetime.h      references and steps of requests arrived.h       stored packets
//   pool.h          free lists                       ticks.h         the clock of statistics
//   compat.h        the headers of Open MPI          stack_convertor.h  a convertor of one call
//   send_steps.h    what the steps of a send share   recv_steps.h    what the parts of a receive share
//   node_lane.cc    the lane: rings of shared memory lane_packet.h   packets of the lane
//   lane_costs.cc   which messages are short enough for the lane
//   lane_parts.cc   messages of the lane that arrive in parts, or that we read from their sender
//
// Threading: Guard locks only if several threads may be inside MPI; entry points and callbacks take turns with the
// handler (async.h). Lock order: a communicator's matching lock, then the module's lock; no transport is called under
// either.
#pragma once

#include "compat.h"

#include "coop/async/handler.h"
#include "coop/base/block_store.h"
#include "coop/base/counters.h"
#include "coop/base/fault.h"
#include "coop/base/handle_table.h"
#include "coop/base/undestroyed.h"
#include "coop/base/usage.h"
#include "coop/match/engine.h"
#include "coop/rndv/board.h"
#include "coop/rndv/bounce.h"
#include "coop/rndv/protocol.h"
#include "coop/wire/headers.h"
#include "extensions.h"
#include "params.h"
#include "ticks.h"

namespace coop::pml {

struct SendRequest;
struct RecvRequest;
struct Arrived;

// Work for the progress function: a step that a transport refused for lack of resources, or a copy that continues chunk
// by chunk.
struct WorkQueue;
struct Deferred {
    ListNode node;
    void (*retry)(Deferred*) = nullptr;
    WorkQueue* queue = nullptr;  // the queue that holds it, or null; under Module::lock
};

struct WorkQueue {
    List<Deferred, &Deferred::node> list;  // under Module::lock
    std::atomic<std::uint32_t> length{0};
};

struct Module {
    Config given;   // as Open MPI and its tools write it
    Config config;  // checked, and in use
    Faults faults;
    Usage usage;
    Usage::Column lane_usage;  // of messages that fit the lane
    Counters counters;
    Ticks ticks;  // unit of Counter::kCopyTime
    HandleTable<SendRequest> sends;
    HandleTable<RecvRequest> recvs;
    Extensions extensions;
    async::Handler handler;

    opal_free_list_t arrived;   // Arrived
    BlockStore blocks;          // memory of unexpected messages that are too long for an Arrived
    opal_free_list_t rdma_ops;  // RdmaOp

    opal_mutex_t lock;                                     // protects the lists below
    WorkQueue deferred;                                    // waits for resources; retried in order
    WorkQueue copying;                                     // copies under way; one chunk at a time
    List<match::Arrival, &match::Arrival::node> homeless;  // messages for communicators that do not exist here yet

    rndv::SlotPool slots;      // of our board
    rndv::BouncePool bounces;  // of our bounce buffers

    std::uint32_t my_rank = 0;             // in the job; sent in every control header
    bool crowded = false;                  // is_crowded() (node.h)
    std::atomic<bool> idle{false};         // the application only waits
    std::atomic<bool> has_offered{false};  // a message in the lane, since the last message from anybody
    std::atomic<int> quick_returns{0};     // to the progress engine; see notice_idleness()
    bool threads = false;                  // several threads may be inside MPI at once
    bool yields = false;                   // the program has threads, which may need the CPU of one that waits
    bool enabled = false;
};

extern Undestroyed<Module> module_holder;
inline constexpr Module& module = module_holder.value;

inline const BtlExtension* extension_of(const mca_btl_base_module_t& btl) noexcept { return module.extensions.of(btl); }

// How often this thread has looked for packets in vain since the last one (let_other_threads_run()). Counted only if the
// program has threads.
inline constinit thread_local unsigned empty_looks = 0;

// Inside: held by the entry points for messages and communicators. Polling: held by the progress function, which may find
// nothing. Callback: held by the callbacks of transports, which have found something (async.h).
struct Inside : async::Inside {
    Inside() noexcept : async::Inside(module.handler) {}
};
struct Polling : async::Polling {
    Polling() noexcept : async::Polling(&module.handler) {}
};
struct Callback : Polling {
    Callback() noexcept {
        if (module.yields) empty_looks = 0;
    }
};

class Guard {
public:
    explicit Guard(opal_mutex_t& mutex) noexcept : mutex_(module.threads ? &mutex : nullptr) {
        if (mutex_) opal_mutex_lock(mutex_);
    }
    ~Guard() {
        if (mutex_) opal_mutex_unlock(mutex_);
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

private:
    opal_mutex_t* mutex_;
};

extern mca_pml_base_module_t base_module;

// Queues `work` to be retried. Returns false if it is queued already.
bool defer(Deferred& work) noexcept;

// Queues a copy to be continued: `in_front` if it has just copied a chunk, so that messages complete one after the
// other and not all at the end; otherwise at the back, because it waits for the other side. Returns false if it is
// queued already.
bool go_on_copying(Deferred& work, bool in_front) noexcept;

// Called when a message starts that may need a cooperative copy: the application may compute afterwards.
inline void not_idle() noexcept {
    module.quick_returns.store(0, std::memory_order_relaxed);
    module.idle.store(false, std::memory_order_relaxed);
}

// Called by Open MPI through mca_pml_base_module_t, whose members have these names.
extern "C" {
int mca_pml_coop_add_procs(ompi_proc_t** procs, size_t nprocs);
int mca_pml_coop_del_procs(ompi_proc_t** procs, size_t nprocs);
int mca_pml_coop_enable(bool enable);
int mca_pml_coop_add_comm(ompi_communicator_t* comm);
int mca_pml_coop_del_comm(ompi_communicator_t* comm);
int mca_pml_coop_irecv_init(void* buf, size_t count, ompi_datatype_t* datatype, int src, int tag,
                            ompi_communicator_t* comm, ompi_request_t** request);
int mca_pml_coop_irecv(void* buf, size_t count, ompi_datatype_t* datatype, int src, int tag, ompi_communicator_t* comm,
                       ompi_request_t** request);
int mca_pml_coop_recv(void* buf, size_t count, ompi_datatype_t* datatype, int src, int tag, ompi_communicator_t* comm,
                      ompi_status_public_t* status);
int mca_pml_coop_isend_init(const void* buf, size_t count, ompi_datatype_t* datatype, int dst, int tag,
                            mca_pml_base_send_mode_t mode, ompi_communicator_t* comm, ompi_request_t** request);
int mca_pml_coop_isend(const void* buf, size_t count, ompi_datatype_t* datatype, int dst, int tag,
                       mca_pml_base_send_mode_t mode, ompi_communicator_t* comm, ompi_request_t** request);
int mca_pml_coop_send(const void* buf, size_t count, ompi_datatype_t* datatype, int dst, int tag,
                      mca_pml_base_send_mode_t mode, ompi_communicator_t* comm);
int mca_pml_coop_iprobe(int src, int tag, ompi_communicator_t* comm, int* matched, ompi_status_public_t* status);
int mca_pml_coop_probe(int src, int tag, ompi_communicator_t* comm, ompi_status_public_t* status);
int mca_pml_coop_improbe(int src, int tag, ompi_communicator_t* comm, int* matched, ompi_message_t** message,
                         ompi_status_public_t* status);
int mca_pml_coop_mprobe(int src, int tag, ompi_communicator_t* comm, ompi_message_t** message,
                        ompi_status_public_t* status);
int mca_pml_coop_imrecv(void* buf, size_t count, ompi_datatype_t* datatype, ompi_message_t** message,
                        ompi_request_t** request);
int mca_pml_coop_mrecv(void* buf, size_t count, ompi_datatype_t* datatype, ompi_message_t** message,
                       ompi_status_public_t* status);
int mca_pml_coop_start(size_t count, ompi_request_t** requests);
int mca_pml_coop_dump(ompi_communicator_t* comm, int verbose);
int mca_pml_coop_ft_event(int state);

int mca_pml_coop_progress(void);  // reads the lane and serves both work queues
}

}  // namespace coop::pml
