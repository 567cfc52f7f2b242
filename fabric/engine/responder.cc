// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/engine/responder.h"

#include <arpa/inet.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "fabric/engine/completion.h"
#include "fabric/engine/landing.h"
#include "fabric/engine/opcode.h"
#include "fabric/engine/partition.h"
#include "fabric/shm/process.h"
#include "fabric/shm/receive_ring.h"
#include "fabric/shm/trace.h"

namespace coop::fabric {
namespace {

constexpr std::uint32_t kPsnMask = 0xffffff;
constexpr std::size_t kGrhBytes = 40;

// --- receives -------------------------------------------------------------------------------------------------------

ReceiveRequest* front(const Segment& subnet, ReceiveRing& ring) {
    const std::uint32_t taken = ring.taken.load(std::memory_order_relaxed);
    if (ring.ring == 0 || taken == ring.put.load(std::memory_order_acquire)) return nullptr;
    return &receive_at(subnet, ring, taken);
}

bool take_from(const Segment& subnet, ReceiveRing& ring, ReceiveRequest& receive) {
    const ReceiveRequest* next = front(subnet, ring);
    if (next == nullptr) return false;
    receive.wr_id = next->wr_id;
    receive.sges = std::min<std::uint32_t>({next->sges, ring.max_sges, kMaxSges});
    std::copy_n(next->sge, receive.sges, receive.sge);
    ring.taken.fetch_add(1, std::memory_order_release);
    return true;
}

bool take_from_srq(const Segment& subnet, std::uint32_t index, ReceiveRequest& receive) {
    SharedReceiveQueue& srq = subnet.shared_receive_queues()[index];
    std::uint32_t left;
    {
        Guard guard(srq.lock);
        if (!Segment::in_use(srq) || !take_from(subnet, srq.receives, receive)) return false;
        left = srq.receives.put.load(std::memory_order_acquire) - srq.receives.taken.load(std::memory_order_relaxed);
    }
    // The limit event is raised once, when fewer receives than the limit are left (InfiniBand 10.2.9.1).
    std::uint32_t limit = srq.limit.load(std::memory_order_acquire);
    if (limit != 0 && left < limit && srq.limit.compare_exchange_strong(limit, 0))
        raise(subnet, srq.context, {IBV_EVENT_SRQ_LIMIT_REACHED, index, srq.used.load(std::memory_order_relaxed)});
    return true;
}

bool hold_receive(const Segment& subnet, QueuePair& qp) {
    if (qp.held != 0) return true;
    const bool taken = qp.srq == kNone ? take_from(subnet, qp.receives, qp.held_receive)
                                       : take_from_srq(subnet, qp.srq, qp.held_receive);
    qp.held = taken ? 1 : 0;
    return taken;
}

std::uint64_t room_in(const ReceiveRequest& receive) {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < receive.sges; ++i) bytes += receive.sge[i].bytes;
    return bytes;
}

KeyError find_buffers(const Segment& subnet, const QueuePair& qp, std::span<const Sge> sges, std::uint32_t access,
                      Buffers& buffers) {
    for (const Sge& sge : sges) {
        if (sge.bytes == 0) continue;
        if ((sge.lkey & 1) != 0) return KeyError::key;  // an rkey
        const KeyError error = look_up(subnet, qp.hca, qp.pd, sge.lkey, sge.address, sge.bytes, access,
                                       buffers.range[buffers.count]);
        if (error != KeyError::none) return error;
        ++buffers.count;
    }
    return KeyError::none;
}

bool put_receive_completion(const Segment& subnet, QueuePair& qp, const ReceiveRequest& receive, Completion completion,
                            Notices& notices) {
    completion.wr_id = receive.wr_id;
    completion.qp_number = qp.number;
    completion.time_ns = now_ns();
    if (put_completion(subnet, qp.receive_cq, completion, notices)) return true;
    fail(subnet, qp, IBV_EVENT_QP_FATAL);
    return false;
}

void complete_receive(const Segment& subnet, QueuePair& qp, const Arrival& arrival, std::uint64_t bytes,
                      std::uint32_t flags) {
    const SendWork& work = arrival.work;
    Completion completion{};
    completion.opcode = is_send(work.opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
    completion.bytes = static_cast<std::uint32_t>(bytes);
    completion.flags = flags;
    if (has_imm(work.opcode)) {
        completion.flags |= IBV_WC_WITH_IMM;
        completion.imm = work.imm;
    }
    completion.source_qp = arrival.source_qp;
    const Port& from = subnet.ports()[arrival.route.from];
    completion.slid = from.link_layer == IBV_LINK_LAYER_ETHERNET ? std::uint16_t{0} : arrival.route.slid;
    completion.sl = work.to.path.sl;
    const Port& to = subnet.ports()[arrival.route.to];
    completion.dlid_path_bits = static_cast<std::uint8_t>(arrival.route.dlid & ((1u << to.lmc) - 1));
    completion.solicited = (work.flags & IBV_SEND_SOLICITED) != 0;
    put_receive_completion(subnet, qp, qp.held_receive, completion, arrival.notices);
    qp.held = 0;
}

void fail_receive(const Segment& subnet, QueuePair& qp, ibv_wc_status status, Notices& notices) {
    Completion completion{};
    completion.status = status;
    completion.opcode = IBV_WC_RECV;
    if (qp.held != 0) put_receive_completion(subnet, qp, qp.held_receive, completion, notices);
    qp.held = 0;
}

// --- copying --------------------------------------------------------------------------------------------------------

// Marks the regions of a list as in use by a copy, then checks that they still exist.
class Pinned {
public:
    Pinned(const Segment& subnet, std::uint32_t process, std::span<const Range> ranges) {
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            if (i > 0 && ranges[i].region == ranges[i - 1].region) continue;
            marks_[i].emplace(subnet, process, ranges[i].region);
            valid_ &= Segment::in_use(subnet.memory_regions()[ranges[i].region]);
        }
    }
    bool is_valid() const { return valid_; }

private:
    std::optional<AtWork> marks_[kMaxSges];
    bool valid_ = true;
};

Answer to_answer(CopyResult result) {
    switch (result) {
    case CopyResult::done: return Answer::ack;
    case CopyResult::local_fault: return Answer::local_protection;
    case CopyResult::remote_fault: return Answer::operation;
    case CopyResult::gone: return Answer::none;
    }
    return Answer::none;
}

Answer put(const Segment& subnet, std::uint32_t process, const Arrival& arrival, const QueuePair& qp,
           std::span<const Range> where) {
    if (arrival.chunk == 0) return Answer::ack;
    Buffers local;
    if (!find_local(subnet, arrival.requester, arrival.work, arrival.work.bytes, 0, local))
        return Answer::local_protection;
    const Buffers from = slice(local.all(), arrival.work.moved, arrival.chunk);
    const Buffers to = slice(where, arrival.work.moved, arrival.chunk);
    const Pinned pinned(subnet, process, to.all());
    if (!pinned.is_valid()) return Answer::access;
    return to_answer(land(subnet.hcas()[qp.hca], subnet.processes()[qp.process].pid, from.all(), to.all(),
                          arrival.requester.path_mtu_bytes));
}

// --- operations ----------------------------------------------------------------------------------------------------

// An access violation: a reliable responder fails, and its owner gets an event (InfiniBand 9.9.3.2). An unreliable one
// ignores the request (9.8.2).
Answer refuse_access(const Segment& subnet, QueuePair& qp, const Arrival& arrival) {
    if (qp.type != IBV_QPT_RC) return Answer::none;
    trace(subnet, TraceKind::access_error, arrival.source_qp, qp.number, arrival.work.rkey,
          arrival.work.remote_address);
    fail_receive(subnet, qp, IBV_WC_WR_FLUSH_ERR, arrival.notices);
    fail(subnet, qp, IBV_EVENT_QP_ACCESS_ERR);
    return Answer::access;
}

// The QP does not permit the request, or the request is malformed (InfiniBand 9.7.4.1: a class C error, NAK invalid
// request).
Answer refuse_request(const Segment& subnet, QueuePair& qp) {
    if (qp.type != IBV_QPT_RC) return Answer::none;
    fail(subnet, qp, IBV_EVENT_QP_REQ_ERR);
    return Answer::invalid_request;
}

KeyError find_remote(const Segment& subnet, const QueuePair& qp, const SendWork& work, std::uint32_t access,
                     Range& range) {
    if ((work.rkey & 1) == 0) return KeyError::key;  // an lkey
    return look_up(subnet, qp.hca, qp.pd, work.rkey, work.remote_address, work.bytes, access, range);
}

Answer do_send(const Segment& subnet, std::uint32_t process, QueuePair& qp, const Arrival& arrival) {
    if (arrival.work.bytes > room_in(qp.held_receive)) {
        fail_receive(subnet, qp, IBV_WC_LOC_LEN_ERR, arrival.notices);
        fail(subnet, qp, -1);
        return Answer::invalid_request;
    }
    Buffers buffers;
    Answer answer = Answer::operation;
    const std::span<const Sge> sges{qp.held_receive.sge, qp.held_receive.sges};
    if (find_buffers(subnet, qp, sges, IBV_ACCESS_LOCAL_WRITE, buffers) == KeyError::none)
        answer = put(subnet, process, arrival, qp, buffers.all());
    if (answer == Answer::operation || answer == Answer::access) {
        fail_receive(subnet, qp, IBV_WC_LOC_PROT_ERR, arrival.notices);
        fail(subnet, qp, -1);
        return Answer::operation;
    }
    return answer;
}

Answer do_write(const Segment& subnet, std::uint32_t process, QueuePair& qp, const Arrival& arrival) {
    if ((qp.access & IBV_ACCESS_REMOTE_WRITE) == 0) return refuse_request(subnet, qp);
    if (arrival.work.bytes == 0) return Answer::ack;  // the key is not checked (InfiniBand 9.4.3.1)
    Range range;
    if (find_remote(subnet, qp, arrival.work, IBV_ACCESS_REMOTE_WRITE, range) != KeyError::none)
        return refuse_access(subnet, qp, arrival);
    const Answer answer = put(subnet, process, arrival, qp, {&range, 1});
    return answer == Answer::operation || answer == Answer::access ? refuse_access(subnet, qp, arrival) : answer;
}

Answer do_read(const Segment& subnet, std::uint32_t process, QueuePair& qp, const Arrival& arrival) {
    if ((qp.access & IBV_ACCESS_REMOTE_READ) == 0) return refuse_request(subnet, qp);
    const SendWork& work = arrival.work;
    if (work.bytes == 0) return Answer::ack;
    Range range;
    if (find_remote(subnet, qp, work, IBV_ACCESS_REMOTE_READ, range) != KeyError::none)
        return refuse_access(subnet, qp, arrival);
    Buffers local;
    if (!find_local(subnet, arrival.requester, work, work.bytes, IBV_ACCESS_LOCAL_WRITE, local))
        return Answer::local_protection;
    const Buffers to = slice(local.all(), work.moved, arrival.chunk);
    const Buffers from = slice({&range, 1}, work.moved, arrival.chunk);
    const Pinned pinned(subnet, process, from.all());
    if (!pinned.is_valid()) return refuse_access(subnet, qp, arrival);
    const Answer answer = to_answer(copy_from(subnet.processes()[qp.process].pid, to.all(), from.all()));
    return answer == Answer::operation ? refuse_access(subnet, qp, arrival) : answer;
}

// Atomic among the QPs of the HCA (IBV_ATOMIC_HCA), but not with respect to the host's CPUs.
CopyResult swap_word(const Segment& subnet, const QueuePair& qp, const SendWork& work, const Range& range,
                     std::uint64_t& before) {
    const std::int32_t pid = subnet.processes()[qp.process].pid;
    Guard guard(subnet.hcas()[qp.hca].atomics);
    const Range here{reinterpret_cast<std::uint64_t>(&before), sizeof before, kNone};
    if (const CopyResult result = copy_from(pid, {&here, 1}, {&range, 1}); result != CopyResult::done) return result;
    std::uint64_t after = before + work.compare_add;
    if (work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        if (before != work.compare_add) return CopyResult::done;
        after = work.swap;
    }
    const Range there{reinterpret_cast<std::uint64_t>(&after), sizeof after, kNone};
    return copy_to(pid, {&there, 1}, {&range, 1});
}

Answer give_back(const Segment& subnet, const Arrival& arrival, std::uint64_t value) {
    Buffers local;
    if (!find_local(subnet, arrival.requester, arrival.work, sizeof value, IBV_ACCESS_LOCAL_WRITE, local))
        return Answer::local_protection;
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    for (const Range& range : local.all()) {
        std::memcpy(reinterpret_cast<void*>(range.address), from, range.bytes);
        from += range.bytes;
    }
    return Answer::ack;
}

Answer do_atomic(const Segment& subnet, std::uint32_t process, QueuePair& qp, const Arrival& arrival) {
    const SendWork& work = arrival.work;
    if ((qp.access & IBV_ACCESS_REMOTE_ATOMIC) == 0) return refuse_request(subnet, qp);
    if (work.remote_address % sizeof(std::uint64_t) != 0) return refuse_request(subnet, qp);
    Range range;
    if (find_remote(subnet, qp, work, IBV_ACCESS_REMOTE_ATOMIC, range) != KeyError::none)
        return refuse_access(subnet, qp, arrival);
    const Pinned pinned(subnet, process, {&range, 1});
    if (!pinned.is_valid()) return refuse_access(subnet, qp, arrival);
    std::uint64_t before = 0;
    const Answer answer = to_answer(swap_word(subnet, qp, work, range, before));
    if (answer == Answer::operation) return refuse_access(subnet, qp, arrival);
    if (answer != Answer::ack) return answer;
    qp.atomic_results[qp.next_atomic_result++ % kMaxReadsInFlight] = {work.first_psn, before};
    if (arrival.late) return Answer::ack;
    return give_back(subnet, arrival, before);
}

// Answers a request that has been executed before but whose acknowledgement was lost (InfiniBand 9.7.5.1.2).
Answer repeat(const Segment& subnet, std::uint32_t process, QueuePair& qp, const Arrival& arrival) {
    qp.duplicates.fetch_add(1, std::memory_order_relaxed);
    if (is_read(arrival.work.opcode)) return do_read(subnet, process, qp, arrival);
    if (!is_atomic(arrival.work.opcode)) return Answer::ack;
    for (const AtomicResult& result : qp.atomic_results)
        if (result.psn == arrival.work.first_psn) return give_back(subnet, arrival, result.value);
    return Answer::none;
}

Answer execute(const Segment& subnet, std::uint32_t process, QueuePair& qp, const Arrival& arrival) {
    const ibv_wr_opcode opcode = arrival.work.opcode;
    if (is_read(opcode)) return do_read(subnet, process, qp, arrival);
    if (is_atomic(opcode)) return do_atomic(subnet, process, qp, arrival);
    if (takes_receive(opcode) && (arrival.strike.not_ready || !hold_receive(subnet, qp))) return Answer::not_ready;
    return is_write(opcode) ? do_write(subnet, process, qp, arrival) : do_send(subnet, process, qp, arrival);
}

// --- state, paths, migration ---------------------------------------------------------------------------------------

bool can_receive(std::uint32_t state) {
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

bool is_gid_of(const Port& port, const std::uint8_t (&gid)[16]) {
    return std::any_of(port.gids, port.gids + port.gid_count,
                       [&](const auto& own) { return std::memcmp(own, gid, sizeof gid) == 0; });
}

// True if the request came along this path of the responder: from the LID that the path leads to, to the LID from which
// it begins. On Ethernet the GIDs take their place.
bool is_path_of(const Segment& subnet, const QueuePair& qp, const Path& path, const Route& request) {
    if (path.port == 0) return false;
    const std::uint32_t number = subnet.hcas()[qp.hca].first_port + path.port - 1;
    if (number != request.to) return false;
    const Port& port = subnet.ports()[number];
    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) return is_gid_of(subnet.ports()[request.from], path.dgid);
    const std::uint32_t own_lid = port.route_lid | (path.source_path_bits & ((1u << port.lmc) - 1));
    return path.dlid == request.slid && own_lid == request.dlid;
}

// A connected QP drops requests that do not come along its path (InfiniBand 9.6.1: the LIDs in the header of a packet
// must be those of the connection). An armed one also takes those of a requester that has migrated.
bool is_on_our_path(const Segment& subnet, const QueuePair& qp, const Arrival& arrival) {
    if (is_path_of(subnet, qp, qp.primary, arrival.route)) return true;
    if (qp.migration.load(std::memory_order_relaxed) == IBV_MIG_ARMED &&
        arrival.requester.migration.load(std::memory_order_relaxed) == IBV_MIG_MIGRATED)
        return true;  // follow_migration() looks at the alternate path
    trace(subnet, TraceKind::wrong_path, arrival.source_qp, qp.number, arrival.route.slid);
    return false;
}

// The responder's half of automatic path migration (InfiniBand 17.2.8.1). Returns false if the request must not be
// answered.
bool follow_migration(const Segment& subnet, QueuePair& qp, const Arrival& arrival) {
    const auto mine = static_cast<ibv_mig_state>(qp.migration.load(std::memory_order_relaxed));
    const auto theirs = static_cast<ibv_mig_state>(arrival.requester.migration.load(std::memory_order_acquire));
    if (theirs == IBV_MIG_MIGRATED && mine == IBV_MIG_ARMED) {
        if (is_path_of(subnet, qp, qp.primary, arrival.route)) return true;  // the path has not changed, seen from here
        if (!is_path_of(subnet, qp, qp.alternate, arrival.route)) {
            trace(subnet, TraceKind::migration_failed, qp.number, arrival.source_qp, arrival.route.slid);
            raise_for(subnet, qp, IBV_EVENT_PATH_MIG_ERR);
            return false;
        }
        std::swap(qp.primary, qp.alternate);
        qp.path_epoch.fetch_add(1, std::memory_order_release);
        qp.migration.store(IBV_MIG_MIGRATED, std::memory_order_release);
        qp.migrations.fetch_add(1, std::memory_order_relaxed);
        trace(subnet, TraceKind::migrated, qp.number, arrival.source_qp, arrival.route.slid, 1);
        raise_for(subnet, qp, IBV_EVENT_PATH_MIG);
        return true;
    }
    // Both sides have asked to rearm, or are armed: the request and its acknowledgement tell each side about the other.
    if (mine != IBV_MIG_MIGRATED && theirs != IBV_MIG_MIGRATED && (mine == IBV_MIG_REARM || theirs == IBV_MIG_REARM)) {
        qp.migration.store(IBV_MIG_ARMED, std::memory_order_release);
        arrival.requester.migration.store(IBV_MIG_ARMED, std::memory_order_release);
        trace(subnet, TraceKind::armed, qp.number, arrival.source_qp);
    }
    return true;
}

// The HCA acknowledges the message although it will not reach memory or the receive queue. It needs a receive for that.
Answer swallow(const Segment& subnet, QueuePair& qp, const Arrival& arrival) {
    if (takes_receive(arrival.work.opcode) && !hold_receive(subnet, qp)) return Answer::not_ready;
    qp.expected_psn = (arrival.work.first_psn + arrival.work.packets) & kPsnMask;
    return Answer::ack;
}

void note_first_request(const Segment& subnet, QueuePair& qp) {
    if (qp.established != 0 || qp.state.load(std::memory_order_relaxed) != IBV_QPS_RTR) return;
    qp.established = 1;
    raise_for(subnet, qp, IBV_EVENT_COMM_EST);
}

bool is_ours(const Segment& subnet, const QueuePair& qp, const Arrival& arrival, std::uint32_t type) {
    return Segment::in_use(qp) && qp.mute.load(std::memory_order_relaxed) == Mute::no && qp.type == type &&
           qp.hca == subnet.ports()[arrival.route.to].hca && can_receive(qp.state.load(std::memory_order_acquire)) &&
           is_alive(subnet.processes()[qp.process]);
}

// A packet of another partition is dropped and counted at the port where it arrived (InfiniBand 10.9.4). A requester
// that has migrated uses the P_Key of its alternate path.
bool is_of_its_partition(const Segment& subnet, const QueuePair& qp, const Arrival& arrival) {
    const std::uint16_t key = pkey_of(subnet, arrival.requester, arrival.requester.primary);
    if (keys_match(key, pkey_of(subnet, qp, qp.primary))) return true;
    if (qp.alternate.port != 0 && keys_match(key, pkey_of(subnet, qp, qp.alternate))) return true;
    subnet.ports()[arrival.route.to].counters.bad_pkeys.fetch_add(1, std::memory_order_relaxed);
    return false;
}

// Sequence numbers are modulo 2^24; the half of the numbers before `expected` counts as past.
bool is_past(std::uint32_t psn, std::uint32_t expected) { return ((psn - expected) & kPsnMask) >= 0x800000; }

void count_message(const Segment& subnet, QueuePair& qp, const Arrival& arrival) {
    qp.received_messages.fetch_add(1, std::memory_order_relaxed);
    qp.received_bytes.fetch_add(arrival.work.bytes, std::memory_order_relaxed);
    subnet.ports()[arrival.route.to].counters.received_messages.fetch_add(1, std::memory_order_relaxed);
}

// The receiving QP, or its process, no longer works after this strike, so it does not get the message.
bool ends_receiver(const Strike& strike) {
    return strike.kill_qp || strike.kill_process || strike.receiver != Mute::no;
}

void strike_down(const Segment& subnet, QueuePair& qp, const Strike& strike) {
    if (strike.receiver != Mute::no) qp.mute.store(strike.receiver, std::memory_order_relaxed);
    if (strike.kill_process) {
        kill(subnet.processes()[qp.process].pid, SIGKILL);
        fail(subnet, qp, -1);  // on a busy machine the process may live longer than a retry takes
    }
    if (strike.kill_qp) fail(subnet, qp, IBV_EVENT_QP_FATAL);
}

Answer deliver_locked(const Segment& subnet, std::uint32_t process, QueuePair& qp, const Arrival& arrival) {
    const SendWork& work = arrival.work;
    if (!is_ours(subnet, qp, arrival, arrival.requester.type) || qp.destination != arrival.source_qp)
        return Answer::none;
    if (!is_of_its_partition(subnet, qp, arrival)) return Answer::none;
    if (!is_on_our_path(subnet, qp, arrival)) return Answer::none;
    if (ends_receiver(arrival.strike)) {
        strike_down(subnet, qp, arrival.strike);
        return Answer::none;
    }
    const bool reliable = qp.type == IBV_QPT_RC;
    if (arrival.late && work.first_psn != qp.expected_psn) return Answer::none;
    if (!arrival.late && !follow_migration(subnet, qp, arrival)) return Answer::none;
    if (arrival.responding) return do_read(subnet, process, qp, arrival);
    if (reliable && work.first_psn != qp.expected_psn)
        return is_past(work.first_psn, qp.expected_psn) ? repeat(subnet, process, qp, arrival) : Answer::none;
    if (reliable && is_read_or_atomic(work.opcode) && arrival.reads_in_flight > qp.max_dest_rd_atomic)
        return refuse_request(subnet, qp);
    note_first_request(subnet, qp);
    if (arrival.strike.swallow) return swallow(subnet, qp, arrival);
    const Answer answer = execute(subnet, process, qp, arrival);
    const bool whole = is_read(work.opcode) || work.moved + arrival.chunk == work.bytes;
    if (answer != Answer::ack || !whole) return answer;
    qp.expected_psn = (work.first_psn + work.packets) & kPsnMask;
    if (takes_receive(work.opcode)) complete_receive(subnet, qp, arrival, work.bytes, 0);
    count_message(subnet, qp, arrival);
    return Answer::ack;
}

// --- datagrams -----------------------------------------------------------------------------------------------------

// The first 40 bytes of a datagram's receive: the global routing header, or undefined (InfiniBand 8.3).
void write_grh(const Segment& subnet, const Arrival& arrival, std::byte (&grh)[kGrhBytes]) {
    std::memset(grh, 0, sizeof grh);
    if (arrival.work.to.path.is_global == 0) return;
    const std::uint16_t payload = htons(static_cast<std::uint16_t>(arrival.work.bytes));
    std::memcpy(grh + 4, &payload, sizeof payload);
    grh[6] = std::byte{0x1b};  // next header: InfiniBand transport
    const Path& path = arrival.work.to.path;
    const std::uint32_t word = htonl(6u << 28 | std::uint32_t{path.traffic_class} << 20 | (path.flow_label & 0xfffff));
    std::memcpy(grh, &word, sizeof word);
    grh[7] = std::byte{path.hop_limit};
    const Port& from = subnet.ports()[arrival.route.from];
    const std::uint32_t index = path.sgid_index < from.gid_count ? path.sgid_index : 0;
    std::memcpy(grh + 8, from.gids[index], 16);
    std::memcpy(grh + 24, path.dgid, 16);
}

// Returns false if the sender's buffers are invalid.
bool put_datagram(const Segment& subnet, std::uint32_t process, QueuePair& qp, const Arrival& arrival) {
    Buffers local, room;
    const SendWork& work = arrival.work;
    if (!find_local(subnet, arrival.requester, work, work.bytes, 0, local)) return false;
    const std::span<const Sge> sges{qp.held_receive.sge, qp.held_receive.sges};
    std::byte grh[kGrhBytes];
    write_grh(subnet, arrival, grh);
    Range from[kMaxSges + 1] = {{reinterpret_cast<std::uint64_t>(grh), sizeof grh, kNone}};
    std::copy(local.all().begin(), local.all().end(), from + 1);
    CopyResult result = CopyResult::remote_fault;
    if (find_buffers(subnet, qp, sges, IBV_ACCESS_LOCAL_WRITE, room) == KeyError::none) {
        const Buffers to = slice(room.all(), 0, work.bytes + kGrhBytes);
        const Pinned pinned(subnet, process, to.all());
        if (pinned.is_valid()) result = copy_to(subnet.processes()[qp.process].pid, {from, local.count + 1}, to.all());
    }
    if (result == CopyResult::done) {
        complete_receive(subnet, qp, arrival, work.bytes + kGrhBytes, work.to.path.is_global != 0 ? IBV_WC_GRH : 0);
        count_message(subnet, qp, arrival);
    } else if (result == CopyResult::remote_fault) {
        fail_receive(subnet, qp, IBV_WC_LOC_PROT_ERR, arrival.notices);
        fail(subnet, qp, -1);
    }
    return result != CopyResult::local_fault;
}

}  // namespace

