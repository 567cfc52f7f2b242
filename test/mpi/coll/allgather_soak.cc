// SPDX-License-Identifier: BSD-3-Clause
// Many calls of MPI_Allgather, MPI_Allgatherv and MPI_Iallgather(v) on several communicators, with point-to-point messages
// between them, in an order that is random but the same on all ranks (gathering.h, pending.h). Every byte is checked, and
// some bytes after the end of each result. Needs trials (tune).
//
// Arguments:
//
//     calls=N      number of calls; default 1500
//     seed=S       another order
#include <memory>

#include "pending.h"

namespace {

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

constexpr std::size_t kCommunicators = 5, kMostOutstanding = 9;

unsigned long number_after(const std::string& prefix, unsigned long otherwise) {
    const std::string word = word_after(prefix);
    return word.empty() ? otherwise : std::stoul(word);
}

// Short lengths are as frequent as long ones.
std::size_t random_length(pattern::Random& random) {
    const std::size_t most = std::size_t{1} << random.below(18);
    return most / 2 + random.below(most) + 1;
}

std::vector<Block> random_blocks(pattern::Random& random, int processes) {
    std::vector<Block> blocks;
    int at = 0;
    for (int rank = 0; rank < processes; ++rank) {
        const int count = random.one_in(3) ? 0 : static_cast<int>(random_length(random) / 4);
        blocks.push_back({count, at});
        at += count + (random.one_in(4) ? 7 : 0);
    }
    return blocks;
}

// A communicator with its outstanding calls; null communicator: this rank is not a member.
struct Group {
    std::unique_ptr<Gathering> gathering{};
    Several several{};
};

// All ranks; in reverse; all but the last one; those of even and of odd rank.
void make(Group& group, const mpitest::Env& env, std::size_t kind) {
    const int color = kind == 2 ? (env.rank + 1 < env.size ? 0 : MPI_UNDEFINED) : kind == 3 ? env.rank % 2 : 0;
    MPI_Comm comm;
    MPI_Comm_split(env.comm, color, kind == 1 ? -env.rank : env.rank, &comm);
    int size = 0;
    if (comm != MPI_COMM_NULL) MPI_Comm_size(comm, &size);
    if (size > 1) group.gathering = std::make_unique<Gathering>(comm);
    else if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

void exchange_message(const Gathering& on, std::uint64_t number, std::size_t bytes) {
    const auto key = [&](int rank) { return pattern::key({number, static_cast<std::uint64_t>(rank), 77}); };
    const int next = (on.rank() + 1) % on.size(), before = (on.rank() + on.size() - 1) % on.size();
    std::vector<unsigned char> sent(bytes), received(bytes);
    pattern::fill(key(on.rank()), 0, sent.data(), bytes);
    CHECK_MPI(MPI_Sendrecv(sent.data(), static_cast<int>(bytes), MPI_BYTE, next, 3, received.data(),
                           static_cast<int>(bytes), MPI_BYTE, before, 3, on.comm(), MPI_STATUS_IGNORE));
    CHECK_PATTERN(key(before), received.data(), bytes);
}

void complete_all(Group& group, pattern::Random& random) {
    const Way way = static_cast<Way>(random.below(kWays));
    if (!group.several.empty()) complete(group.several, way);
    group.several.clear();
}

}  // namespace

CASE(calls_of_all_kinds_on_several_communicators) {
    const unsigned long calls = number_after("calls=", 1500);
    pattern::Random random(number_after("seed=", 1));  // the same on all ranks
    std::array<Group, kCommunicators> groups;
    for (std::size_t i = 0; i < groups.size(); ++i) make(groups[i], env, i);
    for (unsigned long call = 0; call < calls; ++call) {
        const std::size_t which = random.below(groups.size());
        Group& group = groups[which];
        Gathering* const on = group.gathering.get();
        const unsigned action = static_cast<unsigned>(random.below(200));
        // Every rank takes the same random numbers, whether it is a member or not.
        const std::size_t bytes = random_length(random);
        pattern::Random own(random.below(1u << 30));
        if (action == 0) {
            complete_all(group, own);
            group.gathering.reset();
            make(group, env, which);
        } else if (!on) {
            continue;
        } else if (action < 80) {
            on->equal(bytes, own.one_in(3));
        } else if (action < 110) {
            on->unequal(random_blocks(own, on->size()), own.one_in(3));
        } else if (action < 140) {
            if (group.several.size() == kMostOutstanding) complete_all(group, own);
            if (own.one_in(2)) start(group.several, *on, call, bytes);
            else group.several.emplace_back(on->comm(), call, random_blocks(own, on->size()), true);
        } else if (action < 170) {
            exchange_message(*on, call, bytes);
        } else {
            complete_all(group, own);
        }
    }
    for (Group& group : groups) complete_all(group, random), group.gathering.reset();
}
