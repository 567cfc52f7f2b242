// SPDX-License-Identifier: BSD-3-Clause
//
// The module. There is one for all HCAs of the process, because Open MPI sees a channel
// of several rails as one transport.
//
//     upper layer ─► send.cc, rdma.cc ─► message.cc, operation.cc ─► rail::Channel ─► queue pairs
//     rail::Channel ─► Channel::prepare() (message.cc): completes a message that has got its sequence number
//                   ─► Channel::build() (request.cc): fills in the work request for the chosen rail
//     rings, completion queues ─► progress.cc ─► receive.cc ─► upper layer
//     ring.cc: offers, takes and reads rings
//     connect.cc, connections.cc, queue_pairs.cc: make the rails of a channel
//     failure.cc: carries out what an error of a rail means
//     migration.cc: lets queue pairs move to another path
//     failover.cc: takes rails that fail out of service, repeats what was under way, and connects them again
//
// Functions take the module as an argument, and channels keep a reference. The
// global serves only functions that are called without one, by Open MPI or the
// asynchronous handler, and diagnose.cc, which ends the job from anywhere.
//
// Threading: everything under `lock`, except that the upper layer is called with
// the lock released. If Open MPI uses no threads, the lock costs nothing, and the turn
// (async/turn.h) excludes the asynchronous handler.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "connections.h"
#include "coop/base/undestroyed.h"
#include "coop/rail/verbs/hcas.h"
#include "endpoint.h"
#include "interrupts.h"
#include "migration.h"
#include "params.h"
#include "pools.h"
#include "upcalls.h"

namespace coop::ib {

// The objects and counters that all rails of an HCA share.
struct HcaUse {
    std::vector<std::unique_ptr<ReceiveBuffer>> receives;  // the buffers of `srq`
    rail::Cq cq;
    rail::Srq srq;                    // empty: the device has none
    std::uint32_t cq_needed = 0;      // entries that are needed if everything completes at once
    std::uint32_t queue_pairs = 0;    // made so far, also those that did not open
    std::uint32_t held = 0;           // buffers of `srq` in which messages wait for an earlier one
    std::uint64_t registrations = 0;  // registrations of the upper layer's memory
    std::uint64_t guid = 0;           // identifies the HCA on the load board
    // Bytes that have completed over each port, by its number and direction. Valid with apm_balance.
    std::vector<std::array<path::Carried, sched::kDirections>> carried;
    // By queue pair number. Each HCA has a table, because two HCAs may use the same number.
    std::unordered_map<std::uint32_t, Endpoint*> qp_users;
};

// Counts the messages that wait for an earlier one in a copy instead of a receive buffer.
struct EarlyCopies {
    std::uint64_t count = 0;                  // since the start
    std::uint64_t bytes = 0, most_bytes = 0;  // now, and the maximum so far

    void add(std::uint64_t more) noexcept {
        ++count;
        bytes += more;
        most_bytes = std::max(most_bytes, bytes);
    }
};

struct Module {
    mca_btl_base_module_t base{};  // first: Open MPI knows the module by the address of this
    opal_mutex_t lock;

    Config given;  // values of the parameters
    sched::SchedConfig sched;
    std::vector<rail::Hca> hcas;
    std::vector<HcaUse> uses;  // one for each HCA
    std::unique_ptr<Interrupts> interrupts;
    async::HandlerLink handler;
    std::atomic<rndv::HcaLoads*> hca_loads{nullptr};  // counts large operations; null: they are not counted
    path::PortList own;                               // the ports and limits that this process publishes
    path::Nearness nearness;                          // how near the HCAs are to this process
    std::uint64_t id = 0;                             // identifies this process
    mca_rcache_base_module_t* rcache = nullptr;
    FragmentPool fragments;
    OpPool ops;
    RequestChain chain;  // of the list that is being posted
    KeptCalls kept;      // calls to the upper layer that the handler has left to the application
    std::unordered_map<std::uint64_t, std::unique_ptr<Endpoint>> endpoints;  // by id
    std::atomic<std::uint32_t> connecting{0};                                // channels that are connecting
    Inboxes inboxes;                                                         // all rings that peers write into
    EarlyCopies early_copies;
    std::uint64_t begun = 0;                   // RDMA operations so far
    std::uint32_t repairing = 0;               // channels with a rail that is not up, or retired rails (failover.h)
    std::uint32_t sweeps = 0;                  // calls that handle completions now: a callback may start another one
    std::uint64_t next_repair_ns = 0;          // when repair() looks at timers again
    std::uint64_t next_look_ns = 0;            // when it looks at all channels again
    std::uint64_t swept_ns = 0;                // when a sweep began that emptied all queues; valid with apm_balance
    std::uint64_t emptied_ns = 0;              // when a sweep has last emptied all queues; valid while repairing
    std::size_t awaited_packet_max = 0;        // longest packet of a message whose sender waits
    std::size_t long_packet_max = 0;           // longest packet that only a ring takes; 0: none
    bool limit_set = false;                    // the user has set btl_coopib_eager_limit
    std::size_t immediate_bytes = 0;           // the most that every HCA sends inline
    std::unique_ptr<Migrations> migrations;    // null: no queue pair migrates. Destroyed after the rails
    std::unique_ptr<Connections> connections;  // destroyed before the objects that its rails use
    std::atomic<bool> offers_atomics{false};   // peers may execute atomic operations on memory of this process
    bool asked_for = false;                    // the parameter btl names this component
    mca_btl_base_module_error_cb_fn_t on_error = nullptr;

    static Module& of(mca_btl_base_module_t* m) { return *reinterpret_cast<Module*>(m); }
    std::size_t buffer_bytes() const {
        return sched::written(static_cast<std::uint32_t>(sizeof(Header) + base.btl_max_send_size));
    }
};

// finalize() releases the resources of the module. If MPI_Finalize is not called, the destructor only ends the
// connecting thread.
struct ModuleHolder : Undestroyed<Module> {
    ~ModuleHolder();
};

extern ModuleHolder module_holder;
inline constexpr Module& module = module_holder.value;

std::uint32_t local_rank() noexcept;  // rank among the processes of the job on this node

class Guard {
public:
    explicit Guard(Module& m) noexcept : turn_(m.handler.get()), lock_(m.lock) { OPAL_THREAD_LOCK(&lock_); }
    ~Guard() { OPAL_THREAD_UNLOCK(&lock_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

private:
    async::Polling turn_;  // excludes the asynchronous handler if Open MPI uses no threads
    opal_mutex_t& lock_;
};

// The id of this thread for sched/delivery.h. If Open MPI uses no threads, 0.
inline std::uint64_t this_thread() noexcept {
    return opal_using_threads() ? static_cast<std::uint64_t>(pthread_self()) : 0;
}

// The address options of all queue pairs.
inline rail::AddressOptions address_options(const Config& given) noexcept {
    return {static_cast<std::uint8_t>(given.service_level), static_cast<std::uint8_t>(given.traffic_class)};
}

// What a port must have, so that it is used.
inline rail::PortWishes wishes_for_ports(const Config& given) noexcept {
    return {static_cast<std::uint16_t>(given.pkey), static_cast<int>(given.gid_index),
            given.allow_different_subnets != 0};
}

}  // namespace coop::ib
