// SPDX-License-Identifier: BSD-3-Clause
// Allgathers by coll/rdmaag (gathering.h): sizes around each limit, blocks of unequal length, datatypes. At least two
// ranks; most cases run with each number of processes up to that of the job.
#include <set>

#include "gathering.h"

namespace {

// Blocks whose steps are just below and above the limits.
std::vector<std::size_t> blocks_of_interest(int processes) {
    std::set<std::size_t> all = {1, 2, 7, 8, 63, 64, 65, 1000};
    constexpr std::size_t kVader = 4096, kHeader = 40;
    for (const std::size_t limit : {short_max(), kVader - kHeader})
        for (const std::size_t part : {limit, limit / 2, limit / 4})
            for (const std::size_t n : {part - 1, part, part + 1}) all.insert(n);
    const auto p = static_cast<std::size_t>(processes);
    if (has_argument("node") && node_slot() < (1 << 20))
        for (const std::size_t limit : {std::size_t{48}, node_slot() / 2, node_slot(), node_slot() * 3 / 2})
            for (const std::size_t n : {limit - 1, limit, limit + 1}) all.insert(n);
    if (ring_min() > 0) all.insert({ring_min() - 1, ring_min(), ring_min() + 1});
    all.insert({32768, 65537, 100 * 1024, 3 * 1024 * 1024 / p});
    return {all.begin(), all.end()};
}

class Types {
public:
    Types() {
        const int ints = 6;
        add_plain();
        MPI_Datatype type;
        MPI_Type_contiguous(ints, MPI_INT, &type);
        add(type, {0, 1, 2, 3, 4, 5});
        MPI_Type_vector(3, 2, 3, MPI_INT, &type);
        add(type, {0, 1, 3, 4, 6, 7});
        MPI_Type_vector(3, 2, 3, MPI_INT, &type);
        add(resized(type, 0, 11), {0, 1, 3, 4, 6, 7});
        MPI_Type_contiguous(ints, MPI_INT, &type);
        add(resized(type, 0, 7), {0, 1, 2, 3, 4, 5});
        const int lengths[] = {1, 1, 1, 1, 1, 1}, descending[] = {5, 4, 3, 2, 1, 0}, shifted[] = {2, 3, 4, 5, 6, 7},
                  before[] = {-2, -1, 0, 1, 2, 3};
        MPI_Type_indexed(ints, lengths, descending, MPI_INT, &type);
        add(type, {5, 4, 3, 2, 1, 0});
        MPI_Type_indexed(ints, lengths, shifted, MPI_INT, &type);
        add(resized(type, 0, 8), {2, 3, 4, 5, 6, 7});
        MPI_Type_indexed(ints, lengths, before, MPI_INT, &type);
        add(resized(type, -2, 6), {-2, -1, 0, 1, 2, 3});
        // A struct of two pieces that touch, in the other order.
        const int halves[] = {3, 3};
        const MPI_Aint places[] = {12, 0};
        const MPI_Datatype kinds[] = {MPI_INT, MPI_INT};
        MPI_Type_create_struct(2, halves, places, kinds, &type);
        add(type, {3, 4, 5, 0, 1, 2});
    }
    ~Types() {
        for (std::size_t i = 1; i < all_.size(); ++i) MPI_Type_free(&all_[i].type);
    }
    Types(const Types&) = delete;

    std::size_t size() const { return all_.size(); }
    const Shape& operator[](std::size_t i) const { return all_[i % all_.size()]; }

private:
    void add_plain() { all_.push_back({MPI_INT, sizeof(int), sizeof(int), {0}}); }
    void add(MPI_Datatype type, std::vector<MPI_Aint> ints) {
        MPI_Type_commit(&type);
        MPI_Aint lower, extent;
        MPI_Type_get_extent(type, &lower, &extent);
        for (MPI_Aint& place : ints) place *= static_cast<MPI_Aint>(sizeof(int));
        all_.push_back({type, extent, sizeof(int), std::move(ints)});
    }
    static MPI_Datatype resized(MPI_Datatype old, int lower_ints, int extent_ints) {
        const auto bytes = static_cast<MPI_Aint>(sizeof(int));
        MPI_Datatype type;
        MPI_Type_create_resized(old, lower_ints * bytes, extent_ints * bytes, &type);
        MPI_Type_free(&old);
        return type;
    }

    std::vector<Shape> all_;
};

// Counts in elements of `receive` that make blocks of the same lengths on ranks with different types: the plain type
// has one int in an element, the others have six.
int in_elements_of(const Shape& receive, int sixes) { return receive.parts.size() == 1 ? 6 * sixes : sixes; }

std::vector<Block> one_after_the_other(const std::vector<int>& counts) {
    std::vector<Block> blocks;
    int at = 0;
    for (const int count : counts) blocks.push_back({count, at}), at += count;
    return blocks;
}

// The blocks lie in a random order with random gaps.
std::vector<Block> scattered(const std::vector<int>& counts, pattern::Random& random) {
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    std::vector<Block> blocks(counts.size());
    int at = 0;
    for (const std::size_t rank : order) {
        at += static_cast<int>(random.below(3) * random.below(50));
        blocks[rank] = {counts[rank], at};
        at += counts[rank];
    }
    return blocks;
}

const mpitest::Configure settings([](mpitest::Settings& s) { s.hang_seconds = 60; });

}  // namespace

