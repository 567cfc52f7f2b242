// SPDX-License-Identifier: BSD-3-Clause
//
// The shared memory in which the processes of one node exchange the blocks of allgathers (coll/node_call.h): for each
// process an area that only this process writes.
//
//     card       where other processes can read its memory; for the component
//     answered   2 * lap, + 1 if it needs blocks in chunks: it has read all long blocks of this lap but these
//     chunks     how many chunks of its long block it has put into its slot in the present lap
//     needs      for each other process: the lap in which it needs that one's block in chunks, and how many it took
//     posts      one for each of two laps: the lap, the length of its block, then the block itself if it fits into
//                the slot, otherwise its address; a tiny block lies in the same cache line as the lap
//
// Units: bytes. Threading: processes synchronize by the atomic words. Ownership: the memory stays the caller's; it is
// zeroed at first and aligned to a cache line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coop::coll {

class NodeArea {
public:
    static constexpr std::size_t kLine = 64, kPage = 4096;
    static constexpr std::uint32_t kLaps = 2;

    struct alignas(kLine) Card {
        std::int32_t pid;
        std::uint64_t nonce;
        std::uint64_t nonce_address;
    };
    struct alignas(kLine) Word {
        std::atomic<std::uint64_t> value;
    };
    struct Need {
        std::atomic<std::uint64_t> lap;
        std::atomic<std::uint64_t> taken;
    };
    static constexpr std::size_t kTiny = kLine - 2 * sizeof(std::uint64_t);
    struct alignas(kLine) Post {
        std::atomic<std::uint64_t> lap;  // of which the rest is valid
        std::uint64_t bytes;             // of the block
        union {
            std::byte tiny[kTiny];  // if it fits
            std::uint64_t address;  // if it is too long for the slot
        };
        std::byte* slot() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
        std::byte* place_of(std::uint64_t block_bytes) noexcept { return block_bytes <= kTiny ? tiny : slot(); }
    };
    static_assert(sizeof(Post) == kLine && std::atomic<std::uint64_t>::is_always_lock_free);

    NodeArea() = default;
    NodeArea(std::byte* memory, std::uint32_t processes, std::size_t slot_bytes) noexcept
        : memory_(memory), processes_(processes), slot_bytes_(slot_bytes), stride_(stride_for(processes, slot_bytes)) {}
    static std::size_t bytes_for(std::uint32_t processes, std::size_t slot_bytes) noexcept {
        return processes * stride_for(processes, slot_bytes);
    }

    std::uint32_t processes() const noexcept { return processes_; }
    std::size_t slot_bytes() const noexcept { return slot_bytes_; }

    Card& card(std::uint32_t of) const noexcept { return *at<Card>(of, 0); }
    std::atomic<std::uint64_t>& answered(std::uint32_t of) const noexcept { return at<Word>(of, kLine)->value; }
    std::atomic<std::uint64_t>& chunks(std::uint32_t of) const noexcept { return at<Word>(of, 2 * kLine)->value; }
    Need& need(std::uint32_t of, std::uint32_t from) const noexcept {
        return *at<Need>(of, 3 * kLine + from * sizeof(Need));
    }
    Post& post(std::uint32_t of, std::uint64_t lap) const noexcept {
        return *at<Post>(of, posts_at(processes_) + lap % kLaps * post_bytes(slot_bytes_));
    }

private:
    static constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
        return (bytes + unit - 1) / unit * unit;
    }
    static constexpr std::size_t posts_at(std::uint32_t processes) noexcept {
        return 3 * kLine + round_up(processes * sizeof(Need), kLine);
    }
    static constexpr std::size_t post_bytes(std::size_t slot_bytes) noexcept {
        return sizeof(Post) + round_up(slot_bytes, kLine);
    }
    // Whole pages: a process writes first to its own area, so the kernel takes the pages from memory near to it.
    static constexpr std::size_t stride_for(std::uint32_t processes, std::size_t slot_bytes) noexcept {
        return round_up(posts_at(processes) + kLaps * post_bytes(slot_bytes), kPage);
    }
    template <class T>
    T* at(std::uint32_t of, std::size_t offset) const noexcept {
        return reinterpret_cast<T*>(memory_ + of * stride_ + offset);
    }

    std::byte* memory_ = nullptr;
    std::uint32_t processes_ = 0;
    std::size_t slot_bytes_ = 0, stride_ = 0;
};

}  // namespace coop::coll
