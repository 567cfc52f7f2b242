// SPDX-License-Identifier: BSD-3-Clause
//
// The module: one for all HCAs of the process, because to Open MPI a channel of
// many rails is one transport.
//
//     upper layer ─► send.cc, rdma.cc ─► message.cc, operation.cc ─► rail::Channel ─► queue pairs
//     rings, completion queues ─► progress.cc ─► receive.cc ─► upper layer
//     ring.cc: offers, takes and reads rings
//
// Functions take the module as an argument, and channels keep a reference. The
// global serves only functions that are called without one, by Open MPI or the
// asynchronous handler, and diagnose.cc, which ends the job from anywhere.
//
// Threading: everything under `lock`, except that the upper layer is called with
// the lock released. Without threads the lock costs nothing, and the turn keeps
// the asynchronous handler out.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "connections.h"
#include "coop/base/undestroyed.h"
#include "coop/rail/verbs/hcas.h"
#include "endpoint.h"
#include "interrupts.h"
#include "params.h"
#include "pools.h"
#include "upcalls.h"

namespace coop::ib {

// What all rails of an HCA share.
struct HcaUse {
    std::vector<std::unique_ptr<ReceiveBuffer>> receives;  // of `srq`
    rail::Cq cq;
    rail::Srq srq;                    // empty: the device has none
    std::uint32_t cq_needed = 0;      // entries, if everything completes at once
    std::uint32_t held = 0;           // buffers of `srq` in which messages wait for an earlier one
    std::uint64_t registrations = 0;  // of the upper layer's memory
    std::uint64_t guid = 0;           // of the HCA: how the load board names it
    // By the number of the queue pair: two HCAs give the same numbers.
    std::unordered_map<std::uint32_t, Endpoint*> qp_users;
};

// Messages that wait for an earlier one outside of receive buffers.
struct EarlyCopies {
    std::uint64_t count = 0;                  // since the start
    std::uint64_t bytes = 0, most_bytes = 0;  // now, and at most so far

    void add(std::uint64_t more) noexcept {
        ++count;
        bytes += more;
        most_bytes = std::max(most_bytes, bytes);
    }
};

struct Module {
    mca_btl_base_module_t base{};  // first: Open MPI has only this
    opal_mutex_t lock;

    Config given;  // as registered
    sched::SchedConfig sched;
    std::vector<rail::Hca> hcas;
    std::vector<HcaUse> uses;  // of each HCA
    std::unique_ptr<Interrupts> interrupts;
    async::HandlerLink handler;
    std::atomic<rndv::HcaLoads*> hca_loads{nullptr};  // where large operations are counted; null: nowhere
    path::PortList own;                               // ports and limits, as peers see them
    path::Nearness nearness;                          // of the HCAs to this process
    std::uint64_t id = 0;                             // of this process
    mca_rcache_base_module_t* rcache = nullptr;
    FragmentPool fragments;
    OpPool ops;
    KeptCalls kept;  // of the upper layer, until the application comes
    std::unordered_map<std::uint64_t, std::unique_ptr<Endpoint>> endpoints;  // by id
    std::atomic<std::uint32_t> connecting{0};                                // channels on their way to a connection
    Inboxes inboxes;                                                         // all rings that peers write into
    EarlyCopies early_copies;
    std::uint64_t begun = 0;                   // RDMA operations so far
    std::size_t immediate_bytes = 0;           // what every HCA takes inline
    std::unique_ptr<Connections> connections;  // ends before what its rails are made of
    bool asked_for = false;                    // by name, in the parameter btl
    mca_btl_base_module_error_cb_fn_t on_error = nullptr;

    static Module& of(mca_btl_base_module_t* m) { return *reinterpret_cast<Module*>(m); }
    std::size_t buffer_bytes() const {
        return sched::written(static_cast<std::uint32_t>(sizeof(Header) + base.btl_max_send_size));
    }
};

// finalize() closes what a module has. Where MPI_Finalize is not called, only the connecting thread ends.
struct ModuleHolder : Undestroyed<Module> {
    ~ModuleHolder();
};

extern ModuleHolder module_holder;
inline constexpr Module& module = module_holder.value;

std::uint32_t local_rank() noexcept;  // among the processes of the job on this node

class Guard {
public:
    explicit Guard(Module& m) noexcept : turn_(m.handler.get()), lock_(m.lock) { OPAL_THREAD_LOCK(&lock_); }
    ~Guard() { OPAL_THREAD_UNLOCK(&lock_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

private:
    async::Polling turn_;  // the asynchronous handler's, where there are no threads
    opal_mutex_t& lock_;
};

// As sched/delivery.h names threads. Without threads there is one.
inline std::uint64_t this_thread() noexcept {
    return opal_using_threads() ? static_cast<std::uint64_t>(pthread_self()) : 0;
}

// What the addresses of all queue pairs have in common.
inline rail::AddressOptions address_options(const Config& given) noexcept {
    return {static_cast<std::uint8_t>(given.service_level), static_cast<std::uint8_t>(given.traffic_class)};
}

}  // namespace coop::ib