CASE(blocks_of_every_size) {
    with_each_number(env, [](Gathering& some) {
        for (const std::size_t bytes : blocks_of_interest(some.size())) some.equal(bytes);
    });
}

CASE(blocks_in_place) {
    with_each_number(env, [](Gathering& some) {
        for (const std::size_t bytes : blocks_of_interest(some.size())) some.equal(bytes, true);
    });
}

CASE(blocks_of_unequal_length) {
    with_each_number(env, [](Gathering& some) {
        pattern::Random random(static_cast<std::uint64_t>(some.size()));  // the same on all ranks
        for (const std::size_t most : {4, 100, 3000, 5000, 20000, 100000})
            for (int i = 0; i < 4; ++i) {
                std::vector<int> counts;
                for (int rank = 0; rank < some.size(); ++rank)
                    counts.push_back(random.one_in(4) ? 0 : static_cast<int>(random.below(most)));
                some.unequal(i < 2 ? one_after_the_other(counts) : scattered(counts, random), i % 2 == 1);
            }
    });
}

CASE(one_block_all_but_one_or_all_blocks_are_empty) {
    with_each_number(env, [](Gathering& some) {
        const auto size = static_cast<std::size_t>(some.size());
        for (const int length : {1, 1000, 30000})
            for (std::size_t one = 0; one < size; ++one) {
                std::vector<int> counts(size, length);
                counts[one] = 0;
                some.unequal(one_after_the_other(counts));
                counts.assign(size, 0);
                counts[one] = length;
                some.unequal(one_after_the_other(counts), one % 2 == 0);
            }
        some.unequal(one_after_the_other(std::vector<int>(size, 0)));
        some.equal(1);
    });
}

// Open MPI returns from calls with counts of 0 by itself, but not from these.
CASE(elements_without_bytes_are_left_to_others) {
    Gathering all(duplicate(env.comm));
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int i = 0; i < 3; ++i) {
        const auto before = counters().no_bytes();
        Buffer result(10);
        const Buffer untouched = result;
        CHECK_MPI(MPI_Allgather(nullptr, 2, empty, result.data(), 2, empty, all.comm()));
        CHECK_EQ(counters().no_bytes() - before, 1);
        result.check_equals(untouched, "elements without bytes");
        all.equal(100);
    }
    MPI_Type_free(&empty);
}

CASE(every_type_is_sent_and_received) {
    const Types types;
    with_each_number(env, [&types](Gathering& some) {
        for (std::size_t send = 0; send < types.size(); ++send)
            for (std::size_t receive = 0; receive < types.size(); ++receive) {
                if (some.size() > 4 && (send + 2 * receive) % 9 != 0) continue;
                for (const int sixes : {1, 40, 1000})
                    some.equal(in_elements_of(types[receive], sixes), types[send], types[receive], sixes == 40);
            }
    });
}

CASE(ranks_use_different_types_of_equal_signature) {
    const Types types;
    with_each_number(env, [&types](Gathering& some) {
        for (std::size_t shift = 0; shift<types.size(); shift += some.size()> 4 ? 4 : 1) {
            const auto rank = static_cast<std::size_t>(some.rank());
            const Shape &send = types[rank + shift], &receive = types[3 * rank + 2 * shift];
            for (const int sixes : {1, 60, 2000}) {
                some.equal(in_elements_of(receive, sixes), send, receive, false);
                std::vector<int> counts;
                for (int other = 0; other < some.size(); ++other)
                    counts.push_back(in_elements_of(receive, other % 3 == 1 ? 0 : sixes + other));
                pattern::Random random(shift);
                some.unequal(scattered(counts, random), send, receive, shift % 2 == 0);
            }
        }
    });
}

// An error of the caller, but nothing beyond a block may be written.
CASE(a_block_that_is_too_long_is_cut) {
    if (!left().empty()) return;
    Gathering all(duplicate(env.comm));
    MPI_Comm_set_errhandler(all.comm(), MPI_ERRORS_RETURN);
    for (const std::size_t bytes : {100, 50000}) {
        all.equal(bytes);
        Buffer sent(bytes + 10), result(bytes * static_cast<std::size_t>(env.size)), expected = result;
        const std::size_t too_many = env.rank == 0 ? 10 : 0;
        place(Shape{}, sent.data(), bytes + too_many, static_cast<std::uint64_t>(env.rank));
        for (int rank = 0; rank < env.size; ++rank)
            place(Shape{}, expected.data() + static_cast<std::size_t>(rank) * bytes, bytes,
                  static_cast<std::uint64_t>(rank));
        CHECK_ERROR(MPI_Allgather(sent.data(), static_cast<int>(bytes + too_many), MPI_BYTE, result.data(),
                                  static_cast<int>(bytes), MPI_BYTE, all.comm()),
                    env.rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        result.check_equals(expected, "block that is too long");
    }
}
