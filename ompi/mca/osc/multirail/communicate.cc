// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Put and the like: each checks the access, and chooses the way of the operation.
#include <algorithm>

#include "codes.h"
#include "diagnose.h"
#include "quick.h"
#include "waiting.h"
#include "window.h"

namespace coop::osc {
namespace {

// The request of an operation (MPI_Rput and the like). Calls without a request pass a null `to`, and this does nothing.
class Wanted {
public:
    Wanted(ompi_win_t* win, ompi_request_t** to) : to_(to), request_(to ? new_request(*win) : nullptr) {
        if (to_ && !request_) throw std::bad_alloc();
        if (request_) request_->parts = 1;  // this call: the request cannot complete before started()
    }
    Request* get() const noexcept { return request_; }
    // The operation has been started. `lock`: of the window.
    void started(std::unique_lock<Mutex>& lock) noexcept {
        if (!request_) return;
        if (!lock.owns_lock()) lock.lock();
        const bool done = --request_->parts == 0;
        lock.unlock();
        *to_ = &request_->super;
        if (done) complete(*request_);
    }

private:
    ompi_request_t** const to_;
    Request* const request_;
};

void done_at_once(ompi_request_t** request) noexcept {
    if (request) *request = &ompi_request_empty;
}

// As in a receive, the data may be shorter than the memory that receives it.
bool put_fits(const Origin& origin, const Target& target) noexcept { return origin.bytes() <= target.bytes(); }
bool get_fits(const Origin& origin, const Target& target) noexcept { return target.bytes() <= origin.bytes(); }

}  // namespace

void Window::wait_until_ready(Lock& lock, Peer& peer) {
    switch (epochs_.access_state()) {
    case rma::Access::kStarted:
        if (!start_no_check_) {
            with_posts([&](auto& posts) {
                wait_for(lock, [&] { return ready_.has(peer.rank) || posts.has_post(peer.rank); });
                // If they are equal, another thread has taken the post.
                if (!ready_.has(peer.rank)) posts.take_post(peer.rank);
            });
        }
        break;
    case rma::Access::kLockAll:
        if (epochs_.all_no_check()) break;
        ask_for_lock(lock, peer, rma::LockType::kShared);
        wait_for_lock(lock, peer);
        break;
    case rma::Access::kLocks:
        if (!epochs_.lock_had_no_check(peer.rank)) wait_for_lock(lock, peer);
        break;
    default: break;
    }
    ready_.add(peer.rank);
}

bool Window::make_ready(std::uint32_t rank) noexcept {
    Lock lock(mutex_);
    if (epochs_.access(rank) != rma::Verdict::kProceed) return false;
    try {
        wait_until_ready(lock, peer(rank));
    } catch (const std::bad_alloc&) {
        out_of_memory("a one-sided operation");
    }
    return true;
}

int Window::enter(Lock& lock, const Target& target, Place* place) {
    const bool is_ready = target.rank < processes_ && ready_.has(target.rank);
    if (!is_ready)
        if (const auto verdict = epochs_.may_access(target.rank); verdict != rma::Verdict::kProceed)
            return code_of(verdict);
    *place = {static_cast<std::uint64_t>(target.displacement), nullptr, false};
    if (target.bytes() == 0) return code_of(epochs_.access(target.rank));
    const Card& card = cards_[target.rank];
    if (!is_dynamic()) {
        const auto offset = rma::offset_in(target.displacement, card.unit, extent_of(target), card.bytes);
        if (!offset) return OMPI_ERR_RMA_RANGE;
        *place = {*offset, card.is_mapped ? card.mapped + *offset : nullptr, card.is_mapped};
    } else if (target.rank == rank_) {
        rma::RunBuilder layout;
        flatten(target, place->offset, target.bytes(), layout);
        if (!own_memory_has(layout.runs())) return OMPI_ERR_RMA_RANGE;
        *place = {place->offset, reinterpret_cast<std::byte*>(place->offset), true};
    }
    if (is_ready) return OMPI_SUCCESS;
    // Until here, the call has changed nothing.
    const auto verdict = epochs_.access(target.rank);
    wait_until_ready(lock, peer(target.rank));
    return code_of(verdict);
}

// A single operation is faster without the target. Operations that begin while an earlier one is under way are a burst,
// which is faster as one message.
bool Window::wants_help(std::uint32_t rank, std::uint64_t blocks) const noexcept {
    constexpr std::uint64_t kMany = 4;
    if (!process.config.target_helps) return false;
    const Peer* const there = peers_[rank].get();
    return blocks >= kMany || there->staged_parts > 0 || there->buffer.bytes;
}

Window::Choice Window::choose(const Origin& origin, const Target& target, const rma::RunBuilder& layout,
                              OriginBlocks& here) {
    if (const auto near = choose_near(origin, target.rank, layout)) return *near;
    if (is_dynamic()) return {Way::kMessage, Reason::kDynamic};
    if (!rdma_) return {Way::kMessage, Reason::kNoRdma};
    const Card& card = cards_[target.rank];
    if (!card.registered) return {Way::kMessage, card.near ? Reason::kOtherTransport : Reason::kNotRegistered};
    const bool passive = by_hcas();
    if (card.near && !passive) return {Way::kMessage, Reason::kOtherTransport};
    const auto least = static_cast<std::uint64_t>(process.config.direct_min);
    // RDMA needs an operation for each block, here and there.
    const std::uint64_t blocks = rma::count_blocks(layout.runs());
    const bool is_long = layout.bytes() / blocks >= least && list_long_blocks(origin, layout.bytes(), least, here);
    const bool is_refused = is_long && refusals_.skips(here.first, here.span);
    if (is_long && !is_refused) return {Way::kDirect, Reason::kLong};
    if (is_refused) return {passive ? Way::kStaged : Way::kMessage, Reason::kRefused};
    if (passive && wants_help(target.rank, blocks)) return {Way::kMessage, Reason::kTargetHelps};
    return {passive ? Way::kStaged : Way::kMessage, layout.bytes() < least ? Reason::kShort : Reason::kSeveralBlocks};
}

// Moves by RDMA; if the transport refuses part of it, the rest goes through staging memory, or by messages.
void Window::move_directly(Lock& lock, Peer& there, bool puts, const OriginBlocks& origin,
                           const rma::RunBuilder& layout, Request* request) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 30;  // Origin::count is an int
    rma::RunCursor here(origin.blocks.runs()), cursor(layout.runs());
    const std::uint64_t done = transfer(lock, there, puts, origin, here, cursor, request);
    if (done > 0) counts_.count(Way::kDirect, Reason::kLong, done);
    if (done == layout.bytes()) return;
    const bool stages = by_hcas();
    counts_.count(stages ? Way::kStaged : Way::kMessage, Reason::kRefused, layout.bytes() - done);
    while (!here.at_end()) {
        const rma::Block block = here.next(kMost);
        rma::RunBuilder part;
        while (part.bytes() < block.bytes) part.add(cursor.next(block.bytes - part.bytes()));
        auto* const local = reinterpret_cast<std::byte*>(block.offset);
        const Origin bytes{local, static_cast<int>(block.bytes), &ompi_mpi_byte.dt};
        if (!stages) move_blocks(lock, there, puts, local, part, request);
        else if (puts) put_staged(lock, there, bytes, part);
        else get_staged(lock, there, bytes, part, request);
    }
}

