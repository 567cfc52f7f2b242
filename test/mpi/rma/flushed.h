// SPDX-License-Identifier: BSD-3-Clause
//
// Puts that an origin completes by a flush or an unlock, and then reports to the target by a message. The target waits for the
// message in MPI_Recv, and finds every byte in its memory; its only call on the window meanwhile is MPI_Win_sync.
//
// If the call does not wait for the target, the message may arrive first, because it takes another rail or path than the data. If
// it does not even wait for the origin, the target finds the 0xee that the origin stores behind the message.
//
// Threading: the Rounds of each thread are its own. Units: bytes.
#pragma once

#include "window.h"

namespace {

namespace flushed {

enum class How { kFlush, kFlushAll, kUnlock };
constexpr const char* kHowNames[] = {"flush", "flush_all", "unlock"};

// A put: so many blocks of so many bytes at the target, one at every `stride` bytes. At the origin they are one block.
struct Shape {
    std::size_t blocks, bytes, stride;
};
constexpr Shape kShapes[] = {{1, 8, 8}, {1, 1 << 20, 1 << 20}, {500, 40, 100}, {1, 65536, 65536}, {10, 30'000, 31'000}};
constexpr unsigned char kGap = 0x77;

constexpr std::size_t data_of(const Shape& shape) { return shape.blocks * shape.bytes; }
constexpr std::size_t span_of(const Shape& shape) { return shape.blocks * shape.stride; }

// Of one thread of one origin.
constexpr std::size_t bytes_of_part() {
    std::size_t bytes = 0;
    for (const Shape& shape : kShapes) bytes += span_of(shape);
    return bytes;
}

inline std::uint64_t as_key(int n) { return static_cast<std::uint64_t>(n); }

// What the threads of this number do, one in each process. Each has a part of the memory of every process. With flushes, the
// program has locked all processes; with unlocks, none.
class Rounds {
public:
    Rounds(const Window& window, MPI_Comm messages, How how, int thread, int threads)
        : window_(window), messages_(messages), how_(how), thread_(thread), threads_(threads) {}

    static std::size_t bytes(int processes, int threads) { return as_size(processes * threads) * bytes_of_part(); }

    void run(int rounds) {
        for (int round = 0; round < rounds; ++round)
            for (int target = 0; target < window_.processes; ++target) {
                if (window_.rank == target) look(round);
                else put_all(round, target);
            }
    }

private:
    Bytes data(int origin, int target, int round, std::size_t shape) const {
        const std::uint64_t pair = as_key(origin * window_.processes + target);
        return message(key_of("flushed", pair, as_key(round * threads_ + thread_), shape), data_of(kShapes[shape]));
    }

    std::size_t place(int origin, std::size_t shape) const {
        std::size_t at = as_size(origin * threads_ + thread_) * bytes_of_part();
        for (std::size_t i = 0; i < shape; ++i) at += span_of(kShapes[i]);
        return at;
    }

    void put(int target, std::size_t shape, const Bytes& from) const {
        const Shape& to = kShapes[shape];
        MPI_Datatype type;
        MPI_Type_vector(as_int(to.blocks), as_int(to.bytes), as_int(to.stride), MPI_BYTE, &type);
        MPI_Type_commit(&type);
        CHECK_MPI(MPI_Put(from.data(), as_int(from.size()), MPI_BYTE, target,
                          window_.at(target, place(window_.rank, shape)), 1, type, window_.win));
        MPI_Type_free(&type);
    }

    void complete(int target) const {
        switch (how_) {
        case How::kFlush: CHECK_MPI(MPI_Win_flush(target, window_.win)); break;
        case How::kFlushAll: CHECK_MPI(MPI_Win_flush_all(window_.win)); break;
        case How::kUnlock:
            CHECK_MPI(MPI_Win_unlock(target, window_.win));
            CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window_.win));
            break;
        }
    }

    // Every other round, all shapes are under way at once.
    void put_all(int round, int target) const {
        if (how_ == How::kUnlock) CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window_.win));
        const std::size_t all = std::size(kShapes), together = round % 2 == 0 ? 1 : all;
        for (std::size_t first = 0; first < all; first += together) {
            std::vector<Bytes> sent;
            for (std::size_t i = first; i < first + together; ++i) {
                sent.push_back(data(window_.rank, target, round, i));
                put(target, i, sent.back());
            }
            complete(target);
            MPI_Send(nullptr, 0, MPI_BYTE, target, thread_, messages_);
            for (Bytes& each : sent) std::fill(each.begin(), each.end(), static_cast<unsigned char>(0xee));
        }
        // The target has looked.
        MPI_Recv(nullptr, 0, MPI_BYTE, target, thread_, messages_, MPI_STATUS_IGNORE);
        if (how_ == How::kUnlock) CHECK_MPI(MPI_Win_unlock(target, window_.win));
    }

    void look(int round) const {
        if (how_ == How::kUnlock) CHECK_MPI(MPI_Win_lock_all(0, window_.win));
        const std::size_t all = std::size(kShapes), together = round % 2 == 0 ? 1 : all;
        std::vector<std::size_t> seen(as_size(window_.processes));
        for (std::size_t i = 0; i < all / together * as_size(window_.processes - 1); ++i) {
            MPI_Status status;
            MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, thread_, messages_, &status);
            CHECK_MPI(MPI_Win_sync(window_.win));
            std::size_t& next = seen[as_size(status.MPI_SOURCE)];
            for (std::size_t k = 0; k < together; ++k) check(status.MPI_SOURCE, round, next++);
        }
        CHECK_MPI(MPI_Win_sync(window_.win));
        if (how_ == How::kUnlock) CHECK_MPI(MPI_Win_unlock_all(window_.win));
        for (int origin = 0; origin < window_.processes; ++origin)
            if (origin != window_.rank) MPI_Send(nullptr, 0, MPI_BYTE, origin, thread_, messages_);
    }

    void check(int origin, int round, std::size_t shape) const {
        const Shape& blocks = kShapes[shape];
        Bytes expected(span_of(blocks), kGap);
        const Bytes sent = data(origin, window_.rank, round, shape);
        for (std::size_t i = 0; i < blocks.blocks; ++i)
            std::memcpy(&expected[i * blocks.stride], &sent[i * blocks.bytes], blocks.bytes);
        check_bytes(window_.memory + place(origin, shape), expected,
                    std::string(kHowNames[static_cast<int>(how_)]) + ": " + std::to_string(blocks.blocks) +
                        " blocks of " + std::to_string(blocks.bytes) + " bytes of rank " + std::to_string(origin) +
                        " in round " + std::to_string(round));
    }

    const Window& window_;
    const MPI_Comm messages_;
    const How how_;
    const int thread_, threads_;
};

}  // namespace flushed

}  // namespace
