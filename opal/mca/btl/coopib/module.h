// SPDX-License-Identifier: BSD-3-Clause
//
// The module: one for all HCAs of the process, because to Open MPI a channel of
// many rails is one transport.
//
//     upper layer ─► send.cc, rdma.cc ─► post.cc ─► queue pairs
//     rings, completion queues ─► progress.cc ─► receive.cc ─► upper layer
//     ring.cc: rings are offered, taken and polled
//
// Threading: everything under `lock`, but calls of the upper layer: these are
// made with the lock released. Without threads the lock costs nothing, and the
// turn keeps the asynchronous handler out.
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
    rail::Srq srq;  // empty: the device has none
    std::uint32_t cq_needed = 0;  // entries, if everything completes at once
    std::uint32_t held = 0;       // buffers of `srq` in which messages wait for an earlier one
    std::uint64_t registrations = 0;  // of the upper layer's memory
    std::uint64_t guid = 0;           // of the HCA: how the load board names it
    // By the number of the queue pair: two HCAs give the same numbers.
    std::unordered_map<std::uint32_t, Endpoint*> qp_users;
};

// Messages that wait for an earlier one outside of receive buffers.
struct EarlyCopies {
    std::uint64_t count = 0;  // since the start
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

    Config given;             // as registered
    sched::SchedConfig sched;
    std::vector<rail::Hca> hcas;
    std::vector<HcaUse> uses;  // of each HCA
    std::unique_ptr<Interrupts> interrupts;
    async::HandlerLink handler;
    std::atomic<rndv::HcaLoads*> hca_loads{nullptr};  // where large operations are counted; null: nowhere
    path::PortList own;        // ports and limits, as peers see them
    path::Nearness nearness;   // of the HCAs to this process
    std::uint64_t id = 0;      // of this process
    mca_rcache_base_module_t* rcache = nullptr;
    FragmentPool fragments;
    OpPool ops;
    KeptCalls kept;            // of the upper layer, until the application comes
    std::unordered_map<std::uint64_t, std::unique_ptr<Endpoint>> endpoints;  // by id
    std::atomic<std::uint32_t> connecting{0};  // channels on their way to a connection
    Inboxes inboxes;               // all rings that peers write into
    EarlyCopies early_copies;
    std::uint64_t begun = 0;       // RDMA operations so far
    std::size_t immediate_bytes = 0;  // what every HCA takes inline
    std::unique_ptr<Connections> connections;  // ends before what its rails are made of
    bool asked_for = false;        // by name, in the parameter btl
    mca_btl_base_module_error_cb_fn_t on_error = nullptr;

    static Module& of(mca_btl_base_module_t* m) { return *reinterpret_cast<Module*>(m); }
    std::size_t buffer_bytes() const { return sched::written(static_cast<std::uint32_t>(sizeof(Header) + base.btl_max_send_size)); }
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

std::uint64_t now_ns() noexcept;

// As sched/delivery.h names threads. Without threads there is one.
inline std::uint64_t this_thread() noexcept { return opal_using_threads() ? static_cast<std::uint64_t>(pthread_self()) : 0; }

// post.cc. All with the lock held.
void post_fragment(Module& m, Endpoint& endpoint, Fragment& fragment);
// A header and what lies behind it, if it can go inline and now; false: it cannot. Behind that, room for sched::written().
bool post_inline(Module& m, Endpoint& endpoint, Header& header, bool urgent);
// A control message. False: there is no memory for it.
bool post_control(Module& m, Endpoint& endpoint, Kind kind, std::span<const std::byte> payload);
// Of both kinds, as many as there are, with nothing else. Without memory for it they go with a later message.
void post_credits(Module& m, Endpoint& endpoint);
void take_receive_credits(Module& m, Endpoint& endpoint, sched::Grant grant);  // that the peer gives back
void on_mark_done(Module& m, Endpoint& endpoint, Rail& rail);
void start_op(Module& m, RdmaOp& op);
void on_posted_done(Module& m, Work& work);  // a work request is off its queue pair: the next may go
void release_waiting(Module& m, Endpoint& endpoint);

// What the addresses of all queue pairs have in common.
inline rail::AddressOptions address_options(const Config& given) noexcept {
    return {static_cast<std::uint8_t>(given.service_level), static_cast<std::uint8_t>(given.traffic_class)};
}

// connect.cc. With the lock held.
void connect(Module& m, Endpoint& endpoint);
void take_news(Module& m);
int progress_connections(Module& m);  // without the lock

// procs.cc
Endpoint* find_endpoint(Module& m, opal_proc_t* proc);  // with the lock held; null: no path leads there
std::uint64_t id_of(const opal_process_name_t& name) noexcept;
opal_process_name_t name_of(std::uint64_t id) noexcept;
std::optional<path::PortList> published_ports(std::uint64_t id);  // any thread; nothing: none that this process could use

// receive.cc. With the lock held, but for the calls of the upper layer.
void post_receive(Module& m, ReceiveBuffer& buffer);
int on_received(Module& m, HcaUse& use, ReceiveBuffer& buffer, const ibv_wc& wc);
int on_slot_filled(Module& m, Inbox& ring);  // perhaps: it looks again, with the lock held

// ring.cc. With the lock held.
void count_towards_ring(Module& m, Endpoint& endpoint);                          // a message has come by the receive queue
void take_control(Endpoint& endpoint, const Header& header);                     // a control message, whose bytes are there
void take_ring_credits(Endpoint& endpoint, std::uint32_t credits);               // that the peer gives back
ReceiveBuffer* take_slot(Inbox& ring);                                           // null: the next one is empty
void finish_slot(Module& m, const ReceiveBuffer& slot);                          // nobody reads it any more

// progress.cc
int progress() noexcept;

// loopback.cc. With the lock held.
void count_posted(Module& m, StripeWork& stripe, std::uint32_t hca) noexcept;  // on the load board of the node, if it is large
void count_completed(const Module& m, StripeWork& stripe) noexcept;

// registration.cc
bool open_registration(Module& m);
void close_registration(Module& m);
std::uint32_t lkey_of(const mca_btl_base_registration_handle_t* handle, std::uint32_t hca) noexcept;

// diagnose.cc
[[noreturn]] void rail_failed(Module& m, Endpoint& endpoint, const Work* work, const ibv_wc& wc);
[[noreturn]] void queue_pair_failed(const Module& m, const Endpoint& endpoint, std::uint32_t hca, const rail::HcaEvent& event);
[[noreturn]] void hca_failed(const Module& m, std::uint32_t hca, const rail::HcaEvent& event);
[[noreturn]] void damaged(const char* field, const opal_proc_t* peer, std::uint64_t value);
[[noreturn]] void cannot_connect(const opal_proc_t* peer, const std::string& why);
[[noreturn]] void no_atomics(const Endpoint& endpoint);
[[noreturn]] void rails_differ(const opal_proc_t* peer, const ParamError& error);
void port_changed(const Module& m, std::uint32_t hca, const rail::HcaEvent& event);  // a notice, by one process of the node
// Notices, of the first such peer.
void fewer_rails(const opal_proc_t* peer, std::size_t open, std::size_t all);
void rail_is_silent(const opal_proc_t* peer, const std::string& rail, std::size_t silent);
void peer_is_late(const opal_proc_t* peer, std::int64_t seconds);
void other_partition(const opal_proc_t* peer, const std::string& why);
void interrupts_lost(const char* hca) noexcept;  // a notice, once

}  // namespace coop::ib
