// SPDX-License-Identifier: BSD-3-Clause
// Allgathers of several processes in one: packets and writes arrive in a random order, processes run in a random order,
// and each has several calls in progress or waiting. Every byte is checked after each call.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <list>
#include <random>
#include <vector>

#include "coop/coll/call.h"

namespace coop::coll {
namespace {

constexpr std::uint32_t kSlot = 64;  // bytes

enum class Long { kWrites, kParts, kPackets };  // how long steps travel

struct World;

struct Process;

// A call in progress, with its memory and its Wire.
struct Running {
    Process& process;
    std::uint32_t lap;
    std::vector<std::byte> memory;
    std::uint32_t unsettled = 0;
    std::unique_ptr<Call<Running>> call{};

    // --- Wire ---
    bool announce(std::uint32_t to, std::uint32_t number);
    bool send_short(std::uint32_t to, std::uint32_t step, const Pieces& pieces);
    std::uint64_t send_long(std::uint32_t to, std::uint32_t step, std::uint64_t at, const Piece& piece,
                            const Announcement& there);
    bool send_empty(std::uint32_t to, std::uint32_t step);
    bool settle() const { return unsettled == 0; }

    void send(std::uint32_t to, Packet packet, const void* data, std::size_t bytes);
};

struct Process {
    World* world;
    std::uint32_t rank;
    std::unique_ptr<Inbox> inbox;
    std::list<Running> running{};
    std::uint32_t lap = 0;
};

struct World {
    std::mt19937 random;
    Algorithm algorithm;
    Long way;
    std::vector<std::uint64_t> ends;
    std::vector<Process> processes;
    std::vector<std::function<void()>> under_way;
    const char* refused = nullptr;

    std::uint32_t outstanding;       // calls that a process has in progress at a time; the window allows fewer or more
    std::uint32_t most_ahead = 0;    // laps that a sender was ahead of what its receiver had completed
    std::uint32_t most_at_once = 0;  // calls in progress
    bool others_overtake = false;    // a call was complete before an earlier one

    World(std::uint32_t seed, Algorithm a, Long w, std::vector<std::uint64_t> block_ends, std::uint32_t at_once = 1)
        : random(seed), algorithm(a), way(w), ends(std::move(block_ends)), outstanding(at_once) {
        const auto p = static_cast<std::uint32_t>(ends.size());
        const std::uint32_t slots = has_slots(algorithm) ? count_steps(Algorithm::kBruck, p) : 0;
        for (std::uint32_t rank = 0; rank < p; ++rank)
            processes.push_back({this, rank, Inbox::create(p, slots, kSlot)});
    }

    bool chance(std::uint32_t of) { return random() % of == 0; }

    static std::byte content(std::uint32_t lap, std::uint32_t rank, std::uint64_t offset) {
        return static_cast<std::byte>(lap * 101 + rank * 37 + offset * 7 + 1);
    }
    std::uint64_t begin_of(std::uint32_t block) const { return block == 0 ? 0 : ends[block - 1]; }

    void start(Process& process) {
        const std::uint32_t lap = ++process.lap;
        Running& running = process.running.emplace_back(Running{process, lap, std::vector<std::byte>(ends.back() + 1)});
        for (std::uint64_t i = begin_of(process.rank); i < ends[process.rank]; ++i)
            running.memory[i] = content(lap, process.rank, i);
        running.call = std::make_unique<Call<Running>>(
            running, *process.inbox,
            Target{running.memory.data(), blocks_of(lap), algorithm, process.rank, order_for(process.rank)}, lap,
            kSlot);
        most_at_once = std::max(most_at_once, static_cast<std::uint32_t>(process.running.size()));
    }

    bool is_moved(const Running& running, std::uint32_t rank, std::uint64_t offset) const {
        if (rank == running.process.rank) return true;
        const Pieces pieces = blocks_of(running.lap).pieces_of({rank, 1});
        return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
            return offset >= piece.offset && offset < piece.offset + piece.bytes;
        });
    }
    void check(const Running& running) const {
        for (std::uint32_t rank = 0; rank < ends.size(); ++rank)
            for (std::uint64_t i = begin_of(rank); i < ends[rank]; ++i)
                ASSERT_EQ(running.memory[i], is_moved(running, rank, i) ? content(running.lap, rank, i) : std::byte{0})
                    << text(algorithm) << " p " << ends.size() << " rank " << running.process.rank << " lap "
                    << running.lap << " block " << rank;
        ASSERT_EQ(running.memory.back(), std::byte{0});
    }

