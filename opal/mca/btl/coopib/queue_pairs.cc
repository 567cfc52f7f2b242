// SPDX-License-Identifier: BSD-3-Clause
#include "queue_pairs.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "coop/rail/verbs/rc.h"
#include "module.h"
#include "receive.h"

namespace coop::ib {
namespace {

constexpr std::uint32_t kMostReads = 64;        // send queue of a queue pair for reads
constexpr std::uint32_t kLeastSends = 8;        // smallest send queue of a queue pair
constexpr std::uint32_t kMostOwnReceives = 64;  // largest receive queue of a queue pair, if none is shared

bool post_receives(Module& m, std::uint32_t hca, std::uint32_t count, ibv_srq* srq, Rail* rail,
                   std::vector<std::unique_ptr<ReceiveBuffer>>& buffers) {
    rail::Hca* const own[] = {&m.hcas[hca]};  // no other HCA writes into these buffers
    const std::size_t each = (m.buffer_bytes() + 63) / 64 * 64;
    auto memory = std::make_shared<RegisteredMemory>();
    if (!memory->make(each * count, own)) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
        buffers.push_back(std::make_unique<ReceiveBuffer>());
        *buffers.back() = {memory, memory->data() + i * each, rail, srq};
        post_receive(m, *buffers.back());
    }
    return true;
}

// Whether a queue pair for reads, which rails can do without, leaves enough for rails: half of the HCA's queue pairs, which
// all processes of the node share; three quarters of the entries that a completion queue can have, and half of those that
// it has. Enlarges the completion queue for the latter.
bool leaves_enough(HcaUse& use, const rail::HcaCaps& caps, std::uint32_t sends) {
    const auto processes = static_cast<std::uint64_t>(opal_process_info.num_local_peers) + 1;
    const std::uint32_t needed = 2 * (use.cq_needed + sends);
    if ((use.queue_pairs + 1) * processes > caps.max_qp / 2 || 2 * needed > caps.max_cqe) return false;
    return needed <= static_cast<std::uint32_t>(use.cq->cqe) ||
           ibv_resize_cq(use.cq, static_cast<int>(std::min(std::bit_ceil(needed), caps.max_cqe))) == 0;
}

void not_used(const std::string& why) { opal_output(0, "btl/coopib: a rail is not used: %s", why.c_str()); }

// If a completion queue cannot grow, a new queue pair gets 1/kPartOfTheRest of the remaining entries, so that some are
// left for later ones.
constexpr std::uint32_t kPartOfTheRest = 8;

// Reserves entries of the completion queue for a queue pair: `wanted`, or at least `least` if the queue cannot grow.
// Returns the number reserved; 0 if the queue could overflow, which would end the job.
std::uint32_t make_room(Module& m, std::uint32_t hca, std::uint32_t wanted, std::uint32_t least) {
    HcaUse& use = m.uses[hca];
    const std::uint32_t needed = use.cq_needed + wanted, has = static_cast<std::uint32_t>(use.cq->cqe);
    std::uint32_t granted = wanted;
    if (needed > has) {
        const std::uint32_t most = m.hcas[hca].caps().max_cqe;
        const int error = needed > most
                              ? EINVAL
                              : ibv_resize_cq(use.cq, static_cast<int>(std::min(std::bit_ceil(needed), most)));
        if (error != 0)
            granted = has - use.cq_needed < least ? 0
                                                  : std::clamp((has - use.cq_needed) / kPartOfTheRest, least, wanted);
        if (granted == 0)
            not_used(m.hcas[hca].name() + " cannot enlarge its completion queue to " + std::to_string(needed) +
                     " entries: " + strerror(error));
    }
    use.cq_needed += granted;
    return granted;
}

rail::RcCaps caps_for(const Module& m, std::uint32_t hca) {
    const rail::HcaCaps& own = m.hcas[hca].caps();
    rail::RcCaps caps;
    caps.sends = std::min(static_cast<std::uint32_t>(m.given.send_depth), own.max_qp_wr);
    caps.receives = m.uses[hca].srq
                        ? 1
                        : std::min({static_cast<std::uint32_t>(m.given.receives), kMostOwnReceives, own.max_qp_wr});
    caps.inline_bytes = own.max_inline;
    return caps;
}

rail::RcTimes times_for(const Module& m, std::uint8_t timeout) {
    rail::RcTimes times;
    times.timeout = timeout;
    times.retries = static_cast<std::uint8_t>(m.given.retry_count);
    times.min_rnr_timer = static_cast<std::uint8_t>(m.given.min_rnr_timer);
    times.address = address_options(m.given);
    return times;
}

}  // namespace

