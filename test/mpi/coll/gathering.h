// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of MPI_Allgather and MPI_Allgatherv on one communicator. Every byte of each result and around it is checked, and
// by MPI_T that coll/rdmaag has done the call, by the algorithm of the parameters and with the steps of that algorithm.
//
// Arguments of the programs:
//
//     puts         long steps must be RDMA writes
//     packets      long steps must be packets
//     registers    the transport needs registered memory: each call registers it once
//     buffers      short steps must be written into collective buffers, by all partners
//     buffers_auto the same for short steps of more than 128 bytes, and no others
//     no_buffers   no short step may be written into a collective buffer
//     node         calls must go through shared memory, or by hierarchy, if processes of the communicator share nodes
//     direct       with node: long blocks must be read from the memory of other processes
//     chunks       with node: no long block may be read from the memory of other processes
//     shuffled     the ranks of the communicators are in another order than those of the job
//     beyond_packets  steps up to short_max are short, also those that do not fit a packet
//     because=WHY  this reason for it must be counted
//     left=WHY     coll/rdmaag must leave all calls to another component, for this reason
//
// Without puts and packets, long steps may travel either way. short_max, ring_min and tune must be set with mpirun. With
// trials (tune), another component may do a call, and any algorithm.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "shape.h"
#include "variable.h"

