// SPDX-License-Identifier: BSD-3-Clause
#include "async.h"
#include "modex.h"
#include "module.h"

#include <sched.h>

#include <chrono>
#include <utility>

#include "arrived.h"
#include "awaited.h"
#include "choices.h"
#include "diagnose.h"
#include "node.h"
#include "ompi/mca/shim/threads.h"
#include "on_match.h"
#include "recv_request.h"
#include "report.h"
#include "send_request.h"

namespace coop::pml {

Undestroyed<Module> module_holder;

extern "C" int mca_pml_coop_init_send_item(opal_free_list_item_t* item, void*);  // send.cc
extern "C" int mca_pml_coop_init_recv_item(opal_free_list_item_t* item, void*);  // recv.cc

namespace {

// `what` may be null. With MCA_BTL_ERROR_FLAGS_ADD_CUDA_IPC it is not a text: btl/smcuda announces a peer whose device
// memory it could read, which this PML does not make use of (device_memory.h). The transport itself has handled any
// error that is not fatal.
extern "C" void mca_pml_coop_on_error(mca_btl_base_module_t* btl, std::int32_t flags, opal_proc_t*, char* what) {
    if (flags & MCA_BTL_ERROR_FLAGS_ADD_CUDA_IPC) return;
    const char* const transport = btl ? btl->btl_component->btl_version.mca_component_name : "unknown";
    if (!(flags & MCA_BTL_ERROR_FLAGS_FATAL) && (flags & MCA_BTL_ERROR_FLAGS_NONFATAL))
        return transport_warns(transport, what);
    transport_reports_an_error(transport, what);
}

void check_parameters() noexcept {
    module.config = module.given;
    if (auto error = check(module.config)) {
        if (const std::string word = refused_word(error->name); !word.empty()) error->value = word;
        parameter_out_of_range(*error);
    }
    const char* fault = module.config.fault ? module.config.fault : "";
    auto faults = Faults::parse(fault);
    if (auto* why = std::get_if<std::string>(&faults)) parameter_out_of_range({"fault", fault, *why});
    module.faults = std::move(std::get<Faults>(faults));
}

template <class Item>
void make_list(opal_free_list_t& list, opal_class_t& of_class, std::size_t extra,
               opal_free_list_item_init_fn_t init) noexcept {
    const auto& c = module.config;
    opal_free_list_init(&list, sizeof(Item) + extra, opal_cache_line_size, &of_class, 0, opal_cache_line_size,
                        static_cast<int>(c.free_list_num), static_cast<int>(c.free_list_max),
                        static_cast<int>(c.free_list_inc), nullptr, 0, nullptr, init, nullptr);
}

// Checks that a packet of every BTL in use can hold the largest header, a registration handle and at least one byte
// more.
void check_transports() noexcept {
    constexpr std::size_t kNeed = wire::kLargestHeader + wire::kMaxHandleBytes + 1;
    mca_btl_base_selected_module_t* selected;
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t) {
        const mca_btl_base_module_t& btl = *selected->btl_module;
        if (!(btl.btl_flags & MCA_BTL_FLAGS_SEND) || btl.btl_eager_limit >= kNeed) continue;
        eager_limit_too_small(selected->btl_component->btl_version, btl.btl_eager_limit, kNeed);
    }
}

int register_arrivals() noexcept {
    constexpr struct {
        wire::Kind kind;
        mca_btl_base_module_recv_cb_fn_t arrive;
    } kArrivals[] = {{wire::Kind::kMatch, mca_pml_coop_on_match},
                     {wire::Kind::kRts, mca_pml_coop_on_rts},
                     {wire::Kind::kCts, mca_pml_coop_on_cts},
                     {wire::Kind::kFrag, mca_pml_coop_on_frag},
                     {wire::Kind::kFin, mca_pml_coop_on_fin}};
    for (const auto& a : kArrivals) {
        const int rc = mca_bml.bml_register(static_cast<mca_btl_base_tag_t>(MCA_BTL_TAG_PML + static_cast<int>(a.kind)),
                                            a.arrive, nullptr);
        if (rc != OMPI_SUCCESS) return rc;
    }
    return mca_bml.bml_register_error(mca_pml_coop_on_error);
}

// A process that returns to the progress engine at once, several times in a row, has nothing else to do. One that calls
// MPI_Test now and then between computations returns later. On a crowded node other processes run in between, so there
// the limit is higher.
using Clock = std::chrono::steady_clock;
constexpr auto kAtOnce = std::chrono::microseconds(5), kAtOnceCrowded = std::chrono::microseconds(1000);
constexpr int kTimeAndAgain = 4;

Clock::time_point left_progress;  // only a hint, so not synchronized

void notice_idleness() noexcept {
    if (module.threads) return;  // another thread may be computing
    const int returns = Clock::now() - left_progress < (module.crowded ? kAtOnceCrowded : kAtOnce)
                            ? module.quick_returns.load(std::memory_order_relaxed) + 1
                            : 0;
    module.quick_returns.store(returns, std::memory_order_relaxed);
    module.idle.store(returns >= kTimeAndAgain, std::memory_order_relaxed);
}

void leave_progress() noexcept {
    if (!module.threads) left_progress = Clock::now();
}

Deferred* next_of(WorkQueue& queue) noexcept {
    Guard guard(module.lock);
    Deferred* work = queue.list.pop_front();
    if (!work) return nullptr;
    work->queue = nullptr;
    queue.length.fetch_sub(1, std::memory_order_relaxed);
    return work;
}

bool enqueue(WorkQueue& queue, Deferred& work, bool in_front) noexcept {
    static bool registered = false;  // under Module::lock
    bool first;
    {
        Guard guard(module.lock);
        if (work.queue) return false;
        work.queue = &queue;
        if (in_front) queue.list.push_front(&work);
        else queue.list.push_back(&work);
        queue.length.fetch_add(1, std::memory_order_relaxed);
        first = !std::exchange(registered, true);
    }
    // With neither a lane nor threads the function is registered with the first work: until then progress costs nothing.
    if (first) opal_progress_register(mca_pml_coop_progress);
    return true;
}

// An estimate of how many pieces of work this thread has finished: the queue is shorter by so many, but not more than it has
// taken. Work that is queued again does not count, so that the CPU is given away. (If another thread holds a piece at this moment,
// it may count instead.)
int done_of(const WorkQueue& queue, std::uint32_t before, std::uint32_t taken) noexcept {
    const std::uint32_t after = queue.length.load(std::memory_order_relaxed);
    return after < before ? static_cast<int>(std::min(before - after, taken)) : 0;
}

int retry_deferred() noexcept {
    const std::uint32_t before = module.deferred.length.load(std::memory_order_relaxed);
    std::uint32_t taken = 0;
    while (taken < before) {
        Deferred* work = next_of(module.deferred);
        if (!work) break;
        ++taken;
        module.counters.down(Gauge::kDeferred);
        work->retry(work);
    }
    return done_of(module.deferred, before, taken);
}

// Continues the copies in order until one has copied a chunk. Then it returns, so that other messages have their turn,
// above all control messages of other peers. (Cooperative Rendezvous Protocols, section II-C)
int copy_a_chunk() noexcept {
    const std::uint32_t before = module.copying.length.load(std::memory_order_relaxed);
    const std::uint64_t copies = module.counters.total(Counter::kCopies);
    std::uint32_t taken = 0;
    while (taken < before) {
        Deferred* work = next_of(module.copying);
        if (!work) break;
        ++taken;
        work->retry(work);
        if (module.counters.total(Counter::kCopies) != copies) return 1;
    }
    return done_of(module.copying, before, taken);
}

}  // namespace