int Window::put(const Origin& origin, const Target& target, ompi_request_t** request) {
    if (!put_fits(origin, target)) return MPI_ERR_TRUNCATE;
    Lock lock(mutex_);
    Place place{};
    if (const int rc = enter(lock, target, &place); rc != OMPI_SUCCESS) return rc;
    if (place.is_mapped || origin.bytes() == 0) {
        lock.unlock();
        done_at_once(request);
        if (origin.bytes() == 0) return OMPI_SUCCESS;
        counts_.count(Way::kMapped, why_mapped(target.rank), origin.bytes());
        return put_mapped(origin, target, place.mapped);
    }
    if (!request && queue_copy(lock, true, origin, target, place)) return OMPI_SUCCESS;
    rma::RunBuilder layout;
    flatten(target, place.offset, origin.bytes(), layout);
    OriginBlocks here;
    const auto [way, reason] = choose(origin, target, layout, here);
    if (way == Way::kCma) {
        copy_near(lock, true, origin, target, layout, nullptr);
        done_at_once(request);
        return OMPI_SUCCESS;
    }
    if (way != Way::kDirect) {
        counts_.count(way, reason, layout.bytes());
        if (way == Way::kMessage && !request && suits_rendezvous(origin, layout, target.rank)) {
            put_rendezvous(lock, peer(target.rank), origin.contiguous(), layout.runs()[0]);
            return OMPI_SUCCESS;
        }
        if (way == Way::kStaged) put_staged(lock, peer(target.rank), origin, layout);
        else put_message(lock, peer(target.rank), origin, layout);
        done_at_once(request);  // the data are copied
        return OMPI_SUCCESS;
    }
    Wanted wanted(win_, request);
    move_directly(lock, peer(target.rank), true, here, layout, wanted.get());
    wanted.started(lock);
    return OMPI_SUCCESS;
}

