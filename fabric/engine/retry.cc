// SPDX-License-Identifier: BSD-3-Clause
//
// Failures on a reliable connection, from the requester's side: lost requests and
// answers (InfiniBand 9.7.6.1.3, timers and retries), receivers that are not ready
// (9.7.5.2.8), refusals, and automatic path migration when the retries are used up
// (17.2.8).
#include <algorithm>
#include <array>

#include "fabric/engine/client.h"
#include "fabric/engine/faults.h"
#include "fabric/engine/local_qp.h"
#include "fabric/engine/opcode.h"
#include "fabric/engine/responder.h"
#include "fabric/shm/trace.h"

namespace coop::fabric {
namespace {

using Stage = SendWork::Stage;

constexpr std::uint32_t kForEver = 7;  // value of rnr_retry that means unlimited
constexpr std::int64_t kRoundTripNs = 2'000;

// The delays of the RNR timer's codes, in units of 10 us (InfiniBand table 45).
constexpr std::array<std::int64_t, 32> kRnrTimer = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

}  // namespace

void LocalQp::on_answer(SendWork& work, Answer answer, std::int64_t now) {
    switch (answer) {
    case Answer::none: return on_lost(work, now);
    case Answer::not_ready: return on_not_ready(work, now);
    case Answer::invalid_request: return finish(work, IBV_WC_REM_INV_REQ_ERR, now);
    case Answer::access: return finish(work, IBV_WC_REM_ACCESS_ERR, now);
    case Answer::operation: return finish(work, IBV_WC_REM_OP_ERR, now);
    case Answer::local_protection: return finish(work, IBV_WC_LOC_PROT_ERR, now);
    case Answer::ack: return;
    }
}

// 4.096 us * 2^timeout. For 0 there is no timer, and the QP waits for ever.
std::int64_t LocalQp::timeout_ns() const {
    const std::uint8_t code = shared_.primary.timeout & 31;
    return code == 0 ? Agenda::kNever : std::int64_t{4096} << code;
}

// Whether a packet after the lost one reveals the gap to the responder, whose NAK comes sooner than the timer expires.
bool LocalQp::is_gap_noticed(const SendWork& work) {
    if (work.stage != Stage::on_the_way) return false;
    const std::uint32_t behind = sent_ - executed_ - 1 + (work.moved + work.chunk < work.bytes ? 1 : 0);
    if (behind == 0 || !routed_ || !is_passable(subnet_, route_) || loses_everything(subnet_, route_)) return false;
    return hears() && listens(subnet_, shared_.destination) &&
           std::int64_t{behind} > drops_left(subnet_, route_, struck(work));
}

// The request, or its acknowledgement, is lost. `now` is the time since when the requester waits for the answer.
void LocalQp::on_lost(SendWork& work, std::int64_t now) {
    // A later request has used up the retries, which are those of the queue pair. Nothing is sent any more.
    if (failing_) return finish(work, IBV_WC_RETRY_EXC_ERR, now);
    const bool noticed = is_gap_noticed(work);
    const std::int64_t wait = noticed ? latency_ns(subnet_, route_) + latency_ns(subnet_, back_) + kRoundTripNs
                                      : timeout_ns();
    if (retries_left_ > 0 || wait == Agenda::kNever) {
        if (retries_left_ > 0) --retries_left_;
        return retry(work, wait == Agenda::kNever ? wait : now + wait);
    }
    if (migrate()) {
        retries_left_ = retry_count_;
        return retry(work, now);
    }
    trace(subnet_, TraceKind::retry_exceeded, shared_.number, shared_.destination, route_.dlid, retry_count_);
    // The last attempt has a timer, too: the error comes when it expires, or now if a later packet revealed the loss.
    finish(work, IBV_WC_RETRY_EXC_ERR, noticed ? now : now + wait);
}

void LocalQp::on_not_ready(SendWork& work, std::int64_t now) {
    shared_.rnr_retries.fetch_add(1, std::memory_order_relaxed);
    if (rnr_retry_ != kForEver) {
        if (rnr_left_ == 0) {
            trace(subnet_, TraceKind::rnr_exceeded, shared_.number, shared_.destination, route_.dlid, rnr_retry_);
            return finish(work, IBV_WC_RNR_RETRY_EXC_ERR, now);
        }
        --rnr_left_;
    }
    const QueuePair* peer = find_queue_pair(subnet_, shared_.destination);
    const std::uint32_t code = peer == nullptr ? 0 : peer->min_rnr_timer & 31;
    trace(subnet_, TraceKind::rnr, shared_.number, shared_.destination, route_.dlid, code);
    go_back_to(work);
    blocked_until_ns_ = now + kRnrTimer[code] * 10'000;
}

void LocalQp::retry(SendWork& work, std::int64_t at_ns) {
    shared_.retries.fetch_add(1, std::memory_order_relaxed);
    trace(subnet_, TraceKind::retry, shared_.number, shared_.destination, route_.dlid, retries_left_);
    go_back_to(work);
    blocked_until_ns_ = at_ns;
}

// Moves the marks back, so that this request and all later ones are sent again. The responder recognises by the
// sequence numbers what it has received.
void LocalQp::go_back_to(SendWork& work) {
    std::uint32_t mark = head_;
    while (&at(mark) != &work) ++mark;
    for (std::uint32_t i = mark; i != sent_; ++i) {
        SendWork& again = at(i);
        if (is_read_or_atomic(again.opcode) && again.stage != Stage::done && reads_in_flight_ > 0) --reads_in_flight_;
        if (again.heard == SendWork::Heard::lost) --unheard_;
        again.heard = SendWork::Heard::by_path;
        again.stage = Stage::waiting;
        again.moved = again.chunk = 0;
    }
    std::erase_if(responding_, [&](std::uint32_t read) { return static_cast<std::int32_t>(read - mark) >= 0; });
    executed_ = sent_ = mark;
    in_flight_bytes_ = 0;
}

// Makes the alternate path the primary one. Returns false if no alternate path is armed.
bool LocalQp::migrate() {
    Guard guard(shared_.lock);
    if (shared_.migration.load(std::memory_order_acquire) != IBV_MIG_ARMED || shared_.alternate.port == 0) return false;
    std::swap(shared_.primary, shared_.alternate);
    shared_.path_epoch.fetch_add(1, std::memory_order_release);
    shared_.migration.store(IBV_MIG_MIGRATED, std::memory_order_release);
    shared_.migrations.fetch_add(1, std::memory_order_relaxed);
    let_late_go();  // what the old path still holds
    trace(subnet_, TraceKind::migrated, shared_.number, shared_.destination, shared_.primary.dlid);
    raise_for(subnet_, shared_, IBV_EVENT_PATH_MIG);
    refresh_routes();
    return true;
}

void LocalQp::refresh_routes() {
    const std::uint32_t epoch = shared_.path_epoch.load(std::memory_order_acquire);
    const std::uint32_t addresses = subnet_.header().addresses.load(std::memory_order_acquire);
    if ((epoch == route_epoch_ && addresses == addresses_) || shared_.type == IBV_QPT_UD) return;
    route_epoch_ = epoch;
    addresses_ = addresses;
    routed_ = false;
    if (shared_.primary.port == 0) return;
    const std::uint32_t port = subnet_.hcas()[shared_.hca].first_port + shared_.primary.port - 1;
    route_ = find_route(subnet_, port, shared_.primary);
    routed_ = route_.leads_somewhere();
    back_epoch_ = 0;
    if (routed_) back_ = route_.reversed(subnet_);
}

bool LocalQp::has_peer() const {
    const QueuePair* peer = find_queue_pair(subnet_, shared_.destination);
    return peer != nullptr && peer->state.load(std::memory_order_acquire) >= IBV_QPS_RTR;
}

// True if answers arrive. They take the responder's own path.
bool LocalQp::hears() {
    QueuePair* peer = find_queue_pair(subnet_, shared_.destination);
    if (peer == nullptr) return false;
    if (const std::uint32_t epoch = peer->path_epoch.load(std::memory_order_acquire); epoch != back_epoch_) {
        Guard guard(peer->lock);
        back_epoch_ = epoch;
        back_ = find_route(subnet_,
                           subnet_.hcas()[peer->hca].first_port + std::max<std::uint32_t>(peer->primary.port, 1) - 1,
                           peer->primary);
    }
    return back_.to == route_.from && is_passable(subnet_, back_) && !loses_everything(subnet_, back_);
}

}  // namespace coop::fabric
