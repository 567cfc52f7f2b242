// SPDX-License-Identifier: BSD-3-Clause
// Collective buffers: layout, tails, and several calls in which processes write short steps into each other's buffers.
// Processes run in a random order, and the parts of each write land at random times.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "coop/coll/call.h"

namespace coop::coll {
namespace {

// --- tails ---

TEST(CollBuffers, tails_name_the_lap_and_the_length) {
    for (const std::uint32_t lap : {1u, 2u, 255u, 70000u, UINT32_MAX})
        for (const std::uint64_t bytes : {0ul, 1ul, 12288ul, kMaxSlotBytes}) {
            const Tail tail = make_tail(lap, bytes);
            EXPECT_TRUE(is_whole(tail));
            EXPECT_EQ(lap_of(tail), lap);
            EXPECT_EQ(bytes_of(tail), bytes);
            EXPECT_NE(tail, 0u);
        }
}

TEST(CollBuffers, a_flipped_bit_of_a_tail_is_found) {
    for (const std::uint32_t lap : {1u, 2u, 1000u})
        for (const std::uint64_t bytes : {0ul, 7ul, 4096ul})
            for (int bit = 0; bit < 64; ++bit) EXPECT_FALSE(is_whole(make_tail(lap, bytes) ^ Tail{1} << bit)) << bit;
}

// --- layout ---

TEST(CollBuffers, slots_do_not_overlap_and_tails_are_aligned) {
    for (const std::uint64_t data : {1ul, 8ul, 56ul, 57ul, 64ul, 4096ul, kMaxSlotBytes}) {
        const BufferLayout layout{3, 5, data};
        std::uint64_t end = 0;
        for (std::uint32_t lap = 3; lap < 6; ++lap)
            for (std::uint32_t step = 0; step < 5; ++step) {
                const std::uint64_t begin = layout.begin_of(lap, step, data), tail = layout.tail_of(lap, step);
                EXPECT_GE(begin, end);
                EXPECT_EQ(tail % sizeof(Tail), 0u);
                EXPECT_EQ(begin + written(data), tail + sizeof(Tail));
                EXPECT_GE(tail, begin + data);
                end = tail + sizeof(Tail);
            }
        EXPECT_LE(end, layout.bytes());
    }
}

class Alone {
public:
    static constexpr BufferLayout kLayout{2, 3, 60};

    Alone() : words_(kLayout.bytes() / sizeof(Tail), ~Tail{0}), buffers_(kLayout, bytes()) {}

    std::byte* bytes() { return reinterpret_cast<std::byte*>(words_.data()); }
    Tail& tail(std::uint32_t lap, std::uint32_t step) { return words_[kLayout.tail_of(lap, step) / sizeof(Tail)]; }
    Buffers::State state(std::uint32_t lap, std::uint32_t step) const { return buffers_.look(lap, step).state; }
    const Buffers& buffers() const { return buffers_; }

private:
    std::vector<Tail> words_;
    Buffers buffers_;
};

TEST(CollBuffers, memory_that_was_used_before_holds_no_steps) {
    const Alone a;
    for (std::uint32_t lap = 1; lap <= 2; ++lap)
        for (std::uint32_t step = 0; step < 3; ++step) EXPECT_EQ(a.state(lap, step), Buffers::State::kEmpty);
}

TEST(CollBuffers, a_step_of_any_length_is_read_as_it_was_filled_in) {
    Alone a;
    std::vector<std::byte> memory(100);
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
    std::uint32_t lap = 1;
    for (std::uint64_t bytes = 0; bytes <= Alone::kLayout.data_bytes; ++bytes, ++lap) {
        Pieces pieces;  // the second one wraps
        pieces.add({70, std::min<std::uint64_t>(bytes, 30)});
        pieces.add({0, bytes - std::min<std::uint64_t>(bytes, 30)});
        fill(Alone::kLayout, a.bytes(), lap, 1, memory.data(), pieces);
        const Buffers::Slot slot = a.buffers().look(lap, 1);
        ASSERT_EQ(slot.state, Buffers::State::kFull);
        ASSERT_EQ(slot.bytes, bytes);
        for (std::uint64_t i = 0; i < bytes; ++i) ASSERT_EQ(slot.data[i], memory[(70 + i) % 100]);
        EXPECT_EQ(a.state(lap, 0), Buffers::State::kEmpty);
    }
}

TEST(CollBuffers, the_tail_of_an_earlier_lap_is_an_empty_slot) {
    Alone a;
    a.tail(5, 0) = make_tail(5, 8);
    EXPECT_EQ(a.state(5, 0), Buffers::State::kFull);
    EXPECT_EQ(a.state(7, 0), Buffers::State::kEmpty);
    EXPECT_EQ(a.state(70001, 0), Buffers::State::kEmpty);
}

TEST(CollBuffers, a_damaged_tail_is_found) {
    Alone a;
    for (int bit = 0; bit < 64; ++bit) {
        a.tail(5, 0) = make_tail(5, 8) ^ Tail { 1 } << bit;
        EXPECT_EQ(a.state(5, 0), Buffers::State::kDamaged) << bit;
    }
    a.tail(5, 0) = make_tail(7, 8);
    EXPECT_EQ(a.state(5, 0), Buffers::State::kDamaged) << "a later lap";
    a.tail(5, 0) = make_tail(5, Alone::kLayout.data_bytes + 1);
    EXPECT_EQ(a.state(5, 0), Buffers::State::kDamaged) << "longer than the slot";
}

TEST(CollBuffers, a_step_of_another_length_or_with_a_damaged_tail_is_not_taken) {
    for (const bool damaged : {false, true}) {
        Alone a;
        std::vector<std::byte> memory(4 * 16);
        const auto inbox = Inbox::create(4, 2, 60);
        inbox->use(a.buffers());
        inbox->open(1, {memory.data(), Blocks(4, 16), Algorithm::kRecursiveDoubling, 0});
        a.tail(1, 0) = damaged ? make_tail(1, 16) ^ 1 : make_tail(1, 15);
        EXPECT_FALSE(inbox->take_short(1, 0, 16));
        EXPECT_EQ(inbox->is_damaged(), damaged);
        EXPECT_EQ(inbox->length_differs(), !damaged);
        EXPECT_FALSE(inbox->take_short(1, 1, 32));
    }
}

// --- several calls of several processes ---

enum class Order { kTailLast, kTailFirst };

// A write in several parts, which land one after the other.
struct Write {
    std::byte* to;
    const std::byte* from;  // a slot of the sender, which it must not use again meanwhile
    std::deque<std::pair<std::size_t, std::size_t>> parts;  // offset, bytes
};

constexpr std::uint64_t kData = 40;

struct World;

struct Process {
    World* world;
    std::uint32_t rank;
    std::unique_ptr<Inbox> inbox;
    std::vector<Tail> received, sent;
    std::vector<std::byte> memory;
    std::uint32_t lap = 0;
    std::unique_ptr<Call<Process>> call;

