// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/local_qp.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "fabric/engine/client.h"
#include "fabric/engine/completion.h"
#include "fabric/engine/late.h"
#include "fabric/engine/opcode.h"
#include "fabric/engine/path.h"
#include "fabric/engine/responder.h"
#include "fabric/shm/process.h"
#include "fabric/shm/trace.h"

namespace coop::fabric {
namespace {

constexpr std::uint32_t kPsnMask = 0xffffff;
constexpr std::int64_t kWaitInPost = 5'000;            // ns
constexpr std::uint32_t kControlledQkey = 0x80000000;  // requests the QP's own Q_Key (InfiniBand 10.2.5)

bool can_post(std::uint32_t state) {
    return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR;
}

ibv_wc_opcode completion_opcode(ibv_wr_opcode opcode) {
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM: return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ: return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return IBV_WC_FETCH_ADD;
    default: return IBV_WC_SEND;
    }
}

}  // namespace

LocalQp::LocalQp(Client& client, std::uint32_t index, const SendCapacity& capacity)
    : client_(client), subnet_(client.subnet()), index_(index), shared_(client.subnet().queue_pairs()[index]),
      capacity_(capacity), traces_messages_(client.subnet().header().trace_messages != 0),
      longest_(subnet_.hcas()[shared_.hca].profile.max_message), ring_(std::bit_ceil(capacity.requests + 1)),
      inline_data_(ring_.size() * capacity.inline_bytes) {
    reset_queue();
    client_.add(*this);
}

LocalQp::~LocalQp() {
    client_.remove(*this);
    let_late_go();
    if (call_) client_.call();
}

// --- posting --------------------------------------------------------------------------------------------------------

std::uint32_t LocalQp::room() const {
    return capacity_.requests - (tail_ - shared_.released.load(std::memory_order_acquire));
}

SendWork* LocalQp::slot() { return room() > 0 ? &at(tail_) : nullptr; }

std::byte* LocalQp::inline_data(const SendWork& work) {
    return inline_data_.data() + static_cast<std::size_t>(&work - ring_.data()) * capacity_.inline_bytes;
}

ibv_wc_status LocalQp::first_flaw(const SendWork& work, std::uint64_t longest) const {
    if (shared_.type == IBV_QPT_UD && work.to.pd != shared_.pd) return IBV_WC_LOC_QP_OP_ERR;
    if (work.bytes > longest || (is_atomic(work.opcode) && work.bytes != sizeof(std::uint64_t)))
        return IBV_WC_LOC_LEN_ERR;
    return IBV_WC_SUCCESS;
}

int LocalQp::add(SendWork& work) {
    if (!can_post(state())) return EINVAL;
    if ((work.flags & IBV_SEND_INLINE) != 0) {
        work.inline_at = inline_data(work);
        work.bytes = work.inline_bytes;
    } else {
        work.bytes = 0;
        for (std::uint32_t i = 0; i < work.sges; ++i) work.bytes += work.sge[i].bytes;
    }
    const bool datagram = shared_.type == IBV_QPT_UD;
    if (datagram && (work.to_qkey & kControlledQkey) != 0) work.to_qkey = shared_.qkey;
    const std::uint32_t mtu = std::max(shared_.path_mtu_bytes, 256u);
    const std::uint64_t longest =
        datagram ? subnet_.ports()[subnet_.hcas()[shared_.hca].first_port + shared_.port - 1].mtu_bytes : longest_;
    work.status = first_flaw(work, longest);
    work.moved = 0;
    work.chunk = 0;
    work.packets = static_cast<std::uint32_t>(std::max<std::uint64_t>((work.bytes + mtu - 1) / mtu, 1));
    work.first_psn = next_psn_;
    next_psn_ = (next_psn_ + work.packets) & kPsnMask;
    work.posted_ns = clock_ns_ = now_ns();
    work.stage = SendWork::Stage::waiting;
    work.heard = SendWork::Heard::by_path;
    ++tail_;
    return 0;
}

void LocalQp::end() {
    work_until_nothing_is_due(true);
    // A single short message is due sooner than any thread wakes up, so the posting thread waits for it, and wakes none.
    while (!working_ && sent_ - executed_ == 1 && at(executed_).bytes <= kInlineBytes &&
           next_due() - now_ns() < kWaitInPost)
        if ((clock_ns_ = now_ns()) >= next_due()) work_until_nothing_is_due(true);
    plan();
    unlock();
}

void LocalQp::unlock() {
    const bool call = std::exchange(call_, false);
    lock_.unlock();
    if (call) client_.call();
}

// --- attributes and states -----------------------------------------------------------------------------------------

void LocalQp::wait_until_nobody_works() {
    while (working_) {
        lock_.unlock();
        sched_yield();
        lock_.lock();
    }
}

