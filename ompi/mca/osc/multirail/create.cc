// SPDX-License-Identifier: BSD-3-Clause
//
// Creation and destruction of windows. Every step that may fail in only one process ends with an exchange, so that all
// processes decide alike.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <sched.h>

#include "codes.h"
#include "coop/extension/registry.h"
#include "coop/node/remote_copy.h"
#include "diagnose.h"
#include "frames.h"
#include "ompi/mca/shim/inside.h"
#include "ompi/mca/shim/peers.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {
namespace {

// First exchange: the arguments and abilities of each process.
struct Introduction {
    std::uint64_t bytes;
    std::uint32_t unit;
    std::uint32_t leader;  // the first rank of its node
    std::uint32_t architecture;
    std::uint32_t can;       // its transports reach all others
    std::uint32_t shares;    // allocated memory may be shared on the node
    std::uint32_t controls;  // HCAs may execute passive epochs
    std::uint32_t signals;   // fences may end by signals
    std::uint32_t copies;    // processes of a node may use CMA
    std::uint32_t handles;   // packets interrupt it while it computes
};

constexpr std::int32_t kNoNode = -1;     // it is alone on its node, or CMA is not wanted
constexpr std::int32_t kNoSegment = -2;  // no memory for the words

// Last exchange: the memory of a process, and its registrations.
struct Located {
    std::uint64_t base;
    std::uint32_t has_memory;
    std::uint32_t registered;
    std::uint64_t control;  // 0: no HCA can change its locks
    std::int32_t copies;    // 0: it has words of its node, and can copy to all processes there; else why not
    std::byte handle[kMaxHandleBytes];
    std::byte control_handle[kMaxHandleBytes];
};

// In larger windows a barrier is faster in any case than that each process tells each other one.
constexpr std::uint32_t kMostInFences = 8;

template <class T>
bool exchange(ompi_communicator_t& comm, const T& own, std::vector<T>& all) {
    all.resize(static_cast<std::size_t>(ompi_comm_size(&comm)));
    return comm.c_coll->coll_allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, &comm,
                                       comm.c_coll->coll_allgather_module) == OMPI_SUCCESS;
}

bool is_set(opal_info_t* info, const char* key) noexcept {
    bool value = false;
    int found = 0;
    return info && opal_info_get_bool(info, const_cast<char*>(key), &value, &found) == OPAL_SUCCESS && found && value;
}

std::uint32_t leader_of(ompi_communicator_t& comm) noexcept {
    std::uint32_t rank = 0;
    while (!is_on_this_node(comm, rank)) ++rank;
    return rank;
}

// The longest packet that may go without a callback, which may_send() would count. btl/coopib copies longer ones that
// it cannot post, however many; shorter ones it refuses then, as other transports refuse what they have no room for.
std::size_t most_unreported_by(const mca_btl_base_module_t& btl) noexcept {
    return find_extension(&btl).extension ? std::min(btl.btl_eager_limit, btl.btl_put_local_registration_threshold)
                                          : btl.btl_eager_limit;
}

}  // namespace

// What the processes of a node need of each other; the segment is that of the first one.
struct Window::Ticket {
    std::int32_t fd;
    std::uint64_t nonce;  // of the segment
    node::CopyProbe probe;
};

namespace {

// Whether CMA may reach this process's part of the window, as far as it can tell itself: memory of devices cannot be read so,
// not even by their own process. `base`: 0: none, or dynamic. Returns 0, or an errno.
int try_own_part(std::uint64_t base, std::uint64_t bytes) {
    const node::CopyProbe own = process.copies.own();
    if (const int error = node::try_both(own)) return error;
    if (base == 0 || bytes == 0) return 0;
    if (const int error = node::try_read(own.pid, base)) return error;
    return node::try_read(own.pid, base + bytes - 1);
}

}  // namespace

Window::Window(ompi_win_t& win, ompi_communicator_t* comm, int flavor)
    : win_(&win), comm_(comm), context_(comm->c_contextid),
      processes_(static_cast<std::uint32_t>(ompi_comm_size(comm))),
      rank_(static_cast<std::uint32_t>(ompi_comm_rank(comm))), flavor_(flavor), cards_(processes_),
      epochs_(processes_, (win.w_flags & OMPI_WIN_NO_LOCKS) != 0), ready_(processes_), peers_(processes_) {}

Window::~Window() {
    if (read_bytes_) drop(*read_bytes_);
    memory_.deregister();
    ompi_communicator_t* comm = comm_;
    ompi_comm_free(&comm);
}