Buffers slice(std::span<const Range> ranges, std::uint64_t offset, std::uint64_t bytes) noexcept {
    Buffers part;
    for (const Range& range : ranges) {
        if (bytes == 0) break;
        if (offset >= range.bytes) {
            offset -= range.bytes;
            continue;
        }
        const std::uint64_t n = std::min(range.bytes - offset, bytes);
        part.range[part.count++] = {range.address + offset, n, range.region};
        bytes -= n;
        offset = 0;
    }
    return part;
}

QueuePair* find_queue_pair(const Segment& subnet, std::uint32_t number) noexcept {
    const auto all = subnet.ever_used<QueuePair>(kQueuePairs);
    const std::uint32_t index = index_of_qp(number);
    return index < all.size() && all[index].number == number && Segment::in_use(all[index]) ? &all[index] : nullptr;
}

bool listens(const Segment& subnet, std::uint32_t number) noexcept {
    const QueuePair* qp = find_queue_pair(subnet, number);
    return qp != nullptr && qp->mute.load(std::memory_order_relaxed) == Mute::no &&
           can_receive(qp->state.load(std::memory_order_acquire));
}

bool find_local(const Segment& subnet, const QueuePair& requester, const SendWork& work, std::uint64_t bytes,
                std::uint32_t access, Buffers& buffers) noexcept {
    if ((work.flags & IBV_SEND_INLINE) != 0) {
        buffers.range[0] = {reinterpret_cast<std::uint64_t>(work.inline_at), bytes, kNone};
        buffers.count = 1;
        return true;
    }
    if (find_buffers(subnet, requester, {work.sge, work.sges}, access, buffers) != KeyError::none) return false;
    const Buffers part = slice(buffers.all(), 0, bytes);
    buffers = part;
    return true;
}