bool defer(Deferred& work) noexcept {
    if (!enqueue(module.deferred, work, false)) return false;
    module.counters.up(Gauge::kDeferred);
    return true;
}

bool go_on_copying(Deferred& work, bool in_front) noexcept { return enqueue(module.copying, work, in_front); }

// Called after each look for packets if the program has threads. A thread that waits would keep its CPU for the rest of its time
// slice, milliseconds, even if the thread that it waits for needs that CPU. So it gives the CPU away after many looks in vain.
// (Open MPI does that only with mpi_yield_when_idle, and then after each look.)
void let_other_threads_run(int events) noexcept {
    constexpr unsigned kLooksBeforeYield = 256;
    if (events > 0) {
        empty_looks = 0;
    } else if (++empty_looks >= kLooksBeforeYield) {
        empty_looks = 0;
        sched_yield();
    }
}

extern "C" int mca_pml_coop_progress() {
    const int packets = poll_lane();
    if ((module.deferred.length.load(std::memory_order_relaxed) |
         module.copying.length.load(std::memory_order_relaxed)) == 0) {
        if (module.yields) let_other_threads_run(packets);
        return packets;
    }
    const Polling turn;
    int events = packets;
    if (module.deferred.length.load(std::memory_order_relaxed) > 0) events += retry_deferred();
    if (module.copying.length.load(std::memory_order_relaxed) > 0) {
        notice_idleness();
        events += copy_a_chunk();
        leave_progress();
    }
    if (module.yields) let_other_threads_run(events);
    return events;
}

