// SPDX-License-Identifier: BSD-3-Clause
//
// Passive target synchronization: locks and flushes.
//
// Where all processes have mapped the window, or all are on one node and use CMA, a lock is a word in shared memory
// (coop/rma/node_lock.h). Where HCAs control the window, it is a word that they change (coop/rma/remote_lock.h).
// Elsewhere it is a queue in the target (coop/rma/lock_queue.h). Words in shared memory and queues grant locks in the
// order of the requests. In a word that HCAs change, a shared request lets an exclusive one pass once. Everywhere, a
// process that has other locks of the window takes a shared one without waiting its turn, as soon as nobody holds it
// exclusively.
#include <atomic>
#include <utility>

#include "codes.h"
#include "frames.h"
#include "quick.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {
namespace {

constexpr int worse(int one, int other) noexcept { return one != OMPI_SUCCESS ? one : other; }

}  // namespace

// Where locks are in shared memory. Another thread may be waiting for the same lock.
void Window::take_mapped_lock(Lock& lock, Peer& peer, rma::LockType type) {
    if (peer.lock == Peer::Lock::kNone) {
        peer.lock_request.type = type;
        peer.lock_request.overtakes = locks_asked_++ > 0 && type == rma::LockType::kShared;
        const bool holds = memory_.locks[peer.rank]->lock.ask(peer.lock_request);
        peer.lock = holds ? Peer::Lock::kHeld : Peer::Lock::kAsked;
    }
    wait_for_lock(lock, peer);
}

void Window::release_mapped_lock(Peer& peer) noexcept {
    memory_.locks[peer.rank]->lock.release(peer.lock_request.type);
    peer.lock = Peer::Lock::kNone;
    --locks_asked_;
    ready_.remove(peer.rank);
}

void Window::ask_for_lock(Lock& lock, Peer& peer, rma::LockType type) {
    if (has_words_) return take_mapped_lock(lock, peer, type);
    // Another thread may be releasing the lock, or may have requested it already.
    wait_for(lock, [&] { return peer.lock != Peer::Lock::kReleased; });
    if (peer.lock != Peer::Lock::kNone) return;
    peer.lock = Peer::Lock::kAsked;
    peer.lock_request.type = type;
    peer.lock_request.overtakes = locks_asked_++ > 0 && type == rma::LockType::kShared;
    if (has_control_) return;  // wait_for_lock() takes it
    if (peer.rank == rank_) {
        locks_.request(
            rank_, type, 0, [&](std::uint32_t, std::uint64_t) { peer.lock = Peer::Lock::kHeld; },
            peer.lock_request.overtakes);
        return;
    }
    rma::Record record{};
    record.kind = rma::Kind::kLock;
    record.type = static_cast<std::uint8_t>(type);
    record.operation = peer.lock_request.overtakes;
    append(lock, peer, record);
    send_frame(lock, peer);
}

void Window::wait_for_lock(Lock& lock, Peer& peer) {
    if (peer.lock == Peer::Lock::kHeld) return;
    if (has_control_ && peer.lock == Peer::Lock::kAsked && !peer.acquiring) {
        peer.acquiring = true;
        acquire(lock, peer, Word::kLock, peer.lock_request.type, peer.lock_request.overtakes);
        peer.acquiring = false;
        peer.lock = Peer::Lock::kHeld;
        peer.under_lock.begin_epoch();
    }
    // Another thread may have taken it already, and even given it back.
    if (!has_words_) return wait_for(lock, [&] { return peer.lock != Peer::Lock::kAsked; });
    wait_for(lock, [&] {
        if (peer.lock != Peer::Lock::kAsked) return true;
        if (!memory_.locks[peer.rank]->lock.take(peer.lock_request)) return false;
        peer.lock = Peer::Lock::kHeld;
        return true;
    });
}

// Programs lock their targets in the same order, so that processes do not wait for each other in a circle. So this
// process holds the locks that it has asked for before it asks for another one.
void Window::wait_for_asked_lock(Lock& lock) {
    while (Peer* const asked = lock_asked_) {
        if (asked->lock == Peer::Lock::kAsked) wait_for_lock(lock, *asked);
        if (lock_asked_ == asked) lock_asked_ = nullptr;
    }
}

// Preconditions: the lock is held, and no RDMA or result of the peer is outstanding.
void Window::release_lock(Lock& lock, Peer& peer) {
    if (has_words_) return release_mapped_lock(peer);
    peer.lock = Peer::Lock::kReleased;
    --locks_asked_;
    ready_.remove(peer.rank);
    if (has_control_) {
        release(lock, peer, Word::kLock, peer.lock_request.type);
        peer.lock = Peer::Lock::kNone;
        return;
    }
    if (peer.rank == rank_) {
        peer.lock = Peer::Lock::kNone;
        Replies replies(*this);
        locks_.release(rank_, [&](std::uint32_t to, std::uint64_t) { grant(to, replies); });
        std::vector<Outgoing> out = replies.take();
        lock.unlock();
        send(std::move(out));
        lock.lock();
        return;
    }
    rma::Record record{};
    record.kind = rma::Kind::kUnlock;
    record.cookie = peer.operations.begin();
    append(lock, peer, record);
    peer.unflushed = false;
    peer.lock = Peer::Lock::kNone;
}

