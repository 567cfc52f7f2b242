// SPDX-License-Identifier: BSD-3-Clause
//
// Allgathers of the processes of one node through shared memory (coll/node_area.h): each process posts its block and
// takes the blocks of all others as they appear.
//
//     block          posted as                          taken by
//     fits the slot  a copy in the slot                 a copy from the slot
//     long           its address                        a read of the owner's memory by the kernel
//     long, else     chunks in the two halves of the    a copy of each chunk
//                    slot in turn
//
// A process that cannot read a long block says so in its answer, which it gives when it has dealt with all long blocks.
// The owner waits for the answers of all, because others read its memory until then, and puts its block into chunks if
// somebody needs it.
//
// Laps number the calls, from 1. Two laps are kept, and nothing is cleared: a process that has completed lap n has seen
// the posts of all processes in lap n, so all have completed lap n - 1 and taken its posts. It may then post lap n + 1,
// which overwrites lap n - 1, while others are still in lap n. So a process sees another one at most one lap ahead.
//
// The reader is the component's, or a test's:
//
//     bool read(process, address, to, bytes)      copies from the memory of another process; false: it cannot
//
// Units: bytes. Threading: one thread per process. Ownership: area and reader outlive the object. Errors: a word of
// another process that cannot be right is reported by wrong(); it is never used.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "coop/coll/blocks.h"
#include "coop/coll/node_area.h"

namespace coop::coll {

template <class Reader>
class NodeCalls {
public:
    static constexpr std::uint64_t kMostAtOnce = 1 << 20;  // read by one advance() from one process

    NodeCalls(Reader& reader, const NodeArea& area, std::uint32_t rank)
        : reader_(reader), area_(area), rank_(rank), chunk_bytes_(area.slot_bytes() / 2) {
        pending_.reserve(area.processes());
        needed_.reserve(area.processes());
        needing_.reserve(area.processes());
    }

    // Begins the next call. `own` is the own block, which is not copied to `memory`. It and the ends of the blocks must
    // outlive the call.
    void start(const std::byte* own, std::byte* memory, const Blocks& blocks) noexcept {
        ++lap_;
        own_ = own;
        memory_ = memory;
        blocks_ = blocks;
        post();
        long_ = 0;
        for (std::uint32_t i = 1; i < area_.processes(); ++i) {
            const std::uint32_t other = after(rank_, i);  // the next first, so that not all read the same process
            pending_.push_back({other, 0});
            long_ += is_long(other);
        }
        must_answer_ = long_ > 0;
        needs_ = false;
        answers_ = 0;
        sent_ = 0;
    }

    // Does what can be done now. Returns true when the call is complete; then it is not called again.
    bool advance() noexcept {
        for (std::size_t i = 0; i < pending_.size();)
            if (take(pending_[i])) remove(pending_, i);
            else ++i;
        if (must_answer_ && long_ == 0) answer();
        if (!needed_.empty()) take_chunks();
        if (wrong_ || !pending_.empty() || !needed_.empty()) return serve_meanwhile();
        return !is_long(rank_) || (heard_all() && serve());
    }

    std::uint64_t lap() const noexcept { return lap_; }
    // The word that is wrong, and whose it is; null: none.
    const char* wrong() const noexcept { return wrong_; }
    std::uint32_t wrong_process() const noexcept { return wrong_process_; }
    // The lengths of a block differ between its owner and this process. (wrong() is set, too.)
    bool length_differs() const noexcept { return length_differs_; }

private:
    struct Rest {
        std::uint32_t process;
        std::uint64_t done;  // bytes, or chunks
    };

    static void remove(std::vector<Rest>& from, std::size_t i) noexcept {
        from[i] = from.back();
        from.pop_back();
    }
    std::uint32_t after(std::uint32_t process, std::uint32_t distance) const noexcept {
        const std::uint32_t sum = process + distance;
        return sum < area_.processes() ? sum : sum - area_.processes();
    }
    bool is_long(std::uint32_t block) const noexcept { return blocks_.bytes_of(block) > area_.slot_bytes(); }
    std::byte* block(std::uint32_t of) const noexcept { return memory_ + blocks_.begin_of(of); }
    std::uint64_t chunks_of(std::uint32_t of) const noexcept {
        return (blocks_.bytes_of(of) + chunk_bytes_ - 1) / chunk_bytes_;
    }
    std::uint64_t bytes_of_chunk(std::uint32_t of, std::uint64_t chunk) const noexcept {
        return std::min<std::uint64_t>(chunk_bytes_, blocks_.bytes_of(of) - chunk * chunk_bytes_);
    }
    bool fail(std::uint32_t process, const char* word) noexcept {
        wrong_ = word;
        wrong_process_ = process;
        return false;
    }

    void post() noexcept {
        NodeArea::Post& mine = area_.post(rank_, lap_);
        const std::uint64_t bytes = blocks_.bytes_of(rank_);
        mine.bytes = bytes;
        if (is_long(rank_)) {
            mine.address = reinterpret_cast<std::uintptr_t>(own_);
            area_.chunks(rank_).store(0, std::memory_order_relaxed);
        } else if (bytes > 0) {
            std::memcpy(mine.place_of(bytes), own_, bytes);
        }
        mine.lap.store(lap_, std::memory_order_release);
    }