    // Starts the next call or advances one of those in progress.
    void move(Process& process, std::uint32_t laps) {
        const std::size_t which = random() % (process.running.size() + 1);
        if (which == process.running.size()) {
            if (process.lap < laps && which < outstanding && process.inbox->may_open(process.lap + 1)) start(process);
            return;
        }
        const auto running = std::next(process.running.begin(), static_cast<std::ptrdiff_t>(which));
        if (!running->call->advance()) return;
        check(*running);
        others_overtake |= which > 0;
        // The caller may change its memory at once.
        std::fill(running->memory.begin(), running->memory.end(), std::byte{0xEE});
        graveyard.push_back(std::move(running->memory));
        process.running.erase(running);
    }
    std::vector<std::vector<std::byte>> graveyard;  // a write that comes too late lands here

    // Runs `laps` calls. False: nothing moves any more.
    bool run(std::uint32_t laps) {
        for (std::uint32_t idle = 0; idle < 100000; ++idle) {
            bool all_done = true;
            for (const Process& process : processes) all_done &= process.lap == laps && process.running.empty();
            if (all_done && under_way.empty()) return true;
            if (!under_way.empty() && chance(slow)) {
                const std::size_t i = random() % under_way.size();
                std::swap(under_way[i], under_way.back());
                const auto event = std::move(under_way.back());
                under_way.pop_back();
                event();
                idle = 0;
            }
            move(processes[random() % processes.size()], laps);
            if (refused || testing::Test::HasFatalFailure()) return false;
        }
        return false;
    }
    // Call n moves only part n modulo `parts` of each block, by a ring in this order.
    std::uint32_t parts = 1;
    std::vector<std::uint32_t> rank_at{};  // by position; empty: the order of ranks
    Blocks blocks_of(std::uint32_t lap) const {
        return parts == 1 ? Blocks(ends) : Blocks(ends).of_part(lap % parts, parts);
    }
    RingOrder order_for(std::uint32_t rank) const {
        return {rank_at, static_cast<std::uint32_t>(std::find(rank_at.begin(), rank_at.end(), rank) - rank_at.begin())};
    }
    std::uint32_t slow = 2;  // one of so many chances to arrive is taken
};

void Running::send(std::uint32_t to, Packet packet, const void* data, std::size_t bytes) {
    packet.source = process.rank;
    packet.lap = lap;
    seal(packet);
    const auto from = static_cast<const std::byte*>(data);
    std::vector<std::byte> copy(from, from + bytes);
    process.world->under_way.push_back([world = process.world, to, packet, copy = std::move(copy)] {
        const Process& receiver = world->processes[to];
        const std::uint32_t complete = receiver.running.empty() ? receiver.lap : receiver.running.front().lap - 1;
        world->most_ahead = std::max(world->most_ahead, packet.lap - complete);
        const char* why = find_damage(packet, sizeof packet + copy.size());
        if (!why) why = receiver.inbox->on_packet(packet, copy.data(), nullptr);
        if (why) world->refused = why;
    });
}

bool Running::announce(std::uint32_t to, std::uint32_t number) {
    if (process.world->chance(3)) return false;
    Packet packet{};
    packet.kind = Kind::kAnnounce;
    packet.step = number;
    packet.bytes = process.world->way != Long::kPackets;
    packet.at = reinterpret_cast<std::uintptr_t>(memory.data());
    send(to, packet, nullptr, 0);
    return true;
}

bool Running::send_short(std::uint32_t to, std::uint32_t step, const Pieces& pieces) {
    if (process.world->chance(3)) return false;
    std::vector<std::byte> data;
    for (const Piece& piece : pieces)
        data.insert(data.end(), &memory[piece.offset], &memory[piece.offset] + piece.bytes);
    Packet packet{};
    packet.kind = Kind::kShort;
    packet.step = step;
    packet.bytes = data.size();
    send(to, packet, data.data(), data.size());
    return true;
}

bool Running::send_empty(std::uint32_t to, std::uint32_t step) {
    Packet packet{};
    packet.kind = Kind::kLanded;
    packet.step = step;
    packet.parts = 1;
    packet.bytes = 1;
    send(to, packet, nullptr, 0);
    return true;
}

