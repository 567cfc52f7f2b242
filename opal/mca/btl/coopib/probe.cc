// SPDX-License-Identifier: BSD-3-Clause
#include "probe.h"

#include <algorithm>

namespace coop::ib {
namespace {

constexpr std::size_t kBlocksPerChunk = 8;

// What no process is called while it is not `peer`.
constexpr std::uint64_t not_yet(std::uint64_t peer) noexcept { return ~peer; }

}  // namespace

bool ProbeMemory::open(std::uint64_t own_id, std::vector<rail::Hca*> hcas) {
    hcas_ = std::move(hcas);
    if (!words_.make(sizeof own_id, hcas_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)) return false;
    *reinterpret_cast<std::uint64_t*>(words_.data()) = own_id;
    return grow();
}

bool ProbeMemory::grow() {
    auto chunk = std::make_unique<RegisteredMemory>();
    if (!chunk->make(kBlocksPerChunk * path::kMaxRails * sizeof(std::uint64_t), hcas_)) return false;
    for (std::size_t i = 0; i < kBlocksPerChunk; ++i)
        free_.push_back({reinterpret_cast<std::uint64_t*>(chunk->data()) + i * path::kMaxRails, chunk.get()});
    chunks_.push_back(std::move(chunk));
    return true;
}

ProbeMemory::Block ProbeMemory::take(std::uint64_t peer) {
    if (free_.empty() && !grow()) return {};
    const Block block = free_.back();
    free_.pop_back();
    std::fill_n(block.places, path::kMaxRails, not_yet(peer));
    return block;
}

bool post_probe(Rail& rail, std::size_t index, const ProbeMemory::Block& block, std::uint64_t peer_word, std::uint32_t rkey) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(block.places + index), sizeof *block.places, block.memory->lkey(rail.local_hca)};
    ibv_send_wr request{}, *bad;
    request.wr_id = reinterpret_cast<std::uint64_t>(&rail.mark);
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_READ;
    request.wr.rdma.remote_addr = peer_word;
    request.wr.rdma.rkey = rkey;
    rail.mark.kind = WorkKind::kMark;
    if (ibv_post_send(rail.qp, &request, &bad) != 0) return false;
    rail.in_flight = rail.unmarked = 1;  // until the first mark is done
    return true;
}

Probed look_at_probe(const Rail& rail, std::size_t index, const ProbeMemory::Block& block, std::uint64_t peer, bool ask_queue_pair) {
    const std::uint64_t word = __atomic_load_n(block.places + index, __ATOMIC_ACQUIRE);
    if (word == peer) return Probed::kAnswered;
    if (!ask_queue_pair) return Probed::kSilent;  // also where the word of another process has come
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    const bool works = ibv_query_qp(rail.qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_RTS;
    return works ? Probed::kSilent : Probed::kBroken;
}

bool silence(const Rail& rail) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    return ibv_modify_qp(rail.qp, &attr, IBV_QP_STATE) == 0;
}

}  // namespace coop::ib