void LocalQp::modify(const ibv_qp_attr& attribute, int mask) {
    const Turn turn(*this);
    wait_until_nobody_works();
    {
        Guard shared(shared_.lock);
        take_attributes(attribute, mask);
    }
    if ((mask & IBV_QP_STATE) != 0) enter(attribute.qp_state, attribute, mask);
    work_until_nothing_is_due(false);
    plan();
}

void LocalQp::take_attributes(const ibv_qp_attr& a, int mask) {
    const auto has = [mask](int bit) { return (mask & bit) != 0; };
    if (has(IBV_QP_PORT)) shared_.port = a.port_num;
    if (has(IBV_QP_PKEY_INDEX)) shared_.primary.pkey_index = a.pkey_index;
    if (has(IBV_QP_QKEY)) shared_.qkey = a.qkey;
    if (has(IBV_QP_ACCESS_FLAGS)) shared_.access = static_cast<std::uint32_t>(a.qp_access_flags);
    if (has(IBV_QP_DEST_QPN)) shared_.destination = a.dest_qp_num;
    if (has(IBV_QP_PATH_MTU)) shared_.path_mtu_bytes = 128u << a.path_mtu;
    if (has(IBV_QP_RQ_PSN)) shared_.expected_psn = a.rq_psn & kPsnMask;
    if (has(IBV_QP_MAX_DEST_RD_ATOMIC)) shared_.max_dest_rd_atomic = a.max_dest_rd_atomic;
    if (has(IBV_QP_MIN_RNR_TIMER)) shared_.min_rnr_timer = a.min_rnr_timer;
    if (has(IBV_QP_AV)) shared_.primary = path_of(a.ah_attr, shared_.primary.timeout, shared_.primary.pkey_index);
    if (has(IBV_QP_AV) && shared_.primary.port == 0) shared_.primary.port = static_cast<std::uint8_t>(shared_.port);
    if (has(IBV_QP_ALT_PATH)) {
        shared_.alternate = path_of(a.alt_ah_attr, a.alt_timeout, a.alt_pkey_index);
        shared_.alternate.port = a.alt_port_num;
    }
    if (has(IBV_QP_TIMEOUT)) shared_.primary.timeout = a.timeout;
    if (has(IBV_QP_SQ_PSN)) next_psn_ = a.sq_psn & kPsnMask;
    if (has(IBV_QP_RETRY_CNT)) retry_count_ = retries_left_ = a.retry_cnt;
    if (has(IBV_QP_RNR_RETRY)) rnr_retry_ = rnr_left_ = a.rnr_retry;
    if (has(IBV_QP_MAX_QP_RD_ATOMIC)) max_reads_ = a.max_rd_atomic;
    if (has(IBV_QP_PATH_MIG_STATE)) {
        const bool now = a.path_mig_state == IBV_MIG_MIGRATED && shared_.migration.load() == IBV_MIG_ARMED;
        if (now) std::swap(shared_.primary, shared_.alternate);
        shared_.migration.store(a.path_mig_state, std::memory_order_release);
    }
    if (has(IBV_QP_AV) || has(IBV_QP_ALT_PATH) || has(IBV_QP_PATH_MIG_STATE))
        shared_.path_epoch.fetch_add(1, std::memory_order_release);
}

void LocalQp::enter(std::uint32_t to, const ibv_qp_attr& attribute, int mask) {
    switch (static_cast<ibv_qp_state>(to)) {
    case IBV_QPS_RESET: reset_queue(); break;
    case IBV_QPS_SQD:
        drain_event_ = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attribute.en_sqd_async_notify != 0;
        break;
    case IBV_QPS_RTS: failing_ = false; break;
    case IBV_QPS_INIT:
    case IBV_QPS_RTR:
    case IBV_QPS_SQE:
    case IBV_QPS_ERR:
    case IBV_QPS_UNKNOWN: break;
    }
    shared_.state.store(to, std::memory_order_release);
}

// Returns the queue to its initial state without completing requests (InfiniBand 10.3.1).
void LocalQp::reset_queue() {
    let_late_go();
    head_ = executed_ = sent_ = begun_ = tail_ = 0;
    shared_.released.store(0, std::memory_order_release);
    responding_.clear();
    in_flight_bytes_ = 0;
    reads_in_flight_ = unheard_ = 0;
    failing_ = flushed_ = false;
    blocked_until_ns_ = link_free_ns_ = 0;
    Guard guard(shared_.lock);
    shared_.receives.taken.store(shared_.receives.put.load(), std::memory_order_release);
    shared_.held = shared_.established = 0;
    if (shared_.mute.load() != Mute::for_good) shared_.mute.store(Mute::no);
    shared_.primary = shared_.alternate = {};
    shared_.migration.store(IBV_MIG_MIGRATED, std::memory_order_release);
    shared_.path_epoch.fetch_add(1, std::memory_order_release);
    for (AtomicResult& result : shared_.atomic_results) result = {kNone, 0};
}