std::uint64_t Running::send_long(std::uint32_t to, std::uint32_t step, std::uint64_t at, const Piece& piece,
                                 const Announcement& there) {
    if (process.world->chance(3)) return 0;
    Packet packet{};
    packet.step = step;
    if (!there.writable) {
        packet.kind = Kind::kData;
        packet.bytes = std::min<std::uint64_t>(piece.bytes, 50);
        packet.at = at;
        send(to, packet, &memory[piece.offset], packet.bytes);
        return packet.bytes;
    }
    // The transport reads the memory when it writes it to the peer, some time before it reports completion. The notices
    // follow the data.
    packet.kind = Kind::kLanded;
    packet.bytes = piece.bytes;
    packet.parts = process.world->way == Long::kParts ? 1 + process.world->random() % 4 : 1;
    packet.at = at > 0 ? 1 : 0;
    ++unsettled;
    auto* to_memory = reinterpret_cast<std::byte*>(there.address);
    process.world->under_way.push_back([this, to, packet, to_memory, piece] {
        std::memcpy(to_memory + piece.offset, &memory[piece.offset], piece.bytes);
        for (std::uint32_t i = 0; i < packet.parts; ++i) send(to, packet, nullptr, 0);
        --unsettled;
    });
    return piece.bytes;
}

std::vector<std::uint64_t> equal_blocks(std::uint32_t p, std::uint64_t bytes) {
    std::vector<std::uint64_t> ends;
    for (std::uint32_t i = 1; i <= p; ++i) ends.push_back(i * bytes);
    return ends;
}

class CollCall : public testing::TestWithParam<Algorithm> {};

TEST_P(CollCall, gathers_blocks_of_every_size_in_any_order_of_events) {
    for (std::uint32_t p = 2; p <= 9; ++p) {
        if (!fits(GetParam(), p)) continue;
        for (std::uint64_t bytes : {1, 16, 33, 64, 65, 200})
            for (Long way : {Long::kWrites, Long::kParts, Long::kPackets})
                for (std::uint32_t seed = 0; seed < 3; ++seed) {
                    World world(seed, GetParam(), way, equal_blocks(p, bytes));
                    ASSERT_TRUE(world.run(4)) << text(GetParam()) << " p " << p << " bytes " << bytes << " "
                                              << (world.refused ? world.refused : "stuck");
                }
    }
}

TEST_P(CollCall, gathers_blocks_of_unequal_sizes_and_empty_ones) {
    std::mt19937 random(7);
    for (std::uint32_t p = 2; p <= 9; ++p) {
        if (!fits(GetParam(), p)) continue;
        for (std::uint32_t seed = 0; seed < 20; ++seed) {
            std::vector<std::uint64_t> ends;
            std::uint64_t end = 0;
            for (std::uint32_t i = 0; i < p; ++i) ends.push_back(end += random() % 3 == 0 ? 0 : random() % 150);
            World world(seed, GetParam(), static_cast<Long>(seed % 3), ends);
            ASSERT_TRUE(world.run(5)) << text(GetParam()) << " p " << p << " seed " << seed << " "
                                      << (world.refused ? world.refused : "stuck");
        }
    }
}

TEST_P(CollCall, gathers_with_several_calls_in_progress) {
    constexpr std::uint32_t kAtOnce[] = {2, Inbox::kWindow, 8};
    for (std::uint32_t p = 2; p <= 9; ++p) {
        if (!fits(GetParam(), p)) continue;
        for (std::uint64_t bytes : {1, 33, 65})
            for (Long way : {Long::kWrites, Long::kParts, Long::kPackets})
                for (const std::uint32_t at_once : kAtOnce) {
                    World world(p + at_once, GetParam(), way, equal_blocks(p, bytes), at_once);
                    ASSERT_TRUE(world.run(12)) << text(GetParam()) << " p " << p << " bytes " << bytes << " at once "
                                               << at_once << " " << (world.refused ? world.refused : "stuck");
                    EXPECT_LE(world.most_at_once, std::min(at_once, Inbox::kWindow));
                }
    }
}