bool open_receives(Module& m, std::uint32_t hca) {
    HcaUse& use = m.uses[hca];
    const auto count = std::min(static_cast<std::uint32_t>(m.given.receives), m.hcas[hca].caps().max_srq_wr);
    return make_room(m, hca, count, count) != 0 && post_receives(m, hca, count, use.srq, nullptr, use.receives);
}

std::unique_ptr<Rail> make_rail(Module& m, const path::PathChoice& path, const path::PortRecord& remote) {
    const path::PortRecord& local = m.own.ports[path.local_port];
    rail::Hca& hca = m.hcas[local.hca];
    HcaUse& use = m.uses[local.hca];
    rail::RcCaps caps = caps_for(m, local.hca);
    if (path.is_for_reads()) {
        // One place is the probe's: no mark follows that would show that it has left the send queue.
        caps.sends = std::min(std::min(caps.sends, kMostReads) + 1, hca.caps().max_qp_wr);
        caps.receives = 1;
        caps.inline_bytes = 0;
        if (caps.sends < 2 || !leaves_enough(use, hca.caps(), caps.sends)) return nullptr;
    }
    const std::uint32_t receives = use.srq || path.is_for_reads() ? 0 : caps.receives;
    const std::uint32_t places = make_room(m, local.hca, caps.sends + receives,
                                           std::min(caps.sends, kLeastSends) + receives);
    if (places == 0) return nullptr;
    caps.sends = places - receives;
    auto made = rail::make_rc_qp(hca, local, use.cq, use.cq, use.srq, caps);
    if (!made) {
        use.cq_needed -= places;
        return not_used(made.trouble().sentence), nullptr;
    }
    ++use.queue_pairs;
    auto rail = std::make_unique<Rail>();
    rail->local_hca = local.hca;
    rail->remote_hca = remote.hca;
    rail->port = local.port;
    rail->path_bits = path.local_bits;
    // One place is for the request that shows that an unusable queue pair is drained (Rail::last).
    // Another one is for the write that lets the peer follow a migration (Rail::pulse).
    const std::uint32_t reserved = (m.given.failover != 0 ? 1 : 0) + (m.migrations != nullptr ? 1 : 0);
    rail->set_depth(caps.sends > reserved ? caps.sends - reserved : 1);
    rail->cq_places = places;
    rail->max_inline = made->got.inline_bytes;
    rail->reads.reset(rail::rd_atomic_depth(hca, remote));
    rail->qp = QueuePair(std::move(made->qp));
    rail->counts_credits = remote.has_srq == 0;
    if (use.srq || path.is_for_reads()) return rail;
    rail->own_receives = sched::ReceiveCredits(caps.receives);
    if (post_receives(m, local.hca, caps.receives, nullptr, rail.get(), rail->receives)) return rail;
    not_used(rail::trouble(hca.context(), errno, "cannot register receive buffers").sentence);
    use.cq_needed -= places;
    --use.queue_pairs;
    return nullptr;
}

// Another rail takes over if there is one, so a rail that is only slow may count as lost. A queue pair that is moved
// without need loses nothing, but has no further alternate path for a while.
std::uint8_t timeout_for(const Module& m, const path::PortList& remote) {
    constexpr std::uint8_t kAlone = 20, kOfSeveral = 14, kMoves = 17;
    if (m.given.timeout != 0) return static_cast<std::uint8_t>(m.given.timeout);
    const std::vector<path::PathChoice> paths = path::choose_paths(m.own, remote);
    const auto rails = std::count_if(paths.begin(), paths.end(), [](const auto& each) { return !each.is_for_reads(); });
    const bool moves = has_alternates(m, remote);
    if (m.given.failover != 0 && remote.survives) return rails > 1 || moves ? kOfSeveral : kAlone;
    return moves ? kMoves : kAlone;
}

bool connect_rail(Module& m, Rail& rail, const path::PathChoice& path, const path::PortRecord& local,
                  const path::PortRecord& remote, const path::RailEnds& ends, std::uint8_t timeout) {
    const auto done = rail::connect_rc_qp(m.hcas[rail.local_hca], rail.qp.get(), local, remote, path, ends,
                                          times_for(m, timeout));
    if (!done) not_used(done.trouble().sentence);
    return static_cast<bool>(done);
}

}  // namespace coop::ib