// Whether all that has happened to the peer under its lock is one short put on the queue pair that also carries the release. The
// HCA executes both in their order, and reads the word of the lock behind the put, which is visible to everybody then. So no
// other read is needed, and the release need not wait for the put.
bool Window::is_put_before_release(const Peer& peer) const {
    return peer.under_lock.only_one_in_order() && peer.unread_writes && peer.has_only_rdma() && !peer.queued &&
           !peer.executing && !peer.has_copies() && !peer.has_waiting_part() && process.config.read_behind &&
           extension_->atomics_keep_order(rdma_, peer.rdma) &&
           extension_->needs_read_behind(rdma_, peer.rdma, peer.read_since);
}

int Window::release_all_by_hcas(Lock& lock, std::span<Peer* const> peers) {
    struct Released {
        Peer* peer;
        Generations::Number operations;
    };
    std::vector<Peer*> others;
    std::vector<Released> released;
    for (Peer* const each : peers) {
        if (!is_put_before_release(*each)) {
            others.push_back(each);
            continue;
        }
        close_block(lock, *each);
        each->unread_writes = false;
        release_lock(lock, *each);
        released.push_back({each, each->operations.close()});
    }
    const int rc = finish(lock, others, true);
    for (Peer* const each : others) release_lock(lock, *each);
    for (const Released& each : released)
        wait_for(lock, [&] { return each.peer->operations.is_over(each.operations); });
    return rc;
}

// Waits for locks that have only been asked for, completes all operations on the peers, and releases the locks.
int Window::release_all(Lock& lock, std::span<Peer* const> peers) {
    for (Peer* const each : peers) wait_for_lock(lock, *each);
    // Waits for RDMA and results. Records are executed before kUnlock, because frames keep their order; if no record
    // releases the lock, wait for their execution, too.
    const bool by_record = !has_control_ && !has_words_;
    // Reads behind writes end before kUnlock, too: the next holder may read through another HCA.
    for (Peer* const each : peers)
        if (by_record) read_behind(lock, *each);
    if (has_control_) return release_all_by_hcas(lock, peers);
    const int rc = finish(lock, peers, !by_record);
    for (Peer* const each : peers) release_lock(lock, *each);
    return by_record ? worse(finish(lock, peers, true), rc) : rc;
}

int Window::finish(Lock& lock, std::span<Peer* const> peers, bool remote, bool with_writes) {
    if (all_mapped_) return OMPI_SUCCESS;  // each call has carried out its operation
    struct Awaited {
        Peer* peer;
        Generations::Number operations, writes;
    };
    std::vector<Awaited> awaited;
    std::vector<Outgoing> out;
    for (Peer* const each : peers) close_block(lock, *each);
    execute_queued(lock, peers, remote);
    for (Peer* const each : peers) {
        execute_copies(lock, *each);
        if (remote) read_behind(lock, *each);
        if (remote && each->unflushed) {
            rma::Record record{};
            record.kind = rma::Kind::kFlush;
            record.cookie = each->operations.begin();
            append(lock, *each, record);
            each->unflushed = false;
        }
        const bool writes = with_writes && !each->writes.idle();
        if (with_writes) each->wrote = false;
        if (each->operations.idle() && !writes) continue;
        awaited.push_back({each, each->operations.close(), writes ? each->writes.close() : 0});
        close_frame(lock, *each, out);
    }
    if (!awaited.empty()) {
        lock.unlock();
        send(std::move(out));
        lock.lock();
    }
    for (const Awaited& each : awaited)
        wait_for(lock, [&] {
            return each.peer->operations.is_over(each.operations) &&
                   (each.writes == 0 || each.peer->writes.is_over(each.writes));
        });
    bool refused = false;
    for (Peer* const each : peers)
        if (std::exchange(each->refused, false)) refused = true;
    return refused ? OMPI_ERR_RMA_RANGE : OMPI_SUCCESS;
}

std::vector<Peer*> Window::touched_peers() {
    std::erase_if(touched_, [](Peer* each) {
        each->touched = each->buffer.bytes || each->staged || each->has_waiting_part() || each->unflushed ||
                        each->queued || each->executing || each->has_copies() || each->refused || each->wrote ||
                        each->unread_writes || !each->operations.idle() || !each->writes.idle();
        return !each->touched;
    });
    return touched_;
}

// Programs poll by calls of synchronization, so these calls must let transports progress. One call in kEvery does: a sweep
// over all transports takes longer than a flush with nothing to wait for. A call that has waited since rounds_ was `rounds`
// has progressed already. Releases the mutex.
void Window::progress_unless_waited(Lock& lock, std::uint64_t rounds) noexcept {
    const bool waited = rounds_ != rounds;
    lock.unlock();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    constexpr std::uint32_t kEvery = 16;
    if (has_words_) progress_sometimes();
    else if (!waited) progress_sometimes(kEvery);
}