int Window::get(const Origin& origin, const Target& target, ompi_request_t** request) {
    if (!get_fits(origin, target)) return MPI_ERR_TRUNCATE;
    Lock lock(mutex_);
    Place place{};
    if (const int rc = enter(lock, target, &place); rc != OMPI_SUCCESS) return rc;
    if (place.is_mapped || target.bytes() == 0) {
        lock.unlock();
        done_at_once(request);
        if (target.bytes() == 0) return OMPI_SUCCESS;
        counts_.count(Way::kMapped, why_mapped(target.rank), target.bytes());
        progress_sometimes();
        return get_mapped(origin, target, place.mapped);
    }
    if (!request && queue_copy(lock, false, origin, target, place)) return OMPI_SUCCESS;
    Wanted wanted(win_, request);
    rma::RunBuilder layout;
    flatten(target, place.offset, target.bytes(), layout);
    OriginBlocks here;
    const auto [way, reason] = choose(origin, target, layout, here);
    if (way == Way::kDirect) {
        move_directly(lock, peer(target.rank), false, here, layout, wanted.get());
    } else if (way == Way::kCma) {
        copy_near(lock, false, origin, target, layout, wanted.get());
    } else {
        counts_.count(way, reason, layout.bytes());
        if (way == Way::kStaged) get_staged(lock, peer(target.rank), origin, layout, wanted.get());
        else if (suits_rendezvous(origin, layout, target.rank))
            get_rendezvous(lock, peer(target.rank), origin.contiguous(), layout.runs()[0], wanted.get());
        else get_message(lock, peer(target.rank), origin, layout, wanted.get());
    }
    wanted.started(lock);
    return OMPI_SUCCESS;
}

int Window::accumulate(const Origin& origin, const Target& target, ompi_op_t& op, ompi_request_t** request) {
    if (!put_fits(origin, target)) return MPI_ERR_TRUNCATE;
    return combine(origin, nullptr, target, op, request);
}

int Window::get_accumulate(const Origin& origin, const Origin& result, const Target& target, ompi_op_t& op,
                           ompi_request_t** request) {
    const bool reads_origin = &op != &ompi_mpi_op_no_op.op;
    if ((reads_origin && !put_fits(origin, target)) || !get_fits(result, target)) return MPI_ERR_TRUNCATE;
    return combine(origin, &result, target, op, request);
}

