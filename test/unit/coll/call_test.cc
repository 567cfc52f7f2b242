// SPDX-License-Identifier: BSD-3-Clause
// Allgathers of several processes in one: packets and writes arrive in a random order, processes run in a random order,
// and several calls follow each other. Every byte is checked after each call.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "coop/coll/call.h"

namespace coop::coll {
namespace {

constexpr std::uint32_t kSlot = 64;  // bytes

enum class Long { kWrites, kParts, kPackets };  // how long steps travel

struct World;

struct Process {
    World* world;
    std::uint32_t rank;
    std::unique_ptr<Inbox> inbox;
    std::vector<std::byte> memory;
    std::uint32_t lap = 0;
    std::uint32_t unsettled = 0;
    std::unique_ptr<Call<Process>> call;

    // --- Wire ---
    bool announce(std::uint32_t to, std::uint32_t number);
    bool send_short(std::uint32_t to, std::uint32_t step, const Pieces& pieces);
    std::uint64_t send_long(std::uint32_t to, std::uint32_t step, std::uint64_t at, const Piece& piece,
                            const Announcement& there);
    bool send_empty(std::uint32_t to, std::uint32_t step);
    bool settle() const { return unsettled == 0; }

    void send(std::uint32_t to, Packet packet, const void* data, std::size_t bytes);
};

struct World {
    std::mt19937 random;
    Algorithm algorithm;
    Long way;
    std::vector<std::uint64_t> ends;
    std::vector<Process> processes;
    std::vector<std::function<void()>> under_way;
    const char* refused = nullptr;

    World(std::uint32_t seed, Algorithm a, Long w, std::vector<std::uint64_t> block_ends)
        : random(seed), algorithm(a), way(w), ends(std::move(block_ends)) {
        const auto p = static_cast<std::uint32_t>(ends.size());
        const std::uint32_t slots = has_slots(algorithm) ? count_steps(Algorithm::kBruck, p) : 0;
        for (std::uint32_t rank = 0; rank < p; ++rank)
            processes.push_back(
                {this, rank, Inbox::create(p, slots, kSlot), std::vector<std::byte>(ends.back() + 1), 0, 0, nullptr});
    }

    bool chance(std::uint32_t of) { return random() % of == 0; }

    static std::byte content(std::uint32_t lap, std::uint32_t rank, std::uint64_t offset) {
        return static_cast<std::byte>(lap * 101 + rank * 37 + offset * 7 + 1);
    }
    std::uint64_t begin_of(std::uint32_t block) const { return block == 0 ? 0 : ends[block - 1]; }

    void start(Process& process) {
        ++process.lap;
        std::fill(process.memory.begin(), process.memory.end(), std::byte{0});
        for (std::uint64_t i = begin_of(process.rank); i < ends[process.rank]; ++i)
            process.memory[i] = content(process.lap, process.rank, i);
        process.call = std::make_unique<Call<Process>>(
            process, *process.inbox, Target{process.memory.data(), Blocks(ends), algorithm, process.rank}, process.lap,
            kSlot);
    }

    void check(const Process& process) const {
        for (std::uint32_t rank = 0; rank < ends.size(); ++rank)
            for (std::uint64_t i = begin_of(rank); i < ends[rank]; ++i)
                ASSERT_EQ(process.memory[i], content(process.lap, rank, i))
                    << text(algorithm) << " p " << ends.size() << " rank " << process.rank << " lap " << process.lap
                    << " block " << rank;
        ASSERT_EQ(process.memory.back(), std::byte{0});
    }

    // Runs `laps` calls. False: nothing moves any more.
    bool run(std::uint32_t laps) {
        for (std::uint32_t idle = 0; idle < 100000; ++idle) {
            bool all_done = true;
            for (const Process& process : processes) all_done &= process.lap == laps && !process.call;
            if (all_done && under_way.empty()) return true;
            if (!under_way.empty() && chance(2)) {
                const std::size_t i = random() % under_way.size();
                std::swap(under_way[i], under_way.back());
                const auto event = std::move(under_way.back());
                under_way.pop_back();
                event();
                idle = 0;
            }
            Process& process = processes[random() % processes.size()];
            if (!process.call) {
                if (process.lap < laps) start(process);
            } else if (process.call->advance()) {
                check(process);
                process.call.reset();
                // The caller may change its memory at once.
                std::fill(process.memory.begin(), process.memory.end(), std::byte{0xEE});
            }
            if (refused || testing::Test::HasFatalFailure()) return false;
        }
        return false;
    }
};

void Process::send(std::uint32_t to, Packet packet, const void* data, std::size_t bytes) {
    packet.source = rank;
    packet.lap = lap;
    seal(packet);
    const auto from = static_cast<const std::byte*>(data);
    std::vector<std::byte> copy(from, from + bytes);
    world->under_way.push_back([world = world, to, packet, copy = std::move(copy)] {
        Inbox& there = *world->processes[to].inbox;
        const char* why = find_damage(packet, sizeof packet + copy.size());
        if (!why) why = there.on_packet(packet, copy.data(), nullptr);
        if (why) world->refused = why;
    });
}

bool Process::announce(std::uint32_t to, std::uint32_t number) {
    if (world->chance(3)) return false;
    Packet packet{};
    packet.kind = Kind::kAnnounce;
    packet.step = number;
    packet.bytes = world->way != Long::kPackets;
    packet.at = reinterpret_cast<std::uintptr_t>(memory.data());
    send(to, packet, nullptr, 0);
    return true;
}

bool Process::send_short(std::uint32_t to, std::uint32_t step, const Pieces& pieces) {
    if (world->chance(3)) return false;
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

bool Process::send_empty(std::uint32_t to, std::uint32_t step) {
    Packet packet{};
    packet.kind = Kind::kLanded;
    packet.step = step;
    packet.parts = 1;
    packet.bytes = 1;
    send(to, packet, nullptr, 0);
    return true;
}

std::uint64_t Process::send_long(std::uint32_t to, std::uint32_t step, std::uint64_t at, const Piece& piece,
                                 const Announcement& there) {
    if (world->chance(3)) return 0;
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
    packet.parts = world->way == Long::kParts ? 1 + world->random() % 4 : 1;
    packet.at = at > 0 ? 1 : 0;
    ++unsettled;
    auto* to_memory = reinterpret_cast<std::byte*>(there.address);
    world->under_way.push_back([this, to, packet, to_memory, piece] {
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

INSTANTIATE_TEST_SUITE_P(All, CollCall,
                         testing::Values(Algorithm::kRecursiveDoubling, Algorithm::kBruck, Algorithm::kRing,
                                         Algorithm::kNeighbour),
                         [](const auto& suite) { return text(suite.param); });

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

TEST(CollInbox, refuses_laps_other_than_the_open_one_and_the_next) {
    Alone a;
    EXPECT_STREQ(a.arrives(Kind::kShort, 2, 0, 32), "lap");
    EXPECT_STREQ(a.arrives(Kind::kShort, 0, 0, 32), "lap");
    EXPECT_EQ(a.arrives(Kind::kShort, 1, 0, 32), nullptr);
    a.inbox->open(1, a.target);
    EXPECT_EQ(a.arrives(Kind::kShort, 2, 0, 32), nullptr);
    EXPECT_STREQ(a.arrives(Kind::kShort, 3, 0, 32), "lap");
    a.inbox->close();
    EXPECT_STREQ(a.arrives(Kind::kShort, 1, 1, 32), "lap");
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