extern "C" int mca_pml_coop_enable(bool enable) {
    if (!enable || module.enabled) return OMPI_SUCCESS;
    check_parameters();
    module.threads = threads_meet_in_mpi();
    module.yields = opal_using_threads();
    OBJ_CONSTRUCT(&module.lock, opal_mutex_t);
    module.crowded = is_crowded();
    module.my_rank = ompi_proc_local()->super.proc_name.vpid;
    static_assert(rndv::kRows <= Usage::kMaxRows && rndv::kReasons <= Usage::kMaxReasons);
    module.usage = Usage(rndv::kRows, rndv::kReasons);
    module.usage.set_threads(module.threads);
    module.lane_usage = module.usage.column(static_cast<std::uint32_t>(rndv::Row::kLane),
                                            static_cast<std::uint32_t>(rndv::Reason::kFitsLane));
    module.counters.set_threads(module.threads);
    OBJ_CONSTRUCT(&module.arrived, opal_free_list_t);
    OBJ_CONSTRUCT(&module.rdma_ops, opal_free_list_t);
    make_list<Arrived>(module.arrived, opal_free_list_item_t_class,
                       static_cast<std::size_t>(module.config.unexpected_inline), nullptr);
    module.blocks.limit(static_cast<std::size_t>(module.config.unexpected_idle));
    make_list<RdmaOp>(module.rdma_ops, opal_free_list_item_t_class, 0, nullptr);
    // The lists of requests belong to Open MPI; the selected PML sets the size of their items.
    make_list<SendRequest>(mca_pml_base_send_requests, mca_pml_base_send_request_t_class, 0,
                           mca_pml_coop_init_send_item);
    make_list<RecvRequest>(mca_pml_base_recv_requests, mca_pml_base_recv_request_t_class, 0,
                           mca_pml_coop_init_recv_item);
    module.enabled = true;
    module.extensions.look_up();
    report_missing_memory();
    report_missing_lane();
    if (has_lane_memory() || module.yields) opal_progress_register(mca_pml_coop_progress);
    if (hca_mode() != HcaMode::kOff || has_lane_memory()) watch_waits();
    start_async();
    return OMPI_SUCCESS;
}

extern "C" int mca_pml_coop_add_procs(ompi_proc_t** procs, size_t nprocs) {
    if (nprocs == 0) return OMPI_SUCCESS;
    int rc = mca_pml_base_pml_check_selected("coop", procs, nprocs);
    if (rc != OMPI_SUCCESS) return rc;

    opal_bitmap_t reachable;
    OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
    rc = opal_bitmap_init(&reachable, static_cast<int>(nprocs));
    if (rc == OMPI_SUCCESS) rc = mca_bml.bml_add_procs(nprocs, procs, &reachable);
    check_transports();
    if (rc == OMPI_SUCCESS) rc = register_arrivals();
    OBJ_DESTRUCT(&reachable);
    if (rc == OMPI_SUCCESS) read_cards(procs, nprocs);
    return rc;
}

extern "C" int mca_pml_coop_del_procs(ompi_proc_t** procs, size_t nprocs) {
    return mca_bml.bml_del_procs(nprocs, procs);
}

extern "C" int mca_pml_coop_dump(ompi_communicator_t* comm, int) {
    Comm& c = of(comm);
    Guard guard(c.lock);
    opal_output(0, "pml/coop: communicator %s [%d]: %lu unexpected messages", comm->c_name,
                static_cast<int>(comm->c_contextid), static_cast<unsigned long>(c.engine.unexpected()));
    return OMPI_SUCCESS;
}

// Open MPI 4.1 can no longer be configured with checkpointing, so there is nothing to do.
extern "C" int mca_pml_coop_ft_event(int) { return OMPI_SUCCESS; }

mca_pml_base_module_t base_module = {
    .pml_add_procs = mca_pml_coop_add_procs,
    .pml_del_procs = mca_pml_coop_del_procs,
    .pml_enable = mca_pml_coop_enable,
    .pml_progress = nullptr,
    .pml_add_comm = mca_pml_coop_add_comm,
    .pml_del_comm = mca_pml_coop_del_comm,
    .pml_irecv_init = mca_pml_coop_irecv_init,
    .pml_irecv = mca_pml_coop_irecv,
    .pml_recv = mca_pml_coop_recv,
    .pml_isend_init = mca_pml_coop_isend_init,
    .pml_isend = mca_pml_coop_isend,
    .pml_send = mca_pml_coop_send,
    .pml_iprobe = mca_pml_coop_iprobe,
    .pml_probe = mca_pml_coop_probe,
    .pml_start = mca_pml_coop_start,
    .pml_improbe = mca_pml_coop_improbe,
    .pml_mprobe = mca_pml_coop_mprobe,
    .pml_imrecv = mca_pml_coop_imrecv,
    .pml_mrecv = mca_pml_coop_mrecv,
    .pml_dump = mca_pml_coop_dump,
    .pml_ft_event = mca_pml_coop_ft_event,
    .pml_max_contextid = UINT16_MAX,
    .pml_max_tag = INT_MAX,
    .pml_flags = 0,
};

}  // namespace coop::pml
