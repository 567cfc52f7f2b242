// SPDX-License-Identifier: BSD-3-Clause
#include "pools.h"

#include <sys/mman.h>

#include "progress.h"

namespace coop::ib {
namespace {

constexpr std::size_t kOpsPerChunk = 32;
constexpr std::size_t kPage = 4096;

}  // namespace

// Allocates whole pages, so that registered pages contain no other data.
bool RegisteredMemory::make(std::size_t bytes, std::span<rail::Hca* const> hcas, int access) {
    bytes_ = (bytes + kPage - 1) / kPage * kPage;
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    data_ = static_cast<std::byte*>(memory);
    for (rail::Hca* hca : hcas) {
        ibv_mr* region = ibv_reg_mr(hca->pd(), data_, bytes_, access);
        if (region == nullptr) return false;
        lkeys_[regions_.size()] = region->lkey;
        regions_.push_back(region);
    }
    return true;
}

RegisteredMemory::~RegisteredMemory() {
    for (ibv_mr* region : regions_) ibv_dereg_mr(region);
    if (data_ != nullptr) munmap(data_, bytes_);
}

bool FragmentPool::open(std::size_t bytes_each, std::size_t long_bytes, std::vector<rail::Hca*> hcas) {
    const auto whole_lines = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
    short_ = {whole_lines(bytes_each), kPerChunk};
    long_ = {whole_lines(long_bytes), kLongPerChunk};
    hcas_ = std::move(hcas);
    return grow(short_);
}

bool FragmentPool::grow(Shelf& shelf) {
    auto chunk = std::make_unique<FragmentChunk>();
    if (!chunk->memory.make(shelf.bytes_each * shelf.per_chunk, hcas_)) return false;
    chunk->fragments = std::vector<Fragment>(shelf.per_chunk);
    for (std::size_t i = 0; i < shelf.per_chunk; ++i) {
        Fragment& fragment = chunk->fragments[i];
        fragment.header = reinterpret_cast<Header*>(chunk->memory.data() + i * shelf.bytes_each);
        fragment.chunk = chunk.get();
        fragment.is_long = &shelf == &long_;
        give_back(fragment);
    }
    chunks_.push_back(std::move(chunk));
    return true;
}

Fragment* FragmentPool::take(Shelf& shelf) {
    if (shelf.free == nullptr && !grow(shelf)) return nullptr;
    Fragment* fragment = shelf.free;
    shelf.free = fragment->next_free;
    fragment->fenced = fragment->urgent = fragment->sealed = fragment->landed = false;
    fragment->repeats = false;
    fragment->work.repeated = fragment->work.follows = false;
    return fragment;
}

// Each attempt in vain maps memory and registers it on some of the HCAs.
Fragment* FragmentPool::take_long() {
    if (long_.free != nullptr) [[likely]]
        return take(long_);
    const std::uint64_t now = now_ns();
    if (!long_retry_.is_due(now)) return nullptr;
    Fragment* const fragment = take(long_);
    if (fragment == nullptr) long_retry_.failed(now);
    return fragment;
}

void FragmentPool::give_back(Fragment& fragment) {
    if (fragment.held) {
        fragment.returned = true;
        return;
    }
    Shelf& shelf = fragment.is_long ? long_ : short_;
    fragment.next_free = shelf.free;
    shelf.free = &fragment;
}

void FragmentPool::let_go(Fragment& fragment) {
    fragment.held = false;
    if (fragment.returned) {
        fragment.returned = false;
        give_back(fragment);
    }
}

void FragmentPool::close() {
    short_.free = long_.free = nullptr;
    chunks_.clear();
}

RdmaOp* OpPool::take() {
    if (free_ == nullptr) {
        chunks_.push_back(std::make_unique<RdmaOp[]>(kOpsPerChunk));
        for (std::size_t i = 0; i < kOpsPerChunk; ++i) give_back(chunks_.back()[i]);
    }
    RdmaOp* op = free_;
    free_ = op->next_free;
    return op;
}

void OpPool::give_back(RdmaOp& op) {
    op.next_free = free_;
    free_ = &op;
}

void OpPool::close() {
    free_ = nullptr;
    chunks_.clear();
}

}  // namespace coop::ib
