// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of MPI_Iallgather and MPI_Iallgatherv that are outstanding. Their buffers are checked when they are complete.
#pragma once

#include <list>

#include "gathering.h"

namespace {

constexpr std::size_t kSizes[] = {8, 20000, 1, 3000, 4097, 70000, 16, 500};
inline std::size_t size_of(std::size_t i) { return kSizes[i % std::size(kSizes)]; }

inline std::vector<Block> equal_blocks(int processes, int count) {
    std::vector<Block> blocks;
    for (int rank = 0; rank < processes; ++rank) blocks.push_back({count, rank * count});
    return blocks;
}

// An outstanding call with its buffers, which are checked when it is complete.
class Pending {
public:
    // MPI_Iallgather, or MPI_Iallgatherv if `vector`.
    Pending(MPI_Comm comm, std::uint64_t number, std::vector<Block> blocks, bool vector, const Shape& shape = {},
            bool in_place = false)
        : number_(number), blocks_(std::move(blocks)), result_(end_of(blocks_, shape)), expected_(result_), sent_(0),
          sent_before_(0) {
        int rank, size;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        for (int of = 0; of < size; ++of) put(expected_, of, shape);
        if (in_place) put(result_, rank, shape);
        const int mine = blocks_[static_cast<std::size_t>(rank)].count;
        sent_ = Buffer(static_cast<std::size_t>(mine * shape.extent) + 64);
        place(shape, sent_.data(), static_cast<std::size_t>(mine), key(rank));
        sent_before_ = sent_;
        const void* from = in_place ? MPI_IN_PLACE : sent_.data();
        if (!vector) {
            CHECK_MPI(MPI_Iallgather(from, mine, shape.type, result_.data(), mine, shape.type, comm, &request));
            return;
        }
        std::vector<int> counts, displacements;
        for (const Block& block : blocks_) {
            counts.push_back(block.count);
            displacements.push_back(block.displacement);
        }
        CHECK_MPI(MPI_Iallgatherv(from, mine, shape.type, result_.data(), counts.data(), displacements.data(),
                                  shape.type, comm, &request));
        // MPI forbids that, but mpi4py 3.1 frees its arrays here.
        std::fill(counts.begin(), counts.end(), 1 << 30);
        std::fill(displacements.begin(), displacements.end(), -(1 << 30));
    }
    Pending(const Pending&) = delete;

    void wait() {
        MPI_Status status;
        CHECK_MPI(MPI_Wait(&request, &status));
        check();
    }
    void check() const {
        CHECK(request == MPI_REQUEST_NULL);
        result_.check_equals(expected_, "call " + std::to_string(number_));
        sent_.check_equals(sent_before_, "send buffer of call " + std::to_string(number_));
    }

    MPI_Request request = MPI_REQUEST_NULL;

private:
    static std::size_t end_of(const std::vector<Block>& blocks, const Shape& shape) {
        MPI_Aint end = 0;
        for (const Block& block : blocks) end = std::max(end, (block.displacement + block.count) * shape.extent);
        return static_cast<std::size_t>(end) + 64;
    }
    void put(Buffer& buffer, int rank, const Shape& shape) const {
        const Block& block = blocks_[static_cast<std::size_t>(rank)];
        place(shape, buffer.data() + block.displacement * shape.extent, static_cast<std::size_t>(block.count),
              key(rank));
    }
    std::uint64_t key(int rank) const { return pattern::key({number_, static_cast<std::uint64_t>(rank)}); }

    std::uint64_t number_;
    std::vector<Block> blocks_;
    Buffer result_, expected_, sent_, sent_before_;
};
using Several = std::list<Pending>;

inline void start(Several& several, const Gathering& on, std::uint64_t number, std::size_t bytes) {
    several.emplace_back(on.comm(), number, equal_blocks(on.size(), static_cast<int>(bytes)), false);
}

// The outstanding requests as an array, and back.
inline std::vector<MPI_Request> requests_of(const Several& several) {
    std::vector<MPI_Request> all;
    for (const Pending& each : several) all.push_back(each.request);
    return all;
}
inline void take_back(Several& several, const std::vector<MPI_Request>& requests) {
    std::size_t i = 0;
    for (Pending& each : several) each.request = requests[i++];
}

enum Way { kWaitForward, kWaitBackward, kWaitall, kWaitany, kWaitsome, kTest, kTestall, kTestany, kWays };

inline void complete(Several& several, Way way) {
    auto requests = requests_of(several);
    const int n = static_cast<int>(requests.size());
    std::vector<int> which(requests.size());
    int done = 0, index;
    switch (way) {
    case kWaitForward:
        for (Pending& each : several) each.wait();
        return;
    case kWaitBackward:
        for (auto each = several.rbegin(); each != several.rend(); ++each) each->wait();
        return;
    case kWaitall: CHECK_MPI(MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE)); break;
    case kWaitany:
        for (int i = 0; i < n; ++i) CHECK_MPI(MPI_Waitany(n, requests.data(), &index, MPI_STATUS_IGNORE));
        break;
    case kWaitsome:
        for (int all = 0; all < n; all += done)
            CHECK_MPI(MPI_Waitsome(n, requests.data(), &done, which.data(), MPI_STATUSES_IGNORE));
        break;
    case kTest:
        for (std::size_t i = requests.size(); i-- > 0; done = 0)
            while (!done) CHECK_MPI(MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE));
        break;
    case kTestall:
        while (!done) CHECK_MPI(MPI_Testall(n, requests.data(), &done, MPI_STATUSES_IGNORE));
        break;
    case kTestany:
        for (int all = 0; all < n; all += done)
            CHECK_MPI(MPI_Testany(n, requests.data(), &index, &done, MPI_STATUS_IGNORE));
        break;
    case kWays: break;
    }
    take_back(several, requests);
    for (const Pending& each : several) each.check();
}

// Checks that coll/rdmaag has done `calls` calls since `before`, or that it has left them.
inline void check_calls(const Counts& before, unsigned long long calls) {
    CHECK_EQ(counters().read().all_calls() - before.all_calls(), left().empty() ? calls : 0);
}

}  // namespace
