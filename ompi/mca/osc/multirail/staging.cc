// SPDX-License-Identifier: BSD-3-Clause
#include "staging.h"

#include <cstdlib>

#include "process.h"

namespace coop::osc {
namespace {

constexpr std::uint32_t kBlocks = 64;  // of a chunk; more than the reads that a rail usually has under way

}  // namespace

bool Staging::grow() {
    auto chunk = std::make_unique<Chunk>();
    void* memory = nullptr;
    constexpr std::size_t kBytes = std::size_t{kBlocks} * kBlockBytes;
    if (posix_memalign(&memory, 4096, kBytes) != 0) return false;
    chunk->memory.reset(static_cast<std::byte*>(memory));
    chunk->handle = btl_->btl_register_mem(btl_, MCA_BTL_ENDPOINT_ANY, memory, kBytes, MCA_BTL_REG_FLAG_ACCESS_ANY);
    if (!chunk->handle) return false;
    chunk->blocks.resize(kBlocks);
    free_.reserve((chunks_.size() + 1) * kBlocks);  // give() needs no memory
    for (std::uint32_t i = 0; i < kBlocks; ++i) {
        chunk->blocks[i].memory = chunk->memory.get() + std::size_t{i} * kBlockBytes;
        chunk->blocks[i].handle = chunk->handle;
        free_.push_back(&chunk->blocks[i]);
    }
    chunks_.push_back(std::move(chunk));
    return true;
}

bool Staging::open(mca_btl_base_module_t& btl) {
    const std::lock_guard lock(mutex_);
    if (!chunks_.empty()) return btl_ == &btl;
    btl_ = &btl;
    return grow();
}

void Staging::close() noexcept {
    for (const auto& chunk : chunks_) btl_->btl_deregister_mem(btl_, chunk->handle);
    chunks_.clear();
    free_.clear();
}

Staging::Block* Staging::pop() noexcept {
    if (free_.empty()) return nullptr;
    Block* const block = free_.back();
    free_.pop_back();
    block->used = 0;
    block->refs = 1;
    return block;
}

Staging::Block* Staging::take() noexcept {
    const std::lock_guard lock(mutex_);
    return pop();
}

Staging::Block* Staging::take_more() {
    const std::lock_guard lock(mutex_);
    if (free_.empty() && !process.faults.hit(Fault::kAlloc)) grow();
    return pop();
}

void Staging::give(Block& block) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(&block);
}

}  // namespace coop::osc