TEST(CollRings, several_at_once_in_any_order_of_ranks_each_move_their_part) {
    for (std::uint32_t p = 2; p <= 7; ++p)
        for (const std::uint32_t parts : {2, 4})
            for (Long way : {Long::kWrites, Long::kParts, Long::kPackets})
                for (std::uint32_t seed = 0; seed < 3; ++seed) {
                    World world(seed, Algorithm::kRing, way, equal_blocks(p, 1000 + seed), parts);
                    world.parts = parts;
                    for (std::uint32_t rank = 0; rank < p; ++rank) world.rank_at.push_back(rank);
                    std::shuffle(world.rank_at.begin(), world.rank_at.end(), world.random);
                    ASSERT_TRUE(world.run(2 * parts))
                        << "p " << p << " parts " << parts << " " << (world.refused ? world.refused : "stuck");
                }
}

INSTANTIATE_TEST_SUITE_P(All, CollCall,
                         testing::Values(Algorithm::kRecursiveDoubling, Algorithm::kBruck, Algorithm::kRing,
                                         Algorithm::kNeighbour),
                         [](const auto& suite) { return text(suite.param); });

// The bound of inbox.h is reached, so fewer laps would not do, and never exceeded.
TEST(CollWindow, senders_are_at_most_two_windows_ahead) {
    for (std::uint32_t p = 2; p <= 9; ++p) {
        std::uint32_t most_ahead = 0;
        bool others_overtake = false;
        for (std::uint32_t seed = 0; seed < 60; ++seed) {
            World world(seed, Algorithm::kBruck, Long::kWrites, equal_blocks(p, seed % 2 == 0 ? 3 : 40), 8);
            world.slow = 1 + seed % 40;
            ASSERT_TRUE(world.run(40)) << "p " << p << " seed " << seed << " "
                                       << (world.refused ? world.refused : "stuck");
            most_ahead = std::max(most_ahead, world.most_ahead);
            others_overtake |= world.others_overtake;
        }
        EXPECT_LE(most_ahead, Inbox::kLaps);
        if (p == 2) {
            EXPECT_EQ(most_ahead, Inbox::kLaps);
        }
        EXPECT_TRUE(others_overtake);
    }
}

// --- packets that contradict the state ---

struct Alone {
    std::unique_ptr<Inbox> inbox = Inbox::create(4, 2, kSlot);
    std::vector<std::byte> memory = std::vector<std::byte>(4 * 32);
    Target target{memory.data(), Blocks(4, 32), Algorithm::kBruck, 0};

    const char* arrives(Kind kind, std::uint32_t lap, std::uint32_t step, std::uint64_t bytes, std::uint64_t at = 0,
                        std::uint32_t parts = 0) {
        static const std::byte data[256]{};
        Packet packet{};
        packet.kind = kind;
        packet.lap = lap;
        packet.step = step;
        packet.bytes = bytes;
        packet.at = at;
        packet.parts = parts;
        return inbox->on_packet(packet, data, nullptr);
    }
};

TEST(CollInbox, refuses_laps_beyond_two_windows) {
    Alone a;
    EXPECT_STREQ(a.arrives(Kind::kShort, 0, 0, 32), "lap");
    EXPECT_STREQ(a.arrives(Kind::kShort, Inbox::kLaps + 1, 0, 32), "lap");
    for (std::uint32_t lap = Inbox::kLaps; lap > 0; --lap) EXPECT_EQ(a.arrives(Kind::kShort, lap, 0, 32), nullptr);
    a.inbox->open(1, a.target);
    EXPECT_STREQ(a.arrives(Kind::kShort, Inbox::kLaps + 1, 0, 32), "lap");
    a.inbox->close(1);
    EXPECT_EQ(a.arrives(Kind::kShort, Inbox::kLaps + 1, 0, 32), nullptr);
    EXPECT_STREQ(a.arrives(Kind::kShort, 1, 1, 32), "lap");
}

TEST(CollInbox, opens_a_window_of_calls_after_the_last_that_all_are_complete_up_to) {
    Alone a;
    for (std::uint32_t lap = 1; lap <= Inbox::kWindow; ++lap) {
        EXPECT_TRUE(a.inbox->may_open(lap));
        a.inbox->open(lap, a.target);
    }
    EXPECT_FALSE(a.inbox->may_open(Inbox::kWindow + 1));
    a.inbox->close(2);
    EXPECT_FALSE(a.inbox->may_open(Inbox::kWindow + 1));
    EXPECT_STREQ(a.arrives(Kind::kShort, 2, 0, 32), "lap");
    a.inbox->close(1);
    EXPECT_TRUE(a.inbox->may_open(Inbox::kWindow + 2));
    EXPECT_FALSE(a.inbox->may_open(Inbox::kWindow + 3));
}