    // --- Wire ---
    bool announce(std::uint32_t, std::uint32_t) { return ADD_FAILURE(), true; }
    bool send_short(std::uint32_t to, std::uint32_t step, const Pieces& pieces);
    std::uint64_t send_long(std::uint32_t, std::uint32_t, std::uint64_t, const Piece&, const Announcement&) {
        return ADD_FAILURE(), 1;
    }
    bool send_empty(std::uint32_t, std::uint32_t) { return ADD_FAILURE(), true; }
    bool settle() const { return true; }
};

struct World {
    World(std::uint32_t seed, Algorithm a, Order o, std::vector<std::uint64_t> block_ends, std::uint32_t lap_count,
          std::uint32_t laps_in_use = Inbox::kLaps)
        : random(seed), algorithm(a), order(o), ends(std::move(block_ends)),
          laps(lap_count), layout{laps_in_use, count_steps(a, static_cast<std::uint32_t>(ends.size())), kData} {
        const auto p = static_cast<std::uint32_t>(ends.size());
        for (std::uint32_t rank = 0; rank < p; ++rank) {
            auto& process = *processes.emplace_back(std::make_unique<Process>());
            process.world = this;
            process.rank = rank;
            process.inbox = Inbox::create(p, layout.steps, kData);
            process.received.resize(layout.bytes() / sizeof(Tail));
            process.sent.resize(layout.bytes() / sizeof(Tail));
            process.inbox->use(Buffers(layout, reinterpret_cast<std::byte*>(process.received.data())));
            process.memory.resize(ends.back());
        }
    }

    bool chance(std::uint32_t of) { return random() % of == 0; }
    std::uint64_t begin_of(std::uint32_t block) const { return block == 0 ? 0 : ends[block - 1]; }
    static std::byte content(std::uint32_t lap, std::uint32_t rank, std::uint64_t offset) {
        return static_cast<std::byte>(lap * 101 + rank * 37 + offset * 7 + 1);
    }

    void start(Process& process) {
        ++process.lap;
        std::fill(process.memory.begin(), process.memory.end(), std::byte{0});
        for (std::uint64_t i = begin_of(process.rank); i < ends[process.rank]; ++i)
            process.memory[i] = content(process.lap, process.rank, i);
        process.call = std::make_unique<Call<Process>>(
            process, *process.inbox, Target{process.memory.data(), Blocks(ends), algorithm, process.rank}, process.lap,
            kData);
    }

    bool is_right(const Process& process) const {
        for (std::uint32_t rank = 0; rank < ends.size(); ++rank)
            for (std::uint64_t i = begin_of(rank); i < ends[rank]; ++i)
                if (process.memory[i] != content(process.lap, rank, i)) return false;
        return true;
    }

