// SPDX-License-Identifier: BSD-3-Clause
//
// The requester executes the work that is due. Each round (LocalQp::advance) tries
// four steps: send, execute, respond, complete. The stages of a request (local_qp.h):
//
//     waiting ──send──► queued ──its turn on the first link──► on_the_way
//        ▲                ▲                                        │ arrives
//        │                └────────────── next chunk ──────────────┤
//        │◄─────────────────────── retry ──────────────────────────┤
//        │                                     read: responding ◄──┤
//        │                                          │ arrives      ▼
//        └──────────────── retry ◄──────────────────┴──────────► done ──► completed
#include <algorithm>

#include "fabric/engine/client.h"
#include "fabric/engine/late.h"
#include "fabric/engine/local_qp.h"
#include "fabric/engine/opcode.h"
#include "fabric/engine/outage.h"
#include "fabric/engine/responder.h"
#include "fabric/shm/trace.h"

namespace coop::fabric {
namespace {

using Stage = SendWork::Stage;
using Heard = SendWork::Heard;

constexpr std::uint64_t kWindowBytes = 256 << 10;  // limit of a QP's data in transit, as network buffers would impose
constexpr std::int64_t kAheadNs = 20'000;          // a slot on the first link this close is used at once
constexpr std::int64_t kPatienceNs = 300'000;      // how late the messages of a stream may be executed
constexpr std::int64_t kOvertakenNs = 200'000;     // how late 'reorder' makes a datagram or the response of a read
constexpr std::int64_t kSecondNs = 50'000;         // time between a datagram and its double
constexpr std::uint32_t kLookAhead = 64;           // messages of a stream that are examined

void count_wait(const Segment& subnet, const Route& route, std::int64_t ns) {
    if (ns > 0)
        subnet.ports()[route.from].counters.wait_ns.fetch_add(static_cast<std::uint64_t>(ns),
                                                              std::memory_order_relaxed);
}

std::uint32_t packets_of(std::uint64_t bytes, std::uint32_t mtu) {
    return static_cast<std::uint32_t>(std::max<std::uint64_t>((bytes + mtu - 1) / std::max(mtu, 256u), 1));
}

}  // namespace

void LocalQp::work() noexcept {
    const Turn turn(*this);
    planned_ns_ = planned_latest_ns_ = Agenda::kNever;
    work_until_nothing_is_due(false);
    plan();
}

void LocalQp::work_until_nothing_is_due(bool posting) {
    if (working_) {
        again_ = true;
        return;
    }
    working_ = true;
    do {
        again_ = false;
        flush_if_failed();
        refresh_routes();
        // A posting thread has just read the clock.
        if (!posting) clock_ns_ = now_ns();
        while (head_ != tail_ && !is_mute() && advance(clock_ns_, posting)) {
            flush_if_failed();
            if (head_ != tail_) clock_ns_ = now_ns();
        }
        if (drain_event_ && !is_mute()) drain();
        notify();
    } while (again_);
    working_ = false;
}

// Does nothing while a thread works on the queue pair: that thread plans when it is done.
void LocalQp::plan() {
    if (working_) return;
    const std::int64_t due = next_due();
    if (due == Agenda::kNever) return;
    const std::int64_t latest = may_wait_until(due);
    if (due >= planned_ns_ && latest >= planned_latest_ns_) return;
    planned_ns_ = due;
    planned_latest_ns_ = latest;
    call_ |= client_.plan(index_, due, latest);
}

bool LocalQp::advance(std::int64_t now, bool posting) {
    bool moved = send_next(now);
    moved |= execute_next(now, posting);
    if (is_mute()) return true;
    moved |= respond_next(now);
    moved |= complete_next(now);
    notify();
    return moved;
}

// Writes the notifications. Called when all completions of this step, on both sides, have been put, so that an answer
// from a notified peer arrives after our own completion.
void LocalQp::notify() {
    if (notices_.is_empty()) return;
    without_lock([this] {
        notices_.flush(subnet_);
        return true;
    });
}

// The time at which there will be work if nothing is posted; kNever: only after some event.
std::int64_t LocalQp::next_due() const {
    std::int64_t due = Agenda::kNever;
    if (is_mute()) return due;
    if (head_ != executed_ && at(head_).stage == Stage::done) due = at(head_).due_ns;
    for (const std::uint32_t mark : responding_) due = std::min(due, at(mark).due_ns);
    if (failing_) return due;
    if (executed_ != sent_) due = std::min({due, at(executed_).due_ns, at(sent_ - 1).due_ns});
    // Requests that could be sent have been, unless a timer holds them back.
    if (sent_ != tail_ && blocked_until_ns_ > clock_ns_ && may_send(at(sent_))) due = std::min(due, blocked_until_ns_);
    return due;
}

// A stream of short messages would cost the engine's thread, and the receivers, a wake-up for each. If the posted
// requests keep the link busy for at least 2 * kPatienceNs, the thread sleeps until the last message that arrives
// within kPatienceNs. The link's model time continues meanwhile, so the rate does not suffer. Polling threads do not
// wait.
std::int64_t LocalQp::may_wait_until(std::int64_t due_ns) const {
    if (executed_ == sent_ || head_ != executed_ || !responding_.empty() || blocked_until_ns_ > clock_ns_)
        return due_ns;
    // Besides this request, only the turn of the youngest one on the first link can be due.
    const SendWork& next = at(executed_);
    const std::int64_t on_link_ns = next.first_link.end_ns - next.first_link.start_ns;
    if (next.stage != Stage::on_the_way || next.chunk != next.bytes || on_link_ns == 0) return due_ns;
    const double ns_per_byte = static_cast<double>(on_link_ns) / static_cast<double>(next.bytes);
    std::int64_t latest = next.due_ns;
    double behind_ns = 0;
    for (std::uint32_t mark = executed_ + 1;
         mark - executed_ <= kLookAhead && mark != tail_ && !is_read_or_atomic(at(mark).opcode); ++mark) {
        behind_ns += ns_per_byte * static_cast<double>(at(mark).bytes);
        if (behind_ns > 2 * kPatienceNs) return latest;
        if (behind_ns <= kPatienceNs) latest = next.due_ns + static_cast<std::int64_t>(behind_ns);
    }
    return due_ns;
}

// --- onto the links ------------------------------------------------------------------------------------------------

bool LocalQp::may_send(const SendWork& work) const {
    // While the queue drains, requests that were begun are finished, including their retries.
    const bool draining = state() == IBV_QPS_SQD && sent_ != begun_;
    if (failing_ || (state() != IBV_QPS_RTS && !draining)) return false;
    if (sent_ != executed_ && in_flight_bytes_ >= kWindowBytes) return false;
    if ((work.flags & IBV_SEND_FENCE) != 0 && reads_in_flight_ > 0) return false;
    // With an initiator depth of 0 there is nothing to wait for: one request at a time is sent, and the responder
    // refuses it if its own depth is 0, too.
    return !is_read_or_atomic(work.opcode) || reads_in_flight_ < std::max(max_reads_, 1u);
}

// A port may have got other addresses since the address handle was created.
void LocalQp::refresh_address(DatagramAddress& to) const {
    const std::uint32_t addresses = subnet_.header().addresses.load(std::memory_order_acquire);
    if (to.addresses == addresses) return;
    to.route = find_route(subnet_, to.route.from, to.path);
    to.addresses = addresses;
}

bool LocalQp::send_next(std::int64_t now) {
    // Only the youngest request can wait for its turn on the link: later ones would get their turn after it.
    if (sent_ != executed_ && at(sent_ - 1).stage == Stage::queued) {
        SendWork& last = at(sent_ - 1);
        if (last.due_ns > now + kAheadNs) return false;
        leave_first_link(last);
        return true;
    }
    if (sent_ == tail_ || now < blocked_until_ns_ || !may_send(at(sent_))) return false;
    // A message of several chunks is sent completely before the next one begins.
    if (sent_ != executed_ && at(sent_ - 1).moved + at(sent_ - 1).chunk < at(sent_ - 1).bytes &&
        !is_read(at(sent_ - 1).opcode))
        return false;
    SendWork& work = at(sent_);
    if (sent_++ == begun_) {
        ++begun_;
        if (traces_messages_) trace_message(TraceKind::message_begun, work, IBV_WC_SUCCESS);
    }
    if (is_read_or_atomic(work.opcode)) ++reads_in_flight_;
    if (shared_.type == IBV_QPT_UD) {
        refresh_address(work.to);
        route_ = work.to.route;
        routed_ = route_.leads_somewhere();
    }
    // The chunk follows the last one in model time, however late this is computed.
    send_chunk(work, std::max({work.posted_ns, link_free_ns_, blocked_until_ns_}), now);
    return true;
}

void LocalQp::send_chunk(SendWork& work, std::int64_t ready_ns, std::int64_t now) {
    work.chunk = is_read(work.opcode) ? 0 : work.bytes - work.moved;
    if (routed_) work.chunk = std::min(work.chunk, chunk_bytes(subnet_, route_));
    in_flight_bytes_ += work.chunk;
    work.first_link = {ready_ns, ready_ns};
    if (routed_) work.first_link = take_first_link(subnet_, route_, work.chunk, ready_ns);
    link_free_ns_ = work.first_link.end_ns;
    work.stage = Stage::queued;
    work.due_ns = work.first_link.start_ns;
    if (routed_) count_wait(subnet_, route_, work.due_ns - ready_ns);
    if (work.due_ns <= now + kAheadNs) leave_first_link(work);
}

void LocalQp::leave_first_link(SendWork& work) {
    work.stage = Stage::on_the_way;
    work.due_ns = work.first_link.end_ns;
    if (routed_) work.due_ns = take_other_links(subnet_, route_, work.chunk, work.first_link);
}

// --- at the responder ----------------------------------------------------------------------------------------------

bool LocalQp::execute_next(std::int64_t now, bool posting) {
    if (executed_ == sent_ || failing_) return false;
    SendWork& work = at(executed_);
    if (work.stage != Stage::on_the_way || work.due_ns > now) return false;
    if (posting && work.bytes > kInlineBytes) return false;
    execute(work, now);
    return true;
}

void LocalQp::execute(SendWork& work, std::int64_t now) {
    in_flight_bytes_ -= work.chunk;
    if (work.status != IBV_WC_SUCCESS) return finish(work, work.status, now);
    if (is_late(work)) return on_lost(work, now);  // a repetition of it
    const bool datagram = shared_.type == IBV_QPT_UD;
    Strike found;
    const bool ruled = subnet_.header().faults.load(std::memory_order_relaxed) != 0;
    if (ruled) found = strike_of(datagram ? work.to.route : route_, work);
    const Strike& strike = ruled ? found : kNoStrike;
    if (strike.sender != Mute::no) shared_.mute.store(strike.sender, std::memory_order_relaxed);
    if (datagram) return execute_datagram(work, strike);
    if (shared_.type == IBV_QPT_UC) return execute_unreliable(work, strike);
    execute_reliable(work, strike, now);
}

Struck LocalQp::struck(const SendWork& work) const {
    const bool ends = is_read(work.opcode) || work.moved + work.chunk == work.bytes;
    const std::uint32_t to = shared_.type == IBV_QPT_UD ? work.to_qp : shared_.destination;
    return {shared_.number, to, shared_.type, work.opcode, ends};
}

Strike LocalQp::strike_of(const Route& route, const SendWork& work) const {
    return route.leads_somewhere() ? consult_faults(subnet_, route, struck(work)) : kNoStrike;
}

// Decides whether the chunk that is due arrives (faults, losses, links that are down), and counts it.
bool LocalQp::arrives(const Route& route, const SendWork& work, std::uint32_t mtu, const Strike& strike) const {
    PortCounters& sender = subnet_.ports()[route.from].counters;
    const std::uint32_t packets = packets_of(work.chunk, mtu);
    const Slot& first = work.first_link;
    if (!route.leads_somewhere() ||
        !survives(subnet_, route, first.start_ns, first.end_ns - first.start_ns, work.due_ns)) {
        sender.discards.fetch_add(packets, std::memory_order_relaxed);
        return false;
    }
    count(subnet_, route, work.chunk, packets);
    if (strike.corrupt) subnet_.ports()[route.to].counters.symbol_errors.fetch_add(1, std::memory_order_relaxed);
    if (!strike.is_lost() && !is_lost(subnet_, route, packets)) return true;
    sender.discards.fetch_add(1, std::memory_order_relaxed);
    return false;
}

void LocalQp::execute_datagram(SendWork& work, const Strike& strike) {
    const Route& route = work.to.route;
    Buffers local;
    bool good = find_local(subnet_, shared_, work, work.bytes, 0, local);
    // A datagram that another rule loses is not late.
    const std::int64_t late_ns = strike.is_lost() ? 0 : strike.reorder ? kOvertakenNs : strike.late_ns;
    if (good && route.leads_somewhere() && (late_ns > 0 || strike.twice))
        send_again_later(work, late_ns > 0 ? late_ns : kSecondNs);
    if (good && late_ns > 0) return finish(work, IBV_WC_SUCCESS, work.first_link.end_ns);
    if (good && route.leads_somewhere() && arrives(route, work, 4096, strike)) {
        const Arrival arrival{shared_.number, shared_, route, work, work.chunk, 0, false, strike, notices_};
        good = without_lock([&] { return deliver_datagram(subnet_, client_.process(), arrival); });
    }
    finish(work, good ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR, work.first_link.end_ns);
}

// A datagram, or its double, that arrives later than others. Its sender does not know.
void LocalQp::send_again_later(const SendWork& work, std::int64_t delay_ns) {
    std::unique_ptr<LateMessage> message = capture(subnet_, shared_, work.to.route, work);
    if (message == nullptr) return;
    message->due_ns = work.due_ns + delay_ns;
    call_ |= client_.send_late(std::move(message));
}

void LocalQp::execute_unreliable(SendWork& work, const Strike& strike) {
    Answer answer = Answer::none;
    if (routed_ && arrives(route_, work, shared_.path_mtu_bytes, strike)) {
        const Arrival arrival{shared_.number, shared_, route_, work, work.chunk, 0, false, strike, notices_};
        answer = without_lock([&] { return deliver(subnet_, client_.process(), arrival); });
    }
    work.moved += work.chunk;
    if (answer == Answer::local_protection) return finish(work, IBV_WC_LOC_PROT_ERR, work.first_link.end_ns);
    // After the loss of a part the message is not delivered, so its remaining chunks are not sent.
    if (answer != Answer::ack || work.moved == work.bytes) return finish(work, IBV_WC_SUCCESS, work.first_link.end_ns);
    send_chunk(work, link_free_ns_, now_ns());
}

void LocalQp::execute_reliable(SendWork& work, const Strike& strike, std::int64_t now) {
    if (!routed_ || !arrives(route_, work, shared_.path_mtu_bytes, strike)) return on_lost(work, now);
    if (strike.late_ns > 0 && late_ == nullptr) {
        late_ = capture(subnet_, shared_, route_, work);
        late_by_ns_ = strike.late_ns;
        return on_lost(work, now);
    }
    const Arrival arrival{shared_.number, shared_, route_, work, work.chunk, reads_in_flight_, false, strike, notices_};
    const bool heard_so_far = hears();
    const Answer answer = without_lock([&] { return deliver(subnet_, client_.process(), arrival); });
    // The receiver may have exited after acknowledging: if answers arrived before, this one did.
    const bool heard = !strike.lose_ack && (hears() || (heard_so_far && !has_peer()));
    if (answer == Answer::ack && strike.swallow) return on_swallowed(work, strike);
    if (answer == Answer::ack && strike.cut) return on_cut(work, strike, now);
    if (answer != Answer::local_protection && !heard) return on_lost(work, now);
    if (answer != Answer::ack) return on_answer(work, answer, now);
    if (strike.reorder && is_read(work.opcode)) work.due_ns += kOvertakenNs;
    on_acknowledged(work);
}

// The request was executed, but its acknowledgement is lost, and perhaps the path dies now. Until the timer expires,
// later requests are executed, too; the acknowledgement of one of them would include this one.
void LocalQp::on_cut(SendWork& work, const Strike& strike, std::int64_t now) {
    if (strike.cut_now) {
        const Route route = route_;
        without_lock([&] {
            cut_off(subnet_, strike.cut_scope, strike.cut_target, route);
            return true;
        });
    }
    const std::int64_t wait_ns = timeout_ns();
    work.moved += work.chunk;
    finish(work, IBV_WC_SUCCESS, wait_ns == Agenda::kNever ? wait_ns : now + wait_ns);
    work.heard = Heard::lost;
    ++unheard_;
}

// The responder's HCA has acknowledged the request, and perhaps fails now, without having delivered it.
void LocalQp::on_swallowed(SendWork& work, const Strike& strike) {
    if (strike.swallow_now) {
        const std::uint32_t hca = subnet_.ports()[route_.to].hca;
        without_lock([&] {
            set_hca(subnet_, hca, false);
            return true;
        });
    }
    on_acknowledged(work);
    work.heard = Heard::certain;
}

// An acknowledgement includes all earlier requests (InfiniBand 9.7.5.1.2: coalesced acknowledge messages).
void LocalQp::acknowledge_earlier(std::int64_t due_ns) {
    for (std::uint32_t mark = head_; mark != executed_ && unheard_ > 0; ++mark) {
        SendWork& work = at(mark);
        if (work.heard != Heard::lost) continue;
        work.heard = Heard::by_path;
        work.due_ns = due_ns;
        --unheard_;
    }
}

void LocalQp::on_acknowledged(SendWork& work) {
    if (unheard_ > 0) acknowledge_earlier(work.due_ns + latency_ns(subnet_, back_));
    retries_left_ = retry_count_;
    rnr_left_ = rnr_retry_;
    work.moved += work.chunk;
    if (is_read(work.opcode)) {
        responding_.push_back(executed_);
        ++executed_;
        return respond_chunk(work, work.due_ns);
    }
    if (work.moved < work.bytes) return send_chunk(work, std::max(link_free_ns_, work.first_link.end_ns), now_ns());
    if (traces_messages_) trace_message(TraceKind::message_arrived, work, IBV_WC_SUCCESS);
    finish(work, IBV_WC_SUCCESS, work.due_ns + latency_ns(subnet_, back_));
}

// Finishes the request at the mark `executed_`, or a read that was responding.
void LocalQp::finish(SendWork& work, ibv_wc_status status, std::int64_t due_ns) {
    if (is_read_or_atomic(work.opcode) && work.stage != Stage::done && reads_in_flight_ > 0) --reads_in_flight_;
    if (work.heard == Heard::lost) --unheard_;
    work.heard = Heard::by_path;
    work.status = status;
    work.stage = Stage::done;
    work.due_ns = due_ns;
    failing_ |= status != IBV_WC_SUCCESS;
    std::erase_if(responding_, [&](std::uint32_t mark) { return &at(mark) == &work; });
    if (&work == &at(executed_)) ++executed_;
}

// --- the response of a read ----------------------------------------------------------------------------------------
//
// The response goes on if a later request fails meanwhile: requests complete in order, so the failure is reported after it.

void LocalQp::respond_chunk(SendWork& work, std::int64_t ready_ns) {
    work.stage = Stage::responding;
    work.chunk = std::min(work.bytes - work.moved, chunk_bytes(subnet_, back_));
    work.first_link = take_first_link(subnet_, back_, work.chunk, ready_ns);
    count_wait(subnet_, back_, work.first_link.start_ns - ready_ns);
    work.due_ns = take_other_links(subnet_, back_, work.chunk, work.first_link);
}

bool LocalQp::respond_next(std::int64_t now) {
    const auto next = std::find_if(responding_.begin(), responding_.end(),
                                   [&](std::uint32_t mark) { return at(mark).due_ns <= now; });
    if (next == responding_.end()) return false;
    SendWork& work = at(*next);
    if (!arrives(back_, work, shared_.path_mtu_bytes, kNoStrike)) {
        on_lost(work, now);
        return true;
    }
    const Arrival arrival{shared_.number,   shared_, route_,    work,    work.chunk,
                          reads_in_flight_, true,    kNoStrike, notices_};
    const Answer answer = without_lock([&] { return deliver(subnet_, client_.process(), arrival); });
    if (answer != Answer::ack) {
        on_answer(work, answer, now);
        return true;
    }
    work.moved += work.chunk;
    if (work.moved < work.bytes) {
        respond_chunk(work, work.first_link.end_ns);
        return true;
    }
    if (traces_messages_) trace_message(TraceKind::message_arrived, work, IBV_WC_SUCCESS);
    finish(work, IBV_WC_SUCCESS, work.due_ns);
    return true;
}

// --- completions ---------------------------------------------------------------------------------------------------

// If the sender sleeps until its completion, complete on arrival of the message when the acknowledgement takes no
// longer than the engine's thread would sleep. Otherwise an answer to the message could arrive before the thread wakes
// up.
bool LocalQp::is_due_for_sleepers(std::int64_t due_ns, std::int64_t now) const {
    return due_ns - now <= Client::kQuantumNs && is_armed(subnet_, shared_.send_cq);
}

// True if a part of the path back went down before the acknowledgement had passed it.
bool LocalQp::is_acknowledgement_lost(const SendWork& work) const {
    if (subnet_.header().last_change_ns.load(std::memory_order_relaxed) < work.posted_ns) return false;
    if (shared_.type != IBV_QPT_RC || work.status != IBV_WC_SUCCESS || is_read(work.opcode)) return false;
    if (work.heard == Heard::certain) return false;
    if (!back_.leads_somewhere()) return false;
    return !survives(subnet_, back_, work.due_ns - latency_ns(subnet_, back_), 0, work.due_ns);
}

bool LocalQp::complete_next(std::int64_t now) {
    if (head_ == executed_) return false;
    SendWork& work = at(head_);
    if (work.stage != Stage::done || (work.due_ns > now && !is_due_for_sleepers(work.due_ns, now))) return false;
    if (work.heard == Heard::lost) {
        on_lost(work, work.due_ns - timeout_ns());
        return true;
    }
    if (is_acknowledgement_lost(work)) {
        on_lost(work, work.due_ns);
        return true;
    }
    const bool failed = work.status != IBV_WC_SUCCESS;
    if (traces_messages_) trace_message(TraceKind::message_ended, work, work.status);
    if (failed || capacity_.all_signaled || (work.flags & IBV_SEND_SIGNALED) != 0) emit(head_, work.status);
    if (!failed) {
        shared_.sent_messages.fetch_add(1, std::memory_order_relaxed);
        shared_.sent_bytes.fetch_add(work.bytes, std::memory_order_relaxed);
        if (routed_) subnet_.ports()[route_.from].counters.sent_messages.fetch_add(1, std::memory_order_relaxed);
    }
    ++head_;
    if (!failed) return true;
    // An error stops a reliable QP completely, but only the send queue of an unreliable one (InfiniBand 10.3.1).
    if (shared_.type == IBV_QPT_RC) fail(subnet_, shared_, -1);
    else shared_.state.store(IBV_QPS_SQE, std::memory_order_release);
    return true;
}

void LocalQp::drain() {
    if (state() != IBV_QPS_SQD || head_ != begun_) return;
    drain_event_ = false;
    raise_for(subnet_, shared_, IBV_EVENT_SQ_DRAINED);
}

}  // namespace coop::fabric