namespace {

enum Algorithm { kDoubling, kBruck, kRing, kNeighbour, kAlgorithms };
constexpr const char* kNames[kAlgorithms] = {"doubling", "bruck", "ring", "neighbour"};

inline bool has_argument(const std::string& word) {
    const auto& all = mpitest::settings().arguments;
    return std::find(all.begin(), all.end(), word) != all.end();
}

// The word after this prefix in the arguments, or nothing.
inline std::string word_after(const std::string& prefix) {
    for (const std::string& word : mpitest::settings().arguments)
        if (word.rfind(prefix, 0) == 0) return word.substr(prefix.size());
    return "";
}
// The reason for which all calls are left to another component, or nothing.
inline std::string left() { return word_after("left="); }
inline std::string why_no_buffers() { return word_after("because="); }

inline std::string parameter(const std::string& name, const std::string& otherwise) {
    const char* value = std::getenv(("OMPI_MCA_coll_rdmaag_" + name).c_str());
    return value == nullptr ? otherwise : value;
}
inline std::size_t short_max() { return std::stoul(parameter("short_max", "")); }
inline std::size_t ring_min() { return std::stoul(parameter("ring_min", "")); }

inline std::size_t node_slot() { return std::stoul(parameter("node_slot", "")); }
inline bool has_trials() { return parameter("tune", "") != "0"; }

inline bool is_power_of_two(int p) { return (p & (p - 1)) == 0; }

inline Algorithm expected_algorithm(int p, std::size_t bytes) {
    const std::string wish = parameter("algorithm", "auto");
    const auto at = std::find(std::begin(kNames), std::end(kNames), wish) - std::begin(kNames);
    if ((at == kDoubling && is_power_of_two(p)) || at == kBruck || at == kRing || (at == kNeighbour && p % 2 == 0))
        return static_cast<Algorithm>(at);
    if (is_power_of_two(p)) return kDoubling;
    return bytes / static_cast<std::size_t>(p) >= ring_min() ? kRing : kBruck;
}

struct Counts {
    std::array<unsigned long long, kAlgorithms> calls{};
    unsigned long long for_trials = 0;  // done by another component as a trial, or because it has won
    unsigned long long short_steps = 0, puts = 0, data_packets = 0, announcements = 0, registrations = 0;
    unsigned long long buffer_steps = 0, buffers_taken = 0, buffers_returned = 0;
    unsigned long long node = 0, hierarchy = 0, node_reads = 0, node_chunked = 0;
    unsigned long long all_calls() const { return std::accumulate(calls.begin(), calls.end(), node + hierarchy); }
};

// The performance variables of coll/rdmaag.
class Counters {
public:
    Counts read() const {
        Counts now;
        for (std::size_t i = 0; i < kAlgorithms; ++i) now.calls[i] = calls_[i]->read();
        now.for_trials = tuning_.read() + measured_slower_.read();
        now.short_steps = short_steps_.read();
        now.puts = puts_.read();
        now.data_packets = data_packets_.read();
        now.announcements = announcements_.read();
        now.registrations = registrations_.read();
        now.buffer_steps = buffer_steps_.read();
        now.buffers_taken = buffers_taken_.read();
        now.buffers_returned = buffers_returned_.read();
        now.node = node_.read();
        now.hierarchy = hierarchy_.read();
        now.node_reads = node_reads_.read();
        now.node_chunked = node_chunked_.read();
        return now;
    }
    unsigned long long too_few_calls() const { return too_few_calls_.read(); }
    unsigned long long no_bytes() const { return no_bytes_.read(); }
    unsigned long long without_buffers() const { return without_buffers_.read(); }
    unsigned long long left_as_expected() const { return left_as_expected_.read(); }

private:
    static std::unique_ptr<Variable> calls_by(Algorithm algorithm) {
        return std::make_unique<Variable>(std::string("calls_") + kNames[algorithm], "coll_rdmaag");
    }
    std::unique_ptr<Variable> calls_[kAlgorithms] = {calls_by(kDoubling), calls_by(kBruck), calls_by(kRing),
                                                     calls_by(kNeighbour)};
    Variable short_steps_{"short_steps", "coll_rdmaag"}, puts_{"puts", "coll_rdmaag"},
        data_packets_{"data_packets", "coll_rdmaag"}, announcements_{"announcements", "coll_rdmaag"},
        registrations_{"registrations", "coll_rdmaag"}, buffer_steps_{"buffer_steps", "coll_rdmaag"},
        buffers_taken_{"buffers_taken", "coll_rdmaag"}, buffers_returned_{"buffers_returned", "coll_rdmaag"},
        node_{"calls_node", "coll_rdmaag"}, hierarchy_{"calls_hierarchy", "coll_rdmaag"},
        node_reads_{"node_reads", "coll_rdmaag"}, node_chunked_{"node_chunked", "coll_rdmaag"},
        too_few_calls_{"left_too_few_calls", "coll_rdmaag"}, no_bytes_{"left_no_bytes", "coll_rdmaag"},
        without_buffers_{why_no_buffers().empty() ? "not_in_order" : why_no_buffers(), "coll_rdmaag"},
        tuning_{"left_tuning", "coll_rdmaag"}, measured_slower_{"left_measured_slower", "coll_rdmaag"},
        left_as_expected_{"left_" + (left().empty() ? "too_few_calls" : left()), "coll_rdmaag"};
};

// Open until the program ends: a variable counts from the time when its handle is allocated.
inline const Counters& counters() {
    static const Counters& all = *new Counters;
    return all;
}

struct Block {
    int count;
    int displacement;  // in extents
};

enum class Shares { kNone, kOneNode, kSomeNodes };
inline Shares how_processes_share_nodes(MPI_Comm comm) {
    if (const auto asked = parameter("algorithm", "auto"); asked != "auto" && asked != "node") return Shares::kNone;
    MPI_Comm node;
    int size = 0, here = 0, most = 0;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(comm, &size);
    MPI_Comm_size(node, &here);
    MPI_Comm_free(&node);
    MPI_Allreduce(&here, &most, 1, MPI_INT, MPI_MAX, comm);
    return most == size ? Shares::kOneNode : most > 1 ? Shares::kSomeNodes : Shares::kNone;
}

class Gathering {
public:
    // Takes the communicator, and may free it at the end. The first call of a communicator is left to another component.
    explicit Gathering(MPI_Comm comm) : comm_(comm) {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &size_);
        shares_ = has_argument("node") ? how_processes_share_nodes(comm) : Shares::kNone;
        const auto before = counters().read().all_calls(), too_few = counters().too_few_calls();
        equal(8);
        CHECK_EQ(counters().read().all_calls(), before);
        CHECK_EQ(counters().too_few_calls() - too_few, 1);
        begun_ = true;
    }
    ~Gathering() { MPI_Comm_free(&comm_); }
    Gathering(const Gathering&) = delete;

    MPI_Comm comm() const { return comm_; }
    int rank() const { return rank_; }
    int size() const { return size_; }

    // Blocks of equal length: MPI_Allgather.
    void equal(std::size_t bytes, bool in_place = false) { equal(static_cast<int>(bytes), Shape{}, Shape{}, in_place); }

    // `count` elements of the receive type; the send type may have fewer or more parts in an element.
    void equal(int count, const Shape& send, const Shape& receive, bool in_place) {
        std::vector<Block> blocks;
        for (int rank = 0; rank < size_; ++rank) blocks.push_back({count, rank * count});
        const Counts before = begun_ ? counters().read() : Counts{};
        gather(blocks, send, receive, in_place, true);
        if (begun_ && left().empty() && !has_trials() && count > 0)
            check_steps(before, static_cast<std::size_t>(count) * receive.bytes());
    }

