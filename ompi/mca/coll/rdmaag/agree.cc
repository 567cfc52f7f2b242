// SPDX-License-Identifier: BSD-3-Clause
//
// How the processes of a communicator agree to use coll/rdmaag, once per communicator.
#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include "coop/base/architecture.h"
#include "module.h"
#include "peers.h"

namespace coop::ag {
namespace {

constexpr std::int64_t kVersion = coll::kPacketVersion;

// What one process can do. All processes take the minimum of each word; a value and its negative show whether all have
// the same one.
enum Word {
    kCan,
    kShortBytes,
    kVersionLow,
    kVersionHigh,
    kArchLow,
    kArchHigh,
    kAlgorithmLow,
    kAlgorithmHigh,
    kRingLow,
    kRingHigh,
    kTuneLow,
    kTuneHigh,
    kWords
};
using Words = std::array<std::int64_t, kWords>;

std::int64_t architecture() noexcept { return static_cast<std::int64_t>(opal_local_arch); }

// The shortest eager limit to any partner of any algorithm; 0: one of them cannot be reached.
std::size_t longest_to_partners(ompi_communicator_t& comm) noexcept {
    const auto processes = static_cast<std::uint32_t>(ompi_comm_size(&comm));
    const auto rank = static_cast<std::uint32_t>(ompi_comm_rank(&comm));
    std::size_t shortest = std::numeric_limits<std::size_t>::max();
    const auto look_at = [&](std::uint32_t partner) { shortest = std::min(shortest, longest_packet(comm, partner)); };
    for (std::size_t i = 0; i < coll::kAlgorithms; ++i) {
        const auto algorithm = static_cast<coll::Algorithm>(i);
        if (!coll::fits(algorithm, processes)) continue;
        // The steps after these have the same partners.
        for (std::uint32_t step = 0; step < coll::count_announcements(algorithm, processes); ++step) {
            const coll::Step s = coll::step_of(algorithm, processes, rank, step);
            look_at(s.to);
            look_at(s.from);
        }
    }
    return shortest;
}

// The longest short step that packets of `longest` bytes allow.
std::size_t short_limit(std::size_t longest) noexcept {
    return std::min(static_cast<std::size_t>(process.config.short_max), longest - sizeof(coll::Packet));
}

bool is_same(const Words& least, Word low, Word high) noexcept { return least[low] == -least[high]; }

}  // namespace

bool leaves_all(const State& state) noexcept {
    if (!state.decided || state.group || process.config.report > 1) return false;
    process.count(state.why_not, 0);
    return true;
}

Group* group_for(State& state, std::uint64_t bytes) noexcept {
    const auto left = [&state, bytes](WhyNot why) -> Group* {
        process.count(why, bytes / static_cast<std::uint64_t>(ompi_comm_size(state.comm)));
        return nullptr;
    };
    if (bytes == 0) return left(WhyNot::kNoBytes);
    if (state.group) return state.group.get();
    if (state.decided) return left(state.why_not);
    if (++state.calls < 2) return left(WhyNot::kTooFewCalls);

    state.decided = true;
    ompi_communicator_t& comm = *state.comm;
    if (!all_use_it(comm, process.config.priority)) return left(state.why_not = WhyNot::kPeerWithout);
    std::unique_ptr<Group> group;  // not the communicator's before all agree
    std::unique_ptr<coll::Tuner> tuner(new (std::nothrow) coll::Tuner(static_cast<std::uint32_t>(process.config.tune)));
    std::size_t longest = 0;
    WhyNot mine = WhyNot::kPeerRefuses;
    if (!receive_packets()) mine = WhyNot::kNoBml;
    else if (longest = longest_to_partners(comm); longest <= sizeof(coll::Packet) + coll::kMaxHandleBytes)
        mine = WhyNot::kUnreachable;
    else if (group = Group::create(comm, short_limit(longest)); !group || !tuner) mine = WhyNot::kNoMemory;

    const Config& c = process.config;
    const bool can = group && tuner;
    const Words words{can,
                      static_cast<std::int64_t>(can ? short_limit(longest) : 0),
                      kVersion,
                      -kVersion,
                      architecture(),
                      -architecture(),
                      c.algorithm,
                      -c.algorithm,
                      c.ring_min,
                      -c.ring_min,
                      c.tune,
                      -c.tune};
    Words least{};
    const int rc = comm.c_coll->coll_allreduce(words.data(), least.data(), static_cast<int>(words.size()), MPI_INT64_T,
                                               MPI_MIN, &comm, comm.c_coll->coll_allreduce_module);
    const bool same = is_same(least, kVersionLow, kVersionHigh) && is_same(least, kArchLow, kArchHigh) &&
                      is_same(least, kAlgorithmLow, kAlgorithmHigh) && is_same(least, kRingLow, kRingHigh) &&
                      is_same(least, kTuneLow, kTuneHigh);
    if (rc == OMPI_SUCCESS && same && least[kCan] == 1) {
        group->agree(static_cast<std::uint64_t>(least[kShortBytes]));
        tuner->agree(static_cast<std::uint64_t>(least[kShortBytes]));
        state.group = std::move(group);
        state.tuner = std::move(tuner);
        return state.group.get();
    }
    state.why_not = same ? mine : WhyNot::kParametersDiffer;
    return left(state.why_not);
}

}  // namespace coop::ag
