// SPDX-License-Identifier: BSD-3-Clause
//
// Active target synchronization: fences, and the four calls of general active target synchronization.
#include <algorithm>
#include <atomic>

#include "codes.h"
#include "quick.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {
namespace {

std::uint64_t name_in(ompi_group_t& group, int rank) noexcept {
    const opal_process_name_t name = ompi_group_get_proc_name(&group, rank);
    return std::uint64_t{name.jobid} << 32 | name.vpid;
}

rma::Record record_of(rma::Kind kind) noexcept {
    rma::Record record{};
    record.kind = kind;
    return record;
}

}  // namespace

// Finds the ranks of a group in this window. False: one of its processes is not in it.
bool Window::look_up(GroupRanks& known, ompi_group_t& group) {
    if (by_name_.empty())
        by_name_ = rma::RankTable(
            processes_, [&](std::uint32_t rank) { return name_in(*comm_->c_local_group, static_cast<int>(rank)); });
    return known.look_up(group, [&](int member) { return by_name_.find(name_in(group, member)); });
}

// Orders loads and stores of the program in memory that other processes of the node access. Where all have mapped the
// window, the words by which they synchronize do that.
void Window::order_memory() const noexcept {
    if (!all_mapped_) std::atomic_thread_fence(std::memory_order_seq_cst);
}

// The barrier of a fence.
int Window::pass_barrier() {
    if (!has_words_) return comm_->c_coll->coll_barrier(comm_, comm_->c_coll->coll_barrier_module);
    node_.begin_barrier();
    progress_sometimes();
    const auto passes = [&] { return node_.passes_barrier(); };
    // Without mapped memory, others may be waiting for answers to messages.
    while (!(all_mapped_ ? soon(passes) : passes())) opal_progress();
    return OMPI_SUCCESS;
}

int Window::fence(int assertion) {
    int refused = OMPI_SUCCESS;
    bool meet = true;
    {
        Lock lock(mutex_);
        const rma::FenceAsserts asserts{(assertion & MPI_MODE_NOPRECEDE) != 0, (assertion & MPI_MODE_NOSUCCEED) != 0};
        if (const auto verdict = epochs_.fence(asserts); verdict != rma::Verdict::kProceed) return code_of(verdict);
        ready_.begin_epoch();
        order_memory();
        if (has_fences_) meet = end_fence(lock);
        else refused = finish(lock, touched_peers(), true);
    }
    order_memory();
    const int rc = meet ? pass_barrier() : OMPI_SUCCESS;
    order_memory();
    // Other threads may have executed records here with the mutex. Taking it makes these writes visible to this thread.
    Lock lock(mutex_);
    if (has_fences_) finish(lock, touched_peers(), false);  // the program may use its buffers again
    return rc != OMPI_SUCCESS ? rc : refused;
}

int Window::start(ompi_group_t& group, int assertion) {
    const std::lock_guard lock(mutex_);
    if (!look_up(start_group_, group)) return MPI_ERR_GROUP;
    if (const auto verdict = epochs_.start(start_group_.ranks()); verdict != rma::Verdict::kProceed)
        return code_of(verdict);
    start_no_check_ = (assertion & MPI_MODE_NOCHECK) != 0;
    ready_.begin_epoch();
    return OMPI_SUCCESS;
}

// The transport may keep packets until the connection is open, or the send queue has room, and then needs this process to
// progress. The program may compute for long, and the targets wait for the end of the epoch. Other transports than that of
// RDMA report the end of a packet only when the target has taken it, so these are not awaited.
void Window::wait_until_sent(Lock& lock, std::span<Peer* const> peers) {
    wait_for(lock, [&] {
        return std::ranges::all_of(peers, [&](const Peer* each) {
            return !each->btl || each->btl->btl != rdma_ || each->under_way.load(std::memory_order_acquire) == 0;
        });
    });
}

int Window::complete() {
    order_memory();
    Lock lock(mutex_);
    if (epochs_.access_state() != rma::Access::kStarted) return code_of(epochs_.complete());
    if (all_mapped_) {
        for (const std::uint32_t rank : epochs_.group()) {
            if (!ready_.has(rank)) wait_until_ready(lock, peer(rank));
            node_.complete(rank);
        }
        ready_.begin_epoch();
        return code_of(epochs_.complete());
    }
    const std::vector<std::uint32_t> group(epochs_.group().begin(), epochs_.group().end());
    std::vector<Peer*> peers;
    for (const std::uint32_t rank : group) {
        peers.push_back(&peer(rank));
        if (!ready_.has(rank)) wait_until_ready(lock, *peers.back());
    }
    const bool by_signals = process.config.signals != 0 && !is_dynamic();
    for (Peer* const each : peers)
        if (!by_signals) read_behind(lock, *each);
    // Only targets of dynamic windows can refuse operations; only then wait until the target has executed all of them.
    const int refused = finish(lock, peers, is_dynamic(), !by_signals);
    std::vector<Outgoing> out;
    for (Peer* const each : peers) {
        if (each->rank == rank_) {
            pscw_.on_complete(rank_);
            continue;
        }
        end_epoch(lock, *each, rma::End::kComplete, false, out);
    }
    const auto verdict = epochs_.complete();
    ready_.begin_epoch();
    lock.unlock();
    send(std::move(out));
    lock.lock();
    if (by_signals) finish(lock, peers, false);  // the program may use its buffers again
    wait_until_sent(lock, peers);
    return verdict != rma::Verdict::kProceed ? code_of(verdict) : refused;
}

int Window::post(ompi_group_t& group, int assertion) {
    order_memory();
    Lock lock(mutex_);
    // Until wait, post_group_ is of the post that it ends.
    if (epochs_.exposure() == rma::Exposure::kPosted) return code_of(epochs_.post());
    if (!look_up(post_group_, group)) return MPI_ERR_GROUP;
    const std::vector<std::uint32_t>& ranks = post_group_.ranks();
    if (const auto verdict = epochs_.post(); verdict != rma::Verdict::kProceed) return code_of(verdict);
    std::vector<Outgoing> out;
    if ((assertion & MPI_MODE_NOCHECK) == 0) {
        for (const std::uint32_t rank : ranks) {
            if (all_mapped_) {
                node_.post(rank);
            } else if (rank == rank_) {
                pscw_.on_post(rank_);
            } else {
                append(lock, peer(rank), record_of(rma::Kind::kPost));
                close_frame(lock, peer(rank), out);
            }
        }
    }
    lock.unlock();
    send(std::move(out));
    return OMPI_SUCCESS;
}

int Window::wait() {
    Lock lock(mutex_);
    if (const auto verdict = epochs_.wait(); verdict != rma::Verdict::kProceed) return code_of(verdict);
    with_posts([&](auto& posts) {
        wait_for(lock, [&] { return posts.all_complete(post_group_.ranks()); });
        posts.take_completes(post_group_.ranks());
    });
    epochs_.exposure_over();
    order_memory();
    lock.unlock();
    if (all_mapped_) progress_sometimes();
    return OMPI_SUCCESS;
}

int Window::test(int* flag) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto verdict = epochs_.wait(); verdict != rma::Verdict::kProceed) return code_of(verdict);
    }
    opal_progress();
    const std::lock_guard lock(mutex_);
    *flag = with_posts([&](auto& posts) { return posts.all_complete(post_group_.ranks()); });
    if (!*flag) return OMPI_SUCCESS;
    with_posts([&](auto& posts) { posts.take_completes(post_group_.ranks()); });
    epochs_.exposure_over();
    order_memory();
    return OMPI_SUCCESS;
}

}  // namespace coop::osc