    // MPI_Allgatherv.
    void unequal(const std::vector<Block>& blocks, const Shape& send, const Shape& receive, bool in_place) {
        gather(blocks, send, receive, in_place, false);
    }
    void unequal(const std::vector<Block>& blocks, bool in_place = false) {
        unequal(blocks, Shape{}, Shape{}, in_place);
    }

private:
    void gather(const std::vector<Block>& blocks, const Shape& send, const Shape& receive, bool in_place, bool equal) {
        ++call_;
        MPI_Aint end = 0;
        std::size_t bytes = 0;
        for (const Block& block : blocks) {
            end = std::max(end, (block.displacement + block.count) * receive.extent);
            bytes += static_cast<std::size_t>(block.count) * receive.bytes();
        }
        // The last element of a type may reach beyond its extent.
        Buffer result(static_cast<std::size_t>(end) + 64), expected = result;
        for (int rank = 0; rank < size_; ++rank) put_block(expected, blocks[rank], rank, receive);
        if (in_place) put_block(result, blocks[rank_], rank_, receive);

        const std::size_t mine = static_cast<std::size_t>(blocks[rank_].count) * receive.bytes() / send.bytes();
        Buffer sent(mine * static_cast<std::size_t>(send.extent) + 64);
        place(send, sent.data(), mine, key(rank_));
        const Buffer sent_before = sent;

        const auto calls = counters().read();
        const auto others = counters().left_as_expected();
        const void* from = in_place ? MPI_IN_PLACE : sent.data();
        const int count = static_cast<int>(mine);
        if (equal) {
            CHECK_MPI(MPI_Allgather(from, count, send.type, result.data(), blocks[0].count, receive.type, comm_));
        } else {
            std::vector<int> counts, displacements;
            for (const Block& block : blocks) {
                counts.push_back(block.count);
                displacements.push_back(block.displacement);
            }
            CHECK_MPI(MPI_Allgatherv(from, count, send.type, result.data(), counts.data(), displacements.data(),
                                     receive.type, comm_));
        }
        const std::string what = "call " + std::to_string(call_) + " of " + std::to_string(size_) +
                                 " processes, rank " + std::to_string(rank_) + ", " + std::to_string(bytes) + " bytes";
        result.check_equals(expected, what);
        sent.check_equals(sent_before, what + ", send buffer");
        if (begun_) check_who(calls, others, bytes);
    }

    void put_block(Buffer& buffer, const Block& block, int rank, const Shape& shape) const {
        place(shape, buffer.data() + block.displacement * shape.extent, static_cast<std::size_t>(block.count),
              key(rank));
    }
    std::uint64_t key(int rank) const { return pattern::key({call_, static_cast<std::uint64_t>(rank)}); }

    // Who did the call.
    void check_who(const Counts& before, unsigned long long others, std::size_t bytes) const {
        const Counts now = counters().read();
        if (!left().empty()) {
            CHECK_EQ(now.all_calls() - before.all_calls(), 0);
            CHECK_EQ(counters().left_as_expected() - others, bytes > 0 ? 1 : 0);
            return;
        }
        if (has_trials()) {
            CHECK_EQ(now.all_calls() - before.all_calls() + now.for_trials - before.for_trials, bytes > 0 ? 1 : 0);
            return;
        }
        const Algorithm algorithm = expected_algorithm(size_, bytes);
        CHECK_EQ(now.all_calls() - before.all_calls(), bytes > 0 ? 1 : 0);
        if (shares_ == Shares::kSomeNodes) {
            CHECK_EQ(now.hierarchy - before.hierarchy, bytes > 0 ? 1 : 0);
            return;
        }
        if (shares_ == Shares::kOneNode) {
            CHECK_EQ(now.node - before.node, bytes > 0 ? 1 : 0);
            CHECK_EQ(now.announcements + now.short_steps, before.announcements + before.short_steps);
            return;
        }
        CHECK_EQ(now.calls[algorithm] - before.calls[algorithm], bytes > 0 ? 1 : 0);
    }

