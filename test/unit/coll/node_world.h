// SPDX-License-Identifier: BSD-3-Clause
// Processes that gather through shared memory (coop/coll/node_call.h), with the same address space. Every byte is
// checked after each call.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <random>
#include <vector>

#include "coop/coll/node_call.h"

namespace coop::coll {
namespace {

constexpr std::size_t kSlot = 128;

// The processes have the same address space here.
struct Memcpy {
    std::minstd_rand random{1};
    std::uint32_t refuse_one_in = 0;  // 0: none
    std::uint64_t reads = 0, refused = 0;

    bool read(std::uint32_t, std::uint64_t address, std::byte* to, std::uint64_t bytes) {
        if (refuse_one_in && random() / 16 % refuse_one_in == 0) return ++refused, false;
        std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
        return ++reads, true;
    }
};

struct Memory {
    explicit Memory(std::size_t bytes)
        : size(bytes), at(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{NodeArea::kPage}))) {
        std::memset(at, 0, bytes);
    }
    ~Memory() { ::operator delete (at, std::align_val_t{NodeArea::kPage}); }
    Memory(const Memory&) = delete;
    std::size_t size;
    std::byte* at;
};

std::byte content(std::uint64_t lap, std::uint32_t rank, std::uint64_t i) {
    return static_cast<std::byte>(lap * 101 + rank * 37 + i * 7 + i / 251 + 1);
}

// The ends of the blocks of a lap: the same in all processes.
std::vector<std::uint64_t> ends_of(std::uint64_t lap, std::uint32_t processes, std::uint32_t seed) {
    std::minstd_rand random(static_cast<std::uint32_t>(seed * 1000 + lap));
    constexpr std::uint64_t kLengths[] = {0, 1, 8, 47, 48, 49, 100, 127, 128, 129, 200, 1000};
    const auto any = [&] { return kLengths[random() / 16 % std::size(kLengths)]; };
    const bool equal = random() / 16 % 2 == 0;
    const std::uint64_t all = any();
    std::vector<std::uint64_t> ends;
    for (std::uint32_t i = 0; i < processes; ++i) ends.push_back((i ? ends.back() : 0) + (equal ? all : any()));
    return ends;
}

class Process {
public:
    Process(const NodeArea& area, std::uint32_t rank, std::uint32_t seed, std::uint32_t refuse_one_in)
        : rank_(rank), seed_(seed), processes_(area.processes()) {
        reader_.random.seed(seed * 64 + rank + 1);
        reader_.refuse_one_in = refuse_one_in;
        calls_ = std::make_unique<NodeCalls<Memcpy>>(reader_, area, rank);
    }

    void start() {
        ends_ = ends_of(++lap_, processes_, seed_);
        memory_.assign(ends_.back() + 1, std::byte{0});
        for (std::uint64_t i = begin_of(rank_); i < ends_[rank_]; ++i) memory_[i] = content(lap_, rank_, i);
        calls_->start(memory_.data() + begin_of(rank_), memory_.data(), Blocks(ends_));
        busy_ = true;
    }
    // Checks the result when the call is complete. Then the caller may change its memory at once.
    bool advance() {
        if (!calls_->advance()) return false;
        for (std::uint32_t rank = 0; rank < processes_; ++rank)
            for (std::uint64_t i = begin_of(rank); i < ends_[rank]; ++i)
                if (memory_[i] != content(lap_, rank, i)) {
                    ADD_FAILURE() << "p " << processes_ << " rank " << rank_ << " lap " << lap_ << " block " << rank
                                  << " byte " << i;
                    i = ends_[rank];
                }
        EXPECT_EQ(memory_.back(), std::byte{0});
        std::fill(memory_.begin(), memory_.end(), std::byte{0xEE});
        busy_ = false;
        return true;
    }
    bool busy() const { return busy_; }
    std::uint64_t lap() const { return lap_; }
    const Memcpy& reader() const { return reader_; }
    const NodeCalls<Memcpy>& calls() const { return *calls_; }

private:
    std::uint64_t begin_of(std::uint32_t block) const { return block == 0 ? 0 : ends_[block - 1]; }

    Memcpy reader_;
    std::unique_ptr<NodeCalls<Memcpy>> calls_;
    std::uint32_t rank_, seed_, processes_;
    std::uint64_t lap_ = 0;
    std::vector<std::uint64_t> ends_;
    std::vector<std::byte> memory_;
    bool busy_ = false;
};

struct World {
    World(std::uint32_t p, std::uint32_t seed, std::uint32_t refuse_one_in)
        : memory(NodeArea::bytes_for(p, kSlot)), area(memory.at, p, kSlot) {
        for (std::uint32_t rank = 0; rank < p; ++rank)
            processes.push_back(std::make_unique<Process>(area, rank, seed, refuse_one_in));
    }
    Memory memory;
    NodeArea area;
    std::vector<std::unique_ptr<Process>> processes;
};

}  // namespace
}  // namespace coop::coll