void LocalQp::query(ibv_qp_attr& a) {
    std::lock_guard guard(lock_);
    Guard shared(shared_.lock);
    a.qp_state = a.cur_qp_state = static_cast<ibv_qp_state>(state());
    a.path_mtu = static_cast<ibv_mtu>(std::countr_zero(std::max(shared_.path_mtu_bytes, 256u)) - 7);
    a.path_mig_state = static_cast<ibv_mig_state>(shared_.migration.load());
    a.qkey = shared_.qkey;
    a.rq_psn = shared_.expected_psn;
    a.sq_psn = next_psn_;
    a.dest_qp_num = shared_.destination;
    a.qp_access_flags = shared_.access;
    a.ah_attr = address_of(shared_.primary);
    a.alt_ah_attr = address_of(shared_.alternate);
    a.pkey_index = shared_.primary.pkey_index;
    a.alt_pkey_index = shared_.alternate.pkey_index;
    a.sq_draining = state() == IBV_QPS_SQD && head_ != begun_;
    a.max_rd_atomic = static_cast<std::uint8_t>(max_reads_);
    a.max_dest_rd_atomic = static_cast<std::uint8_t>(shared_.max_dest_rd_atomic);
    a.min_rnr_timer = static_cast<std::uint8_t>(shared_.min_rnr_timer);
    a.port_num = static_cast<std::uint8_t>(shared_.port);
    a.timeout = shared_.primary.timeout;
    a.retry_cnt = static_cast<std::uint8_t>(retry_count_);
    a.rnr_retry = static_cast<std::uint8_t>(rnr_retry_);
    a.alt_port_num = shared_.alternate.port;
    a.alt_timeout = shared_.alternate.timeout;
}

// --- errors ---------------------------------------------------------------------------------------------------------

bool LocalQp::is_late(const SendWork& work) const {
    return late_ != nullptr && late_->work.first_psn == work.first_psn;
}

// The sender has given up on the message, for whatever reason.
void LocalQp::let_late_go() {
    if (late_ == nullptr) return;
    late_->due_ns = now_ns() + late_by_ns_;
    call_ |= client_.send_late(std::move(late_));
}

void LocalQp::emit(std::uint32_t mark, ibv_wc_status status) {
    const SendWork& work = at(mark);
    if (is_late(work)) let_late_go();
    Completion completion{};
    completion.of_send_queue = 1;
    completion.released = mark + 1;
    completion.wr_id = work.wr_id;
    completion.time_ns = clock_ns_;
    completion.status = status;
    completion.opcode = completion_opcode(work.opcode);
    completion.bytes = static_cast<std::uint32_t>(work.bytes);
    completion.qp_number = shared_.number;
    if (put_completion(subnet_, shared_.send_cq, completion, notices_)) return;
    fail(subnet_, shared_, IBV_EVENT_QP_FATAL);
}

void LocalQp::trace_message(TraceKind kind, const SendWork& work, ibv_wc_status status) const {
    const std::uint32_t to = shared_.type == IBV_QPT_UD ? work.to_qp : shared_.destination;
    trace(subnet_, kind, shared_.number, to, message_word(work.opcode, status), work.bytes);
}

void LocalQp::flush_sends() {
    while (head_ != tail_) {
        if (traces_messages_) trace_message(TraceKind::message_ended, at(head_), IBV_WC_WR_FLUSH_ERR);
        emit(head_, IBV_WC_WR_FLUSH_ERR);
        ++head_;
    }
    executed_ = sent_ = begun_ = tail_;
    responding_.clear();
    in_flight_bytes_ = 0;
    reads_in_flight_ = unheard_ = 0;
    failing_ = false;
    blocked_until_ns_ = 0;
}

// In the error state all posted requests are flushed (InfiniBand 10.3.1.6). Receives of an SRQ are not; instead an
// event tells its user that this QP takes no more of them (11.6.3.3: last WQE reached).
void LocalQp::flush_if_failed() {
    if (subnet_.hcas()[shared_.hca].down.load(std::memory_order_relaxed) != 0 && can_post(state()))
        fail(subnet_, shared_, -1);
    if (state() == IBV_QPS_SQE) flush_sends();
    if (state() != IBV_QPS_ERR) return;
    if (shared_.mute.load(std::memory_order_relaxed) == Mute::for_good) return;
    shared_.mute.store(Mute::no, std::memory_order_relaxed);
    flush_sends();
    Guard guard(shared_.lock);
    flush_receives(subnet_, shared_, notices_);
    const bool tells = subnet_.hcas()[shared_.hca].profile.last_wqe != 0;
    if (shared_.srq != kNone && !flushed_ && tells) raise_for(subnet_, shared_, IBV_EVENT_QP_LAST_WQE_REACHED);
    flushed_ = true;
}

void LocalQp::on_attention() noexcept {
    const Turn turn(*this);
    work_until_nothing_is_due(false);
    plan();
}

}  // namespace coop::fabric