    // The steps of a call with blocks of equal length.
    void check_steps(const Counts& before, std::size_t block) const {
        const Counts now = counters().read();
        if (shares_ == Shares::kOneNode) check_node(before, now, block);
        if (shares_ != Shares::kNone) return;
        const unsigned steps = steps_of(expected_algorithm(size_, block * static_cast<std::size_t>(size_)));
        const auto short_steps = now.short_steps - before.short_steps, puts = now.puts - before.puts,
                   packets = now.data_packets - before.data_packets,
                   announcements = now.announcements - before.announcements,
                   registrations = now.registrations - before.registrations;
        switch (expected_algorithm(size_, block * static_cast<std::size_t>(size_))) {
        case kRing: CHECK_EQ(announcements, 1); break;
        case kNeighbour: CHECK_EQ(announcements, std::min(steps, 2u)); break;
        default:
            CHECK_EQ(short_steps + announcements, steps);
            if (block > short_max()) CHECK_EQ(short_steps, 0);
            // The eager limit may be lower than short_max.
            if (block * static_cast<std::size_t>(size_) <= std::min<std::size_t>(short_max(), 900))
                CHECK_EQ(short_steps, steps);
        }
        if (has_argument("beyond_packets")) CHECK_EQ(short_steps, steps_up_to(short_max(), block));
        const auto buffer_steps = now.buffer_steps - before.buffer_steps;
        if (has_argument("buffers")) CHECK_EQ(buffer_steps, short_steps);
        if (has_argument("buffers_auto")) CHECK_EQ(buffer_steps, short_steps - steps_up_to(128, block));
        if (has_argument("no_buffers")) CHECK_EQ(buffer_steps, 0);
        if (!why_no_buffers().empty()) CHECK(counters().without_buffers() > 0);
        if (announcements == 0) {
            CHECK_EQ(puts + packets + registrations, 0);
            return;
        }
        CHECK(puts + packets >= steps - short_steps);
        if (has_argument("puts")) CHECK_EQ(packets, 0);
        if (has_argument("packets")) CHECK_EQ(puts, 0);
        // The whole buffer is registered once for each transport.
        if (has_argument("registers")) CHECK_EQ(registrations, 1);
    }

    // Every other block is taken once; a long read takes several system calls.
    void check_node(const Counts& before, const Counts& now, std::size_t block) const {
        const auto reads = now.node_reads - before.node_reads, chunked = now.node_chunked - before.node_chunked;
        const std::size_t slot = size_ == 2 ? std::min<std::size_t>(node_slot(), 16384) : node_slot();
        if (block <= slot) CHECK_EQ(reads + chunked, 0);
        else CHECK(reads + chunked >= static_cast<unsigned>(size_ - 1));
        if (has_argument("direct")) CHECK_EQ(chunked, 0);
        if (has_argument("chunks")) CHECK_EQ(reads, 0);
    }

    unsigned steps_of(Algorithm algorithm) const {
        if (algorithm == kRing) return static_cast<unsigned>(size_ - 1);
        if (algorithm == kNeighbour) return static_cast<unsigned>(size_ / 2);
        unsigned steps = 0;
        while (1 << steps < size_) ++steps;
        return steps;
    }

    // Steps of doubling and of Bruck's algorithm with at most so many bytes.
    unsigned steps_up_to(std::size_t bytes, std::size_t block) const {
        const Algorithm algorithm = expected_algorithm(size_, block * static_cast<std::size_t>(size_));
        unsigned count = 0;
        if (algorithm == kDoubling || algorithm == kBruck)
            for (int have = 1; have < size_; have *= 2)
                count += static_cast<std::size_t>(std::min(have, size_ - have)) * block <= bytes;
        return count;
    }

    MPI_Comm comm_;
    int rank_ = 0, size_ = 0;
    std::uint64_t call_ = 0;
    Shares shares_ = Shares::kNone;
    bool begun_ = false;
};

inline MPI_Comm duplicate(MPI_Comm of) {
    MPI_Comm comm;
    MPI_Comm_dup(of, &comm);
    return comm;
}

// Calls the body with a Gathering of the first p ranks, for each p from 2 on; in another order if "shuffled".
template <class Body>
void with_each_number(const mpitest::Env& env, Body body) {
    for (int p = 2; p <= env.size; ++p) {
        MPI_Comm comm;
        const auto key = has_argument("shuffled") ? pattern::key({3, static_cast<std::uint64_t>(env.rank)}) % 1000
                                                  : static_cast<std::uint64_t>(env.rank);
        MPI_Comm_split(env.comm, env.rank < p ? 0 : MPI_UNDEFINED, static_cast<int>(key), &comm);
        if (comm != MPI_COMM_NULL) {
            Gathering some(comm);
            body(some);
        }
        MPI_Barrier(env.comm);
    }
}

}  // namespace