int Window::combine(const Origin& origin, const Origin* result, const Target& target, ompi_op_t& op,
                    ompi_request_t** request) {
    const auto element = element_type(*target.type);
    const std::uint8_t operation = number_of(op);
    if (target.bytes() > 0 && (!element || number_of(*element->type) == 0)) return MPI_ERR_TYPE;
    if (operation == 0 || (element && !is_defined(operation, *element->type))) return MPI_ERR_OP;
    const bool combines = operation != kNoOp;
    // Open MPI has checked it, unless its parameter mpi_param_check is 0.
    if (combines && element && origin.bytes() % element->size != 0) return MPI_ERR_TYPE;
    Lock lock(mutex_);
    Place place{};
    if (const int rc = enter(lock, target, &place); rc != OMPI_SUCCESS) return rc;
    if (target.bytes() == 0 || (combines && origin.bytes() == 0)) {
        lock.unlock();
        done_at_once(request);
        return OMPI_SUCCESS;
    }
    // Whoever waits for a request need not flush.
    const bool may_wait = !result || !request;
    if (by_hcas()) {
        counts_.count(Way::kStaged, Reason::kAtOrigin, target.bytes());
        Peer& there = peer(target.rank);
        if (!may_wait || !queue_accumulate(lock, there, origin, result, target, place, *element, operation))
            accumulate_remote(lock, there, origin, result, target, place, *element, operation);
        lock.unlock();
        done_at_once(request);
        return OMPI_SUCCESS;
    }
    const bool here = place.is_mapped && (all_mapped_ || target.rank == rank_);
    if (here) {
        SharedLocks* const words = words_of(target.rank);
        lock.unlock();
        done_at_once(request);
        counts_.count(Way::kMapped, why_mapped(target.rank), target.bytes());
        if (result) progress_sometimes();
        accumulate_mapped(origin, result, target, place.mapped, *element, operation, words);
        return OMPI_SUCCESS;
    }
    const bool near = accumulates_near(target, place);
    if (near && may_wait &&
        queue_accumulate(lock, peer(target.rank), origin, result, target, place, *element, operation)) {
        lock.unlock();
        done_at_once(request);
        return OMPI_SUCCESS;
    }
    const bool in_order = may_overtake_none(lock, target.rank);
    Executed done;
    if (near && in_order && accumulate_near(lock, origin, result, target, place, *element, operation, done)) {
        done_at_once(request);
        return OMPI_SUCCESS;
    }
    counts_.count(Way::kMessage, near ? Reason::kRefused : Reason::kAtTarget, target.bytes());
    Wanted wanted(win_, result ? request : nullptr);
    accumulate_message(lock, peer(target.rank), origin, result, target, place.offset, *element, operation, wanted.get(),
                       std::move(done));
    if (result) wanted.started(lock);
    else done_at_once(request);
    return OMPI_SUCCESS;
}

int Window::compare_and_swap(const void* value, const void* comparand, void* result, ompi_datatype_t& type,
                             std::uint32_t rank, std::ptrdiff_t displacement) {
    const auto element = element_type(type);
    // MPI permits integers, logicals and bytes.
    const auto kind = type.super.flags & OMPI_DATATYPE_FLAG_DATA_TYPE;
    if (!ompi_datatype_is_predefined(&type) || !element || element->has_gap() || number_of(*element->type) == 0 ||
        kind == OMPI_DATATYPE_FLAG_DATA_FLOAT || kind == OMPI_DATATYPE_FLAG_DATA_COMPLEX)
        return MPI_ERR_TYPE;
    const Target target{rank, displacement, 1, &type};
    Lock lock(mutex_);
    Place place{};
    if (const int rc = enter(lock, target, &place); rc != OMPI_SUCCESS) return rc;
    if (by_hcas()) {
        counts_.count(Way::kStaged, Reason::kAtOrigin, element->size);
        swap_remote(lock, peer(rank), value, comparand, result, element->size, place);
        return OMPI_SUCCESS;
    }
    if (place.is_mapped && (all_mapped_ || rank == rank_)) {
        SharedLocks* const words = words_of(rank);
        lock.unlock();
        counts_.count(Way::kMapped, why_mapped(rank), element->size);
        progress_sometimes();
        swap_mapped(value, comparand, result, element->size, place.mapped, words);
        return OMPI_SUCCESS;
    }
    const bool near = accumulates_near(target, place), in_order = may_overtake_none(lock, rank);
    if (near && in_order && swap_near(lock, value, comparand, result, element->size, rank, place)) return OMPI_SUCCESS;
    counts_.count(Way::kMessage, near ? Reason::kRefused : Reason::kAtTarget, element->size);
    swap_message(lock, peer(rank), {const_cast<void*>(value), 1, &type}, comparand, {result, 1, &type}, place.offset);
    return OMPI_SUCCESS;
}

}  // namespace coop::osc