    // Lands the next part of a write.
    void land(std::size_t index) {
        Write& write = writes[index];
        const auto [offset, bytes] = write.parts.front();
        std::memcpy(write.to + offset, write.from + offset, bytes);
        write.parts.pop_front();
        if (!write.parts.empty()) return;
        std::swap(write, writes.back());
        writes.pop_back();
    }

    void advance(Process& process) {
        if (!process.call) {
            if (process.lap < laps) start(process);
        } else if (process.call->advance()) {
            if (!is_right(process)) why = "wrong bytes";
            process.call.reset();
        } else if (process.inbox->is_damaged() || process.inbox->length_differs()) {
            why = "wrong tail";
        }
    }

    // Runs all calls; null: everything was right.
    const char* run() {
        for (std::uint32_t idle = 0; idle < 100000; ++idle) {
            const bool done = writes.empty() && std::all_of(processes.begin(), processes.end(), [&](const auto& each) {
                                  return each->lap == laps && !each->call;
                              });
            if (done || why) return why;
            if (!writes.empty() && chance(2)) {
                land(random() % writes.size());
                idle = 0;
            }
            advance(*processes[random() % processes.size()]);
        }
        return "stuck";
    }

    std::mt19937 random;
    Algorithm algorithm;
    Order order;
    std::vector<std::uint64_t> ends;
    std::uint32_t laps;
    BufferLayout layout;
    std::vector<std::unique_ptr<Process>> processes;
    std::vector<Write> writes;
    const char* why = nullptr;
};

bool Process::send_short(std::uint32_t to, std::uint32_t step, const Pieces& pieces) {
    if (world->chance(4)) return false;
    const BufferLayout& layout = world->layout;
    auto* const slots = reinterpret_cast<std::byte*>(sent.data());
    const std::uint64_t begin = fill(layout, slots, lap, step, memory.data(), pieces);
    Process& there = *world->processes[to];
    auto* const slot = reinterpret_cast<std::byte*>(there.received.data()) + begin;
    // The receiver must have left the call whose step was in the slot before.
    if (lap > layout.laps && there.lap + layout.laps <= lap && !(there.lap + layout.laps == lap && !there.call))
        world->why = "a slot is written before its last step was read";
    const std::uint64_t data = written(pieces.bytes()) - sizeof(Tail), half = data / 16 * 8;
    Write write{slot, slots + begin, {}};
    if (half > 0) write.parts.push_back({0, half});
    if (data > half) write.parts.push_back({half, data - half});
    const std::pair<std::size_t, std::size_t> tail{data, sizeof(Tail)};
    if (world->order == Order::kTailLast) write.parts.push_back(tail);
    else write.parts.push_front(tail);
    world->writes.push_back(std::move(write));
    return true;
}

std::vector<std::uint64_t> equal_blocks(std::uint32_t p, std::uint64_t bytes) {
    std::vector<std::uint64_t> ends;
    for (std::uint32_t i = 1; i <= p; ++i) ends.push_back(i * bytes);
    return ends;
}

class CollBufferCalls : public testing::TestWithParam<Algorithm> {};

TEST_P(CollBufferCalls, no_slot_is_rewritten_before_it_is_read_in_any_order_of_events) {
    for (std::uint32_t p = 2; p <= 9; ++p) {
        if (!fits(GetParam(), p)) continue;
        for (std::uint64_t bytes = 1; bytes * p / 2 <= kData && bytes <= 8; bytes += 3)
            for (std::uint32_t seed = 0; seed < 40; ++seed) {
                World world(seed, GetParam(), Order::kTailLast, equal_blocks(p, bytes), 6);
                ASSERT_STREQ(world.run(), nullptr) << text(GetParam()) << " p " << p << " seed " << seed;
            }
    }
}

TEST_P(CollBufferCalls, steps_without_bytes_arrive) {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        World world(seed, GetParam(), Order::kTailLast, {0, 8, 8, 8}, 6);
        ASSERT_STREQ(world.run(), nullptr) << seed;
    }
}

TEST_P(CollBufferCalls, one_lap_would_not_be_enough) {
    int seen = 0;
    for (std::uint32_t seed = 0; seed < 40; ++seed)
        seen += World(seed, GetParam(), Order::kTailLast, equal_blocks(4, 8), 6, 1).run() != nullptr;
    EXPECT_GT(seen, 0);
}

TEST_P(CollBufferCalls, a_tail_that_lands_before_its_data_is_caught) {
    int seen = 0;
    for (std::uint32_t seed = 0; seed < 40; ++seed)
        seen += World(seed, GetParam(), Order::kTailFirst, equal_blocks(4, 8), 6).run() != nullptr;
    EXPECT_GT(seen, 20);
}

INSTANTIATE_TEST_SUITE_P(All, CollBufferCalls, testing::Values(Algorithm::kRecursiveDoubling, Algorithm::kBruck),
                         [](const auto& suite) { return text(suite.param); });

}  // namespace
}  // namespace coop::coll
