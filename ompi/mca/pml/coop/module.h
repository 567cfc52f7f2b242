// SPDX-License-Identifier: BSD-3-Clause
//
// The state of pml/coop in one process, and the list of its entry points.
//
//   component.cc   open, register, init          params.cc    declarations
//   module.cc      enable, add_procs, progress   comm.cc      communicators, peers
//   send.cc        MPI_Send …                    recv.cc      MPI_Recv …
//   send_request   a send, step by step;         recv_request a receive, step by step
//   send_start.cc  its first step                rdma.h       the gets and puts of both
//   bounce.cc      sends by a bounce buffer      recv_rts.cc  what an RTS says to it
//                                                recv_offer.cc  receives on offer
//   on_match.cc    eager messages, RTS, matching on_answer.cc CTS, FRAG, FIN
//   drive_copy.h  the cooperative copy of both   node.cc      neighbours and boards
//   hca_lane.cc    the HCAs' part of it          awaited.cc   receives that are waited for
//   packet.cc      handing packets to a BTL      diagnose.cc  what to say when a peer errs
//   probe.cc       probes                        report.cc, pvars.cc, hints.cc
//   async.cc       progress while the application computes
//   extensions.cc  the extensions of transports
//
// Threading: Guard takes a lock only where several threads may be inside MPI;
// entry points and callbacks take the turn that async.h is about.
// Lock order: a communicator's matching lock, then the module's lock; no
// transport is called under either.
#pragma once

#include "compat.h"

#include "coop/async/handler.h"
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

// Work for the progress function: refused by a transport for want of resources,
// or a copy that goes on chunk by chunk.
struct WorkQueue;
struct Deferred {
    ListNode node;
    void (*retry)(Deferred*) = nullptr;
    WorkQueue* queue = nullptr;  // where it stands; null: nowhere. Under Module::lock
};

struct WorkQueue {
    List<Deferred, &Deferred::node> list;  // under Module::lock
    std::atomic<std::uint32_t> length{0};
};

struct Module {
    Config given;   // as Open MPI and its tools write it
    Config config;  // checked
    Faults faults;
    Usage usage;
    Counters counters;
    Ticks ticks;    // of Counter::kCopyTime
    HandleTable<SendRequest> sends;
    HandleTable<RecvRequest> recvs;
    Extensions extensions;
    async::Handler handler;

    opal_free_list_t arrived;   // Arrived
    opal_free_list_t rdma_ops;  // RdmaOp

    opal_mutex_t lock;  // of the lists below
    WorkQueue deferred;         // wait for resources; tried again in order
    WorkQueue copying;          // copies under way; one chunk at a time
    List<match::Arrival, &match::Arrival::node> homeless;  // for communicators that are not here yet

    rndv::SlotPool slots;       // of our board
    rndv::BouncePool bounces;   // of our bounce buffers

    std::uint32_t my_rank = 0;  // in the job; in every control header
    bool crowded = false;       // is_crowded() (node.h)
    std::atomic<bool> idle{false};  // waiting, with nothing but progress to make
    std::atomic<int> quick_returns{0};  // to the progress engine; see notice_idleness()
    bool threads = false;       // several threads may be inside MPI
    bool enabled = false;
};

extern Undestroyed<Module> module_holder;
inline constexpr Module& module = module_holder.value;

inline const BtlExtension* extension_of(const mca_btl_base_module_t& btl) noexcept { return module.extensions.of(btl); }

// Held by every entry point, and by every callback of a transport (async.h).
struct Inside : async::Inside {
    Inside() noexcept : async::Inside(module.handler) {}
};
struct Polling : async::Polling {
    Polling() noexcept : async::Polling(&module.handler) {}
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

// Queues `work` for retry; harmless when it is queued already. True when it was not.
bool defer(Deferred& work) noexcept;

// Queues a copy that goes on: in front if it has just copied a chunk (messages
// end one after the other, not all at last), behind if it waits for the other side.
bool go_on_copying(Deferred& work, bool in_front) noexcept;

// The application is here with something new: it may be about to compute.
inline void not_idle() noexcept {
    module.quick_returns.store(0, std::memory_order_relaxed);
    module.idle.store(false, std::memory_order_relaxed);
}

// Called back by Open MPI; the names are those of mca_pml_base_module_t.
extern "C" {
int mca_pml_coop_add_procs(ompi_proc_t** procs, size_t nprocs);
int mca_pml_coop_del_procs(ompi_proc_t** procs, size_t nprocs);
int mca_pml_coop_enable(bool enable);
int mca_pml_coop_add_comm(ompi_communicator_t* comm);
int mca_pml_coop_del_comm(ompi_communicator_t* comm);
int mca_pml_coop_irecv_init(void* buf, size_t count, ompi_datatype_t* datatype, int src, int tag,
                            ompi_communicator_t* comm, ompi_request_t** request);
int mca_pml_coop_irecv(void* buf, size_t count, ompi_datatype_t* datatype, int src, int tag,
                       ompi_communicator_t* comm, ompi_request_t** request);
int mca_pml_coop_recv(void* buf, size_t count, ompi_datatype_t* datatype, int src, int tag,
                      ompi_communicator_t* comm, ompi_status_public_t* status);
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

int mca_pml_coop_progress(void);  // deferred work and copies; registered when there is some for the first time
}

}  // namespace coop::pml