TEST(CollInbox, refuses_what_does_not_fit_the_step) {
    Alone a;
    a.inbox->open(1, a.target);
    EXPECT_STREQ(a.arrives(Kind::kShort, 1, 2, 32), "step");
    EXPECT_STREQ(a.arrives(Kind::kData, 1, 2, 1), "step");
    EXPECT_STREQ(a.arrives(Kind::kData, 1, UINT32_MAX, 1), "step");
    EXPECT_STREQ(a.arrives(Kind::kLanded, 1, 2, 1, 0, 1), "step");
    EXPECT_STREQ(a.arrives(Kind::kAnnounce, 1, 2, 1), "step");
    EXPECT_STREQ(a.arrives(Kind::kAnnounce, 2, 2, 1), "number of an announcement");
    EXPECT_STREQ(a.arrives(Kind::kShort, 2, 2, 1), "step of a short packet");
    EXPECT_STREQ(a.arrives(Kind::kShort, 1, 0, kSlot + 1), "bytes of a short packet");
    EXPECT_STREQ(a.arrives(Kind::kShort, 1, 0, 31), "bytes of a short packet");
    EXPECT_STREQ(a.arrives(Kind::kData, 1, 1, 65), "bytes of data");
    EXPECT_STREQ(a.arrives(Kind::kData, 1, 1, 32, 33), "bytes of data");
    EXPECT_STREQ(a.arrives(Kind::kData, 1, 1, 1, UINT64_MAX), "bytes of data");
    EXPECT_STREQ(a.arrives(Kind::kLanded, 1, 1, 65, 0, 1), "bytes of a notice");
    EXPECT_STREQ(a.arrives(Kind::kLanded, 1, 1, 64, 2, 1), "piece");
    EXPECT_STREQ(a.arrives(Kind::kData, 2, 1, 1), "lap of data");
    EXPECT_STREQ(a.arrives(Kind::kLanded, 2, 1, 1, 0, 1), "lap of a notice");
}

TEST(CollInbox, notices_that_an_early_packet_had_another_length) {
    Alone a;
    EXPECT_EQ(a.arrives(Kind::kShort, 1, 0, 31), nullptr);
    a.inbox->open(1, a.target);
    EXPECT_FALSE(a.inbox->take_short(1, 0, 32));
    EXPECT_TRUE(a.inbox->length_differs());
}

TEST(CollInbox, refuses_short_packets_in_an_algorithm_without_slots) {
    Alone a;
    a.target.algorithm = Algorithm::kRing;
    a.inbox->open(1, a.target);
    EXPECT_STREQ(a.arrives(Kind::kShort, 1, 0, 32), "step of a short packet");
}

TEST(CollInbox, refuses_what_has_arrived_before) {
    Alone a;
    EXPECT_EQ(a.arrives(Kind::kShort, 1, 0, 32), nullptr);
    EXPECT_STREQ(a.arrives(Kind::kShort, 1, 0, 32), "step (arrived before)");
    EXPECT_EQ(a.arrives(Kind::kAnnounce, 1, 0, 1), nullptr);
    EXPECT_STREQ(a.arrives(Kind::kAnnounce, 1, 0, 1), "announcement (arrived before)");
}

TEST(CollPacket, a_flipped_bit_is_found) {
    Packet packet{};
    packet.kind = Kind::kShort;
    packet.bytes = 5;
    seal(packet);
    ASSERT_EQ(find_damage(packet, sizeof packet + 5), nullptr);
    EXPECT_STREQ(find_damage(packet, sizeof packet + 4), "length");
    EXPECT_STREQ(find_damage(packet, 3), "length");
    for (std::size_t bit = 0; bit < 8 * sizeof packet; ++bit) {
        Packet damaged = packet;
        reinterpret_cast<unsigned char*>(&damaged)[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
        EXPECT_NE(find_damage(damaged, sizeof packet + 5), nullptr) << bit;
    }
}

}  // namespace
}  // namespace coop::coll