Result::~Result() = default;

Peer& Window::peer(std::uint32_t rank) {
    if (!peers_[rank]) {
        auto made = std::make_unique<Peer>(rank, rank == rank_ ? nullptr : packets_to(*comm_, rank), rdma_to(rank));
        made->window = this;
        if (made->btl) made->most_unreported = most_unreported_by(*made->btl->btl);
        peers_[rank] = std::move(made);
    }
    return *peers_[rank];
}

int Window::create(ompi_win_t& win, void** base, std::size_t size, int unit, ompi_communicator_t& comm,
                   opal_info_t* info, int flavor, std::unique_ptr<Window>& made) {
    if (is_set(info, "no_locks")) win.w_flags |= OMPI_WIN_NO_LOCKS;
    ompi_communicator_t* own = nullptr;
    if (const int rc = ompi_comm_dup(&comm, &own); rc != OMPI_SUCCESS) return rc;
    try {
        made.reset(new Window(win, own, flavor));
        const int rc = made->agree(size, unit, info, base);
        if (rc != OMPI_SUCCESS) made.reset();
        return rc;
    } catch (const std::bad_alloc&) {
        out_of_memory("a window");
    }
}

// Sets frame_bytes_ to the longest packet that can be sent to all others, and rdma_ to the transport for RDMA: the one
// that carries the packets to all others. Only processes of this node may be reached by another one, such as vader.
int Window::look_at_transports() {
    frame_bytes_ = static_cast<std::size_t>(process.config.frame_bytes);
    bool first = true;
    for (std::uint32_t rank = 0; rank < processes_; ++rank) {
        if (rank == rank_) continue;
        const mca_bml_base_btl_t* const packets = packets_to(*comm_, rank);
        if (!packets || packets->btl->btl_max_send_size < kLeastFrame) return OMPI_ERR_UNREACH;
        frame_bytes_ = std::min(frame_bytes_, packets->btl->btl_max_send_size);
        mca_btl_base_module_t* const btl = packets->btl;
        const bool suits = suits_rdma(*btl) && find_extension(btl).extension;
        if (!suits && is_on_this_node(*comm_, rank)) continue;
        if (first) rdma_ = suits ? btl : nullptr;
        else if (rdma_ != btl) rdma_ = nullptr;
        first = false;
    }
    if (rdma_) extension_ = find_extension(rdma_).extension;
    return receive_packets() ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

mca_btl_base_endpoint_t* Window::rdma_to(std::uint32_t rank) const noexcept {
    mca_bml_base_endpoint_t* const there = rdma_ ? mca_bml_base_get_endpoint(
                                                       ompi_comm_peer_lookup(comm_, static_cast<int>(rank)))
                                                 : nullptr;
    mca_bml_base_btl_t* const to = there ? mca_bml_base_btl_array_find(&there->btl_rdma, rdma_) : nullptr;
    return to ? to->btl_endpoint : nullptr;
}

bool Window::is_near(std::uint32_t rank) const noexcept {
    if (rank == rank_) return true;
    const mca_bml_base_btl_t* const packets = packets_to(*comm_, rank);
    return !packets || packets->btl != rdma_;
}

// Prepares this process for passive epochs that HCAs execute. False: they cannot, as far as this process knows.
bool Window::make_control() {
    constexpr std::int32_t kNeeded = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_CSWAP;
    if (!rdma_ || all_mapped_ || is_dynamic() || epochs_.no_locks() ||
        (rdma_->btl_flags & MCA_BTL_FLAGS_ATOMIC_FOPS) == 0 || (rdma_->btl_atomic_flags & kNeeded) != kNeeded ||
        !rdma_->btl_atomic_fop || !rdma_->btl_atomic_cswap || (cards_[rank_].bytes > 0 && !memory_.handle))
        return false;
    for (std::uint32_t rank = 0; rank < processes_; ++rank) {
        mca_btl_base_endpoint_t* const there = rdma_to(rank);
        if (!there || !extension_->reaches_atomics(rdma_, there)) return false;
    }
    return process.staging.open(*rdma_) && memory_.make_control(*rdma_);
}

// Not where the transport for RDMA carries the packets of the node, too.
bool Window::wants_cma() const noexcept {
    if (!process.config.cma || !process.config.shared_memory || is_shared()) return false;
    for (std::uint32_t rank = 0; rank < processes_; ++rank)
        if (is_on_this_node(*comm_, rank) && !is_near(rank)) return false;
    return true;
}

int Window::agree(std::size_t size, int unit, opal_info_t* info, void** base) {
    const bool fits = processes_ == 1 || look_at_transports() == OMPI_SUCCESS;
    const Introduction own{size,
                           static_cast<std::uint32_t>(unit),
                           leader_of(*comm_),
                           opal_local_arch,
                           fits,
                           process.config.shared_memory != 0 || is_shared(),
                           process.config.hca_control != 0,
                           process.config.signals == 2,
                           wants_cma(),
                           has_interrupts()};
    std::vector<Introduction> all;
    if (!exchange(*comm_, own, all)) return OMPI_ERROR;
    bool shares = flavor_ == MPI_WIN_FLAVOR_ALLOCATE || is_shared();
    bool controls = true;
    bool signals = true;
    wants_words_ = true;
    std::vector<Share> parts;
    for (std::uint32_t rank = 0; rank < processes_; ++rank) {
        const Introduction& each = all[rank];
        if (each.architecture != own.architecture) {
            if (rank_ == 0) cannot_create("the processes have different architectures");
            return OMPI_ERR_NOT_SUPPORTED;
        }
        if (!each.can) {
            if (rank == rank_) cannot_create("no transport (BTL) leads to all processes of the window");
            return OMPI_ERR_UNREACH;
        }
        shares = shares && each.shares;
        controls = controls && each.controls;
        signals = signals && each.signals;
        wants_words_ = wants_words_ && each.copies;
        cards_[rank].handles = each.handles != 0;
        parts.push_back({each.bytes, each.leader});
        cards_[rank].bytes = each.bytes;
        cards_[rank].unit = each.unit;
    }
    if (const int rc = make_memory(parts, shares, is_shared() && !is_set(info, "alloc_shared_noncontig"), controls,
                                   base);
        rc != OMPI_SUCCESS)
        return rc;
    has_fences_ = signals && !has_words_ && !is_dynamic() && processes_ <= kMostInFences;
    if (has_fences_) fences_ = rma::Fences(processes_ - 1);
    const bool same_size = std::all_of(cards_.begin(), cards_.end(), [&](const Card& c) { return c.bytes == size; });
    const bool same_unit = std::all_of(cards_.begin(), cards_.end(), [&](const Card& c) { return c.unit == own.unit; });
    win_->w_flags |= (same_size ? OMPI_WIN_SAME_SIZE : 0) | (same_unit ? OMPI_WIN_SAME_DISP : 0);
    enter_map();
    // Nobody may send a packet of the window before all processes can receive it.
    return comm_->c_coll->coll_barrier(comm_, comm_->c_coll->coll_barrier_module);
}

// Makes shared memory if that is wanted and possible, otherwise private memory in all processes. (For
// MPI_Win_allocate_shared, that is an error instead.)
int Window::make_memory(const std::vector<Share>& parts, bool share, bool contiguous, bool controls, void** base) {
    void* given = flavor_ == MPI_WIN_FLAVOR_CREATE ? *base : nullptr;
    for (;; share = false) {
        const bool has_memory = try_memory(parts, share, contiguous, given);
        const std::int32_t copies = share || !wants_words_ ? kNoNode : share_words(parts);
        Located own{cards_[rank_].base, has_memory, memory_.handle != nullptr, 0, copies, {}, {}};
        if (memory_.handle) std::memcpy(own.handle, memory_.handle, rdma_->btl_registration_handle_size);
        if (controls && has_memory && make_control()) {
            own.control = reinterpret_cast<std::uintptr_t>(memory_.control.get());
            std::memcpy(own.control_handle, memory_.control_handle, rdma_->btl_registration_handle_size);
        }
        std::vector<Located> all;
        if (!exchange(*comm_, own, all)) return OMPI_ERROR;
        memory_.segment.conceal();
        if (std::all_of(all.begin(), all.end(), [](const Located& place) { return place.has_memory != 0; })) {
            if (std::ranges::count_if(cards_, &Card::is_mapped) > 1) process.count(Count::kSegments);
            has_control_ = true;
            for (std::uint32_t rank = 0; rank < processes_; ++rank) {
                Card& card = cards_[rank];
                card.base = all[rank].base;
                card.registered = all[rank].registered && rdma_to(rank);
                card.near = is_near(rank);
                card.control = all[rank].control;
                std::memcpy(card.handle, all[rank].handle, sizeof card.handle);
                std::memcpy(card.control_handle, all[rank].control_handle, sizeof card.control_handle);
                has_control_ = has_control_ && card.control != 0;
            }
            if (has_control_) {
                process.count(Count::kRemoteControls);
                for (std::uint32_t i = 0; i < ControlWords::kResults; ++i) free_results_.push_back(i);
            }
            if (!share && wants_words_) {
                std::vector<std::int32_t> errors;
                for (const Located& each : all) errors.push_back(each.copies);
                use_words(SegmentPlan(parts, parts[rank_].leader, false).members(), errors);
            }
            if (process.config.target_helps && rdma_) {
                interrupts_ = true;
                handler().expect(1);
            }
            if (flavor_ != MPI_WIN_FLAVOR_CREATE && !is_dynamic()) *base = reinterpret_cast<void*>(cards_[rank_].base);
            return OMPI_SUCCESS;
        }
        memory_.deregister();
        if (is_shared() || !share) {
            if (!has_memory) cannot_create(is_shared() ? "the processes cannot share memory" : "no memory");
            return is_shared() ? OMPI_ERR_RMA_SHARED : OMPI_ERR_OUT_OF_RESOURCE;
        }
    }
}

bool Window::try_memory(const std::vector<Share>& parts, bool share, bool contiguous, void* given) {
    Card& own = cards_[rank_];
    for (Card& card : cards_) card.is_mapped = false;
    all_mapped_ = has_words_ = false;
    memory_.locks.clear();
    const SegmentPlan plan(parts, parts[rank_].leader, contiguous);
    if (is_dynamic()) {
        own.base = 0;
        return true;
    }
    if (flavor_ == MPI_WIN_FLAVOR_CREATE) {
        own.base = reinterpret_cast<std::uintptr_t>(given);
        own.mapped = static_cast<std::byte*>(given);
        own.is_mapped = true;
    } else if (share) {
        if (!share_memory(plan)) return false;
    } else if (!own_memory()) {
        return false;
    }
    if (rdma_) memory_.register_with(*rdma_, own.mapped, own.bytes);
    return true;
}

bool Window::own_memory() {
    Card& own = cards_[rank_];
    memory_.segment = node::Segment();
    if (!memory_.allocate(own.bytes)) return false;
    own.base = reinterpret_cast<std::uintptr_t>(memory_.own.get());
    own.mapped = memory_.own.get();
    own.is_mapped = true;
    return true;
}

bool Window::join_segment(const SegmentPlan& plan, bool is_possible, std::vector<Ticket>& tickets) {
    const std::vector<std::uint32_t>& members = plan.members();
    const bool leads = members.front() == rank_;
    const auto count = static_cast<std::uint32_t>(members.size());
    memory_.segment = leads && is_possible ? node::Segment::create(plan.bytes()) : node::Segment();
    if (memory_.segment) {
        for (std::size_t i = 0; i < count; ++i) new (memory_.segment.memory() + i * sizeof(SharedLocks)) SharedLocks;
        rma::NodeSync::prepare(memory_.segment.memory() + plan.sync_offset(), count);
    }
    const node::SegmentTicket made = memory_.segment.ticket();
    const Ticket mine{made.fd, made.nonce, process.copies.own()};
    if (!exchange(*comm_, mine, tickets)) return false;
    const Ticket& ticket = tickets[members.front()];
    if (!leads && is_possible && ticket.fd >= 0)
        memory_.segment = node::Segment::attach({ticket.probe.pid, ticket.fd, ticket.nonce}, plan.bytes());
    if (!memory_.segment) return false;
    memory_.sync = memory_.segment.memory() + plan.sync_offset();
    memory_.locks.assign(processes_, nullptr);
    for (std::size_t i = 0; i < count; ++i)
        memory_.locks[members[i]] = reinterpret_cast<SharedLocks*>(memory_.segment.memory() + i * sizeof(SharedLocks));
    return true;
}

// Every process takes part, also one that is alone on its node, because all exchange the tickets.
bool Window::share_memory(const SegmentPlan& plan) {
    const bool alone = plan.members().size() == 1 && !is_shared();
    const bool fails = !is_shared() && process.faults.hit(Fault::kRegister);
    std::vector<Ticket> tickets;
    const bool has_segment = join_segment(plan, !alone && !plan.overflows() && !fails, tickets);
    if (alone) return !tickets.empty() && own_memory();
    if (!has_segment) return false;
    const std::vector<std::uint32_t>& members = plan.members();
    for (std::size_t i = 0; i < members.size(); ++i) {
        cards_[members[i]].mapped = memory_.segment.memory() + plan.offset_of(i);
        cards_[members[i]].is_mapped = true;
    }
    cards_[rank_].base = reinterpret_cast<std::uintptr_t>(cards_[rank_].mapped);
    all_mapped_ = has_words_ = members.size() == processes_;
    if (all_mapped_) node_ = rma::NodeSync(memory_.sync, processes_, rank_);
    return true;
}

std::int32_t Window::share_words(const std::vector<Share>& parts) {
    std::vector<Share> words(parts);
    for (Share& each : words) each.bytes = 0;
    const SegmentPlan plan(words, parts[rank_].leader, false);
    const std::vector<std::uint32_t>& members = plan.members();
    const bool alone = members.size() == 1;
    const bool fails = !alone && process.faults.hit(Fault::kRegister);
    std::vector<Ticket> tickets;
    const bool has_segment = join_segment(plan, !alone && !fails, tickets);
    if (alone) return kNoNode;
    for (const std::uint32_t rank : members)
        if (rank != rank_ && !tickets.empty()) cards_[rank].pid = tickets[rank].probe.pid;
    if (!has_segment) return kNoSegment;
    if (const int error = try_own_part(cards_[rank_].base, cards_[rank_].bytes)) return error;
    for (const std::uint32_t rank : members) {
        if (rank == rank_) continue;
        if (const int error = process.copies.attempt(tickets[rank].probe)) return error;
    }
    return 0;
}

// CMA is used if it is possible for each pair of the node: who could not use it would compete with those who can.
void Window::use_words(const std::vector<std::uint32_t>& members, const std::vector<std::int32_t>& errors) {
    if (members.size() == 1) return;
    const auto failed = std::find_if(members.begin(), members.end(),
                                     [&](std::uint32_t rank) { return errors[rank] != 0; });
    is_refused_ = failed != members.end();
    if (is_refused_) {
        const std::int32_t error = errors[*failed];
        if (*failed == rank_ && error > 0 && error != EFAULT) copies_refused(error);
        return;
    }
    for (const std::uint32_t rank : members) cards_[rank].copies = rank != rank_;
    has_words_ = members.size() == processes_;
    if (has_words_) node_ = rma::NodeSync(memory_.sync, processes_, rank_);
}

int Window::attach(void* base, std::size_t bytes) {
    if (!is_dynamic()) return OMPI_ERR_RMA_FLAVOR;
    const std::lock_guard lock(mutex_);
    return change_attached(true, base, bytes) ? OMPI_SUCCESS : OMPI_ERR_RMA_ATTACH;
}

int Window::detach(const void* base) {
    if (!is_dynamic()) return OMPI_ERR_RMA_FLAVOR;
    const std::lock_guard lock(mutex_);
    return change_attached(false, base, 0) ? OMPI_SUCCESS : OMPI_ERR_RMA_ATTACH;
}

int Window::shared_query(int rank, std::size_t* size, int* unit, void* base) const {
    if (!is_shared()) return OMPI_ERR_RMA_FLAVOR;
    if (rank == MPI_PROC_NULL) {
        // The first process that has memory.
        const auto found = std::find_if(cards_.begin(), cards_.end(), [](const Card& card) { return card.bytes > 0; });
        rank = found == cards_.end() ? 0 : static_cast<int>(found - cards_.begin());
    }
    if (rank < 0 || static_cast<std::uint32_t>(rank) >= processes_) return MPI_ERR_RANK;
    const Card& card = cards_[static_cast<std::size_t>(rank)];
    *size = card.bytes;
    *unit = static_cast<int>(card.unit);
    std::byte* const start = card.bytes > 0 ? card.mapped : nullptr;
    std::memcpy(base, &start, sizeof start);
    return OMPI_SUCCESS;
}

int Window::free() {
    {
        Lock lock(mutex_);
        if (const auto verdict = epochs_.free(); verdict != rma::Verdict::kProceed) {
            // Open MPI has already released the info of the window, which now stays: retain it again.
            OBJ_RETAIN(win_->super.s_info);
            return code_of(verdict);
        }
        finish(lock, touched_peers(), true);
    }
    // After this barrier, no packet of the window is under way. Only descriptors may still have to be returned by
    // transports.
    const int rc = comm_->c_coll->coll_barrier(comm_, comm_->c_coll->coll_barrier_module);
    for (const auto& each : peers_)
        while (each && each->under_way.load(std::memory_order_acquire) > 0) opal_progress();
    leave_map();
    if (interrupts_) handler().expect(-1);
    return rc;
}

}  // namespace coop::osc