Answer deliver(const Segment& subnet, std::uint32_t process, const Arrival& arrival) noexcept {
    QueuePair* qp = find_queue_pair(subnet, arrival.requester.destination);
    if (qp == nullptr) return Answer::none;
    Guard guard(qp->lock);
    return deliver_locked(subnet, process, *qp, arrival);
}

bool deliver_datagram(const Segment& subnet, std::uint32_t process, const Arrival& arrival) noexcept {
    QueuePair* qp = find_queue_pair(subnet, arrival.work.to_qp);
    if (qp == nullptr) return true;
    Guard guard(qp->lock);
    if (!is_ours(subnet, *qp, arrival, IBV_QPT_UD) || !is_of_its_partition(subnet, *qp, arrival)) return true;
    if (qp->qkey != arrival.work.to_qkey) return true;
    strike_down(subnet, *qp, arrival.strike);
    if (ends_receiver(arrival.strike)) return true;
    if (!hold_receive(subnet, *qp)) return true;
    if (arrival.work.bytes + kGrhBytes > room_in(qp->held_receive)) {
        fail_receive(subnet, *qp, IBV_WC_LOC_LEN_ERR, arrival.notices);
        return true;
    }
    return put_datagram(subnet, process, *qp, arrival);
}

void raise_for(const Segment& subnet, const QueuePair& qp, ibv_event_type event) noexcept {
    const auto index = static_cast<std::uint32_t>(&qp - subnet.queue_pairs().data());
    raise(subnet, qp.context, {static_cast<std::uint32_t>(event), index, qp.used.load(std::memory_order_relaxed)});
}

void fail(const Segment& subnet, QueuePair& qp, int event) noexcept {
    if (qp.state.exchange(IBV_QPS_ERR, std::memory_order_acq_rel) == IBV_QPS_ERR) return;
    trace(subnet, TraceKind::qp_error, qp.number);
    if (event >= 0) raise_for(subnet, qp, static_cast<ibv_event_type>(event));
    Process& owner = subnet.processes()[qp.process];
    owner.attention.store(1, std::memory_order_release);
    wake(owner);
}

void flush_receives(const Segment& subnet, QueuePair& qp, Notices& notices) noexcept {
    fail_receive(subnet, qp, IBV_WC_WR_FLUSH_ERR, notices);
    if (qp.srq != kNone) return;
    ReceiveRequest receive;
    while (take_from(subnet, qp.receives, receive)) {
        Completion completion{};
        completion.status = IBV_WC_WR_FLUSH_ERR;
        completion.opcode = IBV_WC_RECV;
        put_receive_completion(subnet, qp, receive, completion, notices);
    }
}

}  // namespace coop::fabric