int Window::lock(int type, std::uint32_t rank, int assertion) {
    Lock lock(mutex_);
    const bool no_check = (assertion & MPI_MODE_NOCHECK) != 0;
    if (const auto verdict = epochs_.lock(rank, no_check); verdict != rma::Verdict::kProceed) return code_of(verdict);
    Peer& there = peer(rank);
    ready_.remove(rank);
    if (no_check) return OMPI_SUCCESS;
    wait_for_asked_lock(lock);
    lock_asked_ = &there;
    ask_for_lock(lock, there, type == MPI_LOCK_EXCLUSIVE ? rma::LockType::kExclusive : rma::LockType::kShared);
    // The program may load and store its own or shared memory as soon as this call returns.
    if (rank != rank_ && !has_words_) return OMPI_SUCCESS;
    wait_for_lock(lock, there);
    ready_.add(rank);
    return OMPI_SUCCESS;
}

int Window::unlock(std::uint32_t rank) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    Lock lock(mutex_);
    const std::uint64_t rounds = rounds_;
    const bool no_check = rank < processes_ && epochs_.lock_had_no_check(rank);
    if (const auto verdict = epochs_.unlock(rank); verdict != rma::Verdict::kProceed) return code_of(verdict);
    Peer* const there = &peer(rank);
    if (no_check) ready_.remove(rank);
    if (all_mapped_) {
        if (!no_check) release_mapped_lock(*there);
        lock.unlock();
        progress_sometimes();
        return OMPI_SUCCESS;
    }
    const int rc = no_check ? finish(lock, {&there, 1}, true) : release_all(lock, {&there, 1});
    progress_unless_waited(lock, rounds);
    return rc;
}

// The lock of a target is taken when the program first uses the target, because most programs use few. Only memory that
// the program may load and store without a call has to be locked at once.
int Window::lock_all(int assertion) {
    Lock lock(mutex_);
    const bool no_check = (assertion & MPI_MODE_NOCHECK) != 0;
    if (const auto verdict = epochs_.lock_all(no_check); verdict != rma::Verdict::kProceed) return code_of(verdict);
    ready_.begin_epoch();
    if (no_check) return OMPI_SUCCESS;
    const std::uint32_t first = is_shared() ? 0 : rank_, last = is_shared() ? processes_ - 1 : rank_;
    for (std::uint32_t rank = first; rank <= last; ++rank) wait_until_ready(lock, peer(rank));
    return OMPI_SUCCESS;
}

int Window::unlock_all() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    Lock lock(mutex_);
    const std::uint64_t rounds = rounds_;
    if (const auto verdict = epochs_.unlock_all(); verdict != rma::Verdict::kProceed) return code_of(verdict);
    ready_.begin_epoch();
    if (all_mapped_) {
        for (const auto& each : peers_)
            if (each && each->lock != Peer::Lock::kNone) release_mapped_lock(*each);
        lock.unlock();
        progress_sometimes();
        return OMPI_SUCCESS;
    }
    // Look for the others before the release: finish() shall not wait for the atomic operations that release locks.
    std::vector<Peer*> locked, others;
    for (const auto& each : peers_)
        if (each && each->lock != Peer::Lock::kNone) locked.push_back(each.get());
    for (Peer* const each : touched_peers())
        if (each->lock == Peer::Lock::kNone) others.push_back(each);
    const int rc = release_all(lock, locked);
    const int other = finish(lock, others, true);
    progress_unless_waited(lock, rounds);
    return worse(other, rc);
}

int Window::flush(std::uint32_t rank, bool local) {
    Lock lock(mutex_);
    const std::uint64_t rounds = rounds_;
    if (const auto verdict = epochs_.flush(rank); verdict != rma::Verdict::kProceed) return code_of(verdict);
    int rc = OMPI_SUCCESS;
    if (peers_[rank]) {
        Peer* const there = peers_[rank].get();
        execute_copies(lock, *there);
        if (by_hcas() && there->has_only_rdma()) finish_rdma(lock, *there, !local);
        else rc = finish(lock, {&there, 1}, !local);
    }
    progress_unless_waited(lock, rounds);
    return rc;
}

int Window::flush_all(bool local) {
    Lock lock(mutex_);
    const std::uint64_t rounds = rounds_;
    if (const auto verdict = epochs_.flush_all(); verdict != rma::Verdict::kProceed) return code_of(verdict);
    const int rc = finish(lock, touched_peers(), !local);
    progress_unless_waited(lock, rounds);
    return rc;
}

int Window::sync() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (all_mapped_) {
        progress_sometimes();
        return OMPI_SUCCESS;
    }
    opal_progress();
    // What other threads have executed for this process is visible then.
    const Lock lock(mutex_);
    return OMPI_SUCCESS;
}

}  // namespace coop::osc
