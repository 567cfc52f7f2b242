// SPDX-License-Identifier: BSD-3-Clause
#include "probe.h"

#include <algorithm>

namespace coop::ib {
namespace {

constexpr std::size_t kBlocksPerChunk = 8;

// The value of a place before the word of `peer` arrives: any value other than its id.
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
    if (!chunk->make(kBlocksPerChunk * path::kMaxConnectionRails * sizeof(std::uint64_t), hcas_)) return false;
    for (std::size_t i = 0; i < kBlocksPerChunk; ++i)
        free_.push_back({reinterpret_cast<std::uint64_t*>(chunk->data()) + i * path::kMaxConnectionRails, chunk.get()});
    chunks_.push_back(std::move(chunk));
    return true;
}

ProbeMemory::Block ProbeMemory::take(std::uint64_t peer) {
    if (free_.empty() && !grow()) return {};
    const Block block = free_.back();
    free_.pop_back();
    std::fill_n(block.places, path::kMaxConnectionRails, not_yet(peer));
    return block;
}

bool post_probe(Rail& rail, std::size_t index, const ProbeMemory::Block& block, std::uint64_t peer_word,
                std::uint32_t rkey) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(block.places + index), sizeof *block.places,
                block.memory->lkey(rail.local_hca)};
    Request request;
    request.sge = sge;
    request.wr.opcode = IBV_WR_RDMA_READ;
    request.wr.wr.rdma.remote_addr = peer_word;
    request.wr.wr.rdma.rkey = rkey;
    return rail.post_unmarked(request) == 0;
}

Probed look_at_probe(const Rail& rail, std::size_t index, const ProbeMemory::Block& block, std::uint64_t peer,
                     bool ask_queue_pair) {
    const std::uint64_t word = __atomic_load_n(block.places + index, __ATOMIC_ACQUIRE);
    if (word == peer) return Probed::kAnswered;
    if (!ask_queue_pair) return Probed::kSilent;  // also if the word of another process has arrived
    return rail.qp.works() ? Probed::kSilent : Probed::kBroken;
}

}  // namespace coop::ib