    // Takes the block of another process. True: nothing is left to do, or the rest comes in chunks.
    bool take(Rest& rest) noexcept {
        NodeArea::Post& theirs = area_.post(rest.process, lap_);
        const std::uint64_t lap = theirs.lap.load(std::memory_order_acquire);
        if (lap != lap_) {
            const std::uint64_t before = lap_ > NodeArea::kLaps ? lap_ - NodeArea::kLaps : 0;
            return lap == before ? false : fail(rest.process, "number of the call");
        }
        const std::uint64_t bytes = blocks_.bytes_of(rest.process);
        if (theirs.bytes != bytes) {
            length_differs_ = true;
            return fail(rest.process, "length of the block");
        }
        if (bytes > area_.slot_bytes()) return read(rest, theirs.address, bytes);
        if (bytes > 0) std::memcpy(block(rest.process), theirs.place_of(bytes), bytes);
        return true;
    }

    bool read(Rest& rest, std::uint64_t address, std::uint64_t bytes) noexcept {
        const std::uint64_t some = std::min(bytes - rest.done, kMostAtOnce);
        if (reader_.read(rest.process, address + rest.done, block(rest.process) + rest.done, some)) {
            rest.done += some;
            if (rest.done < bytes) return false;
        } else {
            NodeArea::Need& need = area_.need(rank_, rest.process);
            need.taken.store(0, std::memory_order_relaxed);
            need.lap.store(lap_, std::memory_order_relaxed);  // published by the answer
            needed_.push_back({rest.process, 0});
            needs_ = true;
        }
        --long_;
        return true;
    }

    void answer() noexcept {
        area_.answered(rank_).store(lap_ << 1 | (needs_ ? 1 : 0), std::memory_order_release);
        must_answer_ = false;
    }

    void take_chunks() noexcept {
        for (std::size_t i = 0; i < needed_.size();) {
            Rest& rest = needed_[i];
            const std::uint64_t all = chunks_of(rest.process);
            const std::uint64_t there = area_.chunks(rest.process).load(std::memory_order_acquire);
            if (there > all || there > rest.done + 2) {
                fail(rest.process, "number of chunks");
                return;
            }
            for (; rest.done < there; ++rest.done)
                std::memcpy(block(rest.process) + rest.done * chunk_bytes_,
                            area_.post(rest.process, lap_).slot() + rest.done % 2 * chunk_bytes_,
                            bytes_of_chunk(rest.process, rest.done));
            area_.need(rank_, rest.process).taken.store(rest.done, std::memory_order_release);
            if (rest.done == all) remove(needed_, i);
            else ++i;
        }
    }

    // Others may need the own block while this process waits for theirs.
    bool serve_meanwhile() noexcept {
        if (!wrong_ && is_long(rank_) && heard_all()) serve();
        return false;
    }

    // Whether all processes have answered; then needing_ has those that need chunks.
    bool heard_all() noexcept {
        for (; answers_ + 1 < area_.processes(); ++answers_) {
            const std::uint32_t other = after(rank_, answers_ + 1);
            const std::uint64_t answer = area_.answered(other).load(std::memory_order_acquire), lap = answer >> 1;
            if (lap < lap_) return false;
            if (lap > lap_ + 1) return fail(other, "answer");
            // One that is a lap ahead has the block.
            if (lap == lap_ && (answer & 1) && area_.need(other, rank_).lap.load(std::memory_order_relaxed) == lap_)
                needing_.push_back({other, 0});
        }
        return true;
    }

    // Puts chunks into the slot. Returns true when all that need them have taken all.
    bool serve() noexcept {
        const std::uint64_t all = chunks_of(rank_);
        std::uint64_t least = all;
        for (std::size_t i = 0; i < needing_.size();) {
            Rest& rest = needing_[i];
            rest.done = area_.need(rest.process, rank_).taken.load(std::memory_order_acquire);
            if (rest.done > sent_) return fail(rest.process, "number of chunks taken");
            least = std::min(least, rest.done);
            if (rest.done == all) remove(needing_, i);
            else ++i;
        }
        if (needing_.empty()) return true;
        for (; sent_ < all && sent_ < least + 2; ++sent_) {
            std::memcpy(area_.post(rank_, lap_).slot() + sent_ % 2 * chunk_bytes_, own_ + sent_ * chunk_bytes_,
                        bytes_of_chunk(rank_, sent_));
            area_.chunks(rank_).store(sent_ + 1, std::memory_order_release);
        }
        return false;
    }

    Reader& reader_;
    const NodeArea area_;
    const std::uint32_t rank_;
    const std::uint64_t chunk_bytes_;
    const char* wrong_ = nullptr;
    std::uint32_t wrong_process_ = 0;
    bool length_differs_ = false;

    // Of the present call.
    std::uint64_t lap_ = 0;
    const std::byte* own_ = nullptr;
    std::byte* memory_ = nullptr;
    Blocks blocks_{0, 0};
    std::vector<Rest> pending_;  // not taken yet; done: bytes
    std::vector<Rest> needed_;   // taken in chunks; done: chunks
    std::vector<Rest> needing_;  // that take the own block in chunks
    std::uint32_t long_ = 0;     // long blocks among pending_
    bool must_answer_ = false, needs_ = false;
    std::uint32_t answers_ = 0;  // heard
    std::uint64_t sent_ = 0;     // chunks
};

}  // namespace coop::coll
