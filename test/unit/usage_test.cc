// SPDX-License-Identifier: BSD-3-Clause
//
// base/usage.h: counting, the words received from a peer, and the printed tables.
#include "coop/base/sparse_usage.h"
#include "coop/base/usage.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <thread>

namespace coop {
namespace {

constexpr const char* kRows[] = {"eager", "send", "rget"};
constexpr const char* kReasons[] = {"fits the eager limit", "below pml_coop_rdma_min", "asked for", "last"};
constexpr UsageLabels kLabels = {kRows, kReasons};

constexpr std::size_t kHead = 3;  // words before the first entry

Usage table() { return Usage(3, 4); }

Usage busy_table() {
    Usage usage = table();
    usage.add(0, 0, 0);
    usage.add(0, 0, 8);
    usage.add(0, 0, 64);
    usage.add(1, 1, 100'000);
    usage.add(2, 2, std::uint64_t{5} << 30);
    return usage;
}

std::size_t widest_line(const std::string& text) {
    std::istringstream lines(text);
    std::size_t widest = 0;
    for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
    return widest;
}

// The receiver's complaint about the words of busy_table() with one error.
template <class Spoil>
std::string complaint(Spoil spoil) {
    std::vector<std::uint64_t> words = busy_table().to_words();
    spoil(words);
    Usage receiver = table();
    const auto defect = receiver.merge_words(words);
    EXPECT_EQ(receiver.messages(), defect ? 0u : 5u) << "all or nothing";
    return defect.value_or("accepted");
}

TEST(Usage, counts_messages_and_bytes_where_they_belong) {
    const Usage usage = busy_table();
    EXPECT_EQ(usage.messages(0, size_class(0), 0), 1u);
    EXPECT_EQ(usage.messages(0, size_class(8), 0), 2u);
    EXPECT_EQ(usage.bytes(0, size_class(8), 0), 72u);
    EXPECT_EQ(usage.messages(0), 3u);
    EXPECT_EQ(usage.bytes(1), 100'000u);
    EXPECT_EQ(usage.messages(2, kSizeClasses - 1, 2), 1u);
    EXPECT_EQ(usage.messages(), 5u);
    EXPECT_EQ(usage.bytes(), 72u + 100'000u + (std::uint64_t{5} << 30));
}

TEST(Usage, a_column_counts_in_the_cells_of_its_row_and_reason) {
    Usage usage = table(), expected = table();
    Usage::Column column = usage.column(1, 2);
    for (const std::uint64_t bytes : {0ull, 1ull, 64ull, 65ull, 100'000ull, ~0ull >> 1}) {
        column.add(bytes);
        expected.add(1, 2, bytes);
    }
    EXPECT_EQ(usage.to_words(), expected.to_words());
    EXPECT_EQ(usage.messages(), 6u);
}

TEST(Usage, a_column_that_the_table_does_not_have_counts_nothing) {
    Usage usage = table();
    for (Usage::Column column : {usage.column(3, 0), usage.column(0, 4), Usage::Column()}) column.add(8);
    EXPECT_EQ(usage.messages(), 0u);
}

TEST(Usage, ignores_rows_reasons_and_classes_that_it_does_not_have) {
    Usage usage = table();
    usage.add(3, 0, 8);
    usage.add(0, 4, 8);
    usage.add(UINT32_MAX, UINT32_MAX, 8);
    EXPECT_EQ(usage.messages(), 0u);
    EXPECT_EQ(usage.messages(3, 0, 0), 0u);
    EXPECT_EQ(usage.bytes(0, -1, 0), 0u);
    EXPECT_EQ(usage.bytes(0, kSizeClasses, 0), 0u);
    EXPECT_EQ(usage.messages(7), 0u);
}

TEST(Usage, a_table_that_is_too_large_or_empty_has_no_rows) {
    EXPECT_EQ(Usage(Usage::kMaxRows + 1, 1).shape().rows, 0u);
    EXPECT_EQ(Usage(1, Usage::kMaxReasons + 1).shape().rows, 0u);
    EXPECT_EQ(Usage(0, 1).shape().rows, 0u);
    EXPECT_EQ(Usage(1, 0).shape().rows, 0u);
    EXPECT_EQ(Usage(Usage::kMaxRows, Usage::kMaxReasons).shape().rows, Usage::kMaxRows);
    Usage none;
    none.add(0, 0, 8);
    EXPECT_EQ(none.messages(), 0u);
    EXPECT_TRUE(none.merge(Usage()));
    EXPECT_FALSE(none.merge_words(none.to_words()));
}

TEST(Usage, threads_lose_no_message) {
    Usage usage = table();
    usage.set_threads(true);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 20000; ++i) usage.add(0, 0, 3);
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(usage.messages(), 80000u);
    EXPECT_EQ(usage.bytes(), 240000u);
}

TEST(Usage, merges_a_table_of_its_own_shape_only) {
    Usage usage = busy_table();
    EXPECT_TRUE(usage.merge(busy_table()));
    EXPECT_EQ(usage.messages(), 10u);
    EXPECT_EQ(usage.bytes(1), 200'000u);
    EXPECT_FALSE(usage.merge(Usage(3, 5)));
    EXPECT_FALSE(usage.merge(Usage(2, 4)));
    EXPECT_EQ(usage.messages(), 10u);
}

TEST(UsageWords, bring_the_counts_over) {
    Usage receiver = busy_table();
    EXPECT_EQ(receiver.merge_words(busy_table().to_words()), std::nullopt);
    Usage twice = busy_table();
    ASSERT_TRUE(twice.merge(busy_table()));
    EXPECT_EQ(receiver.to_words(), twice.to_words());
}

TEST(UsageWords, hold_only_cells_in_use) {
    EXPECT_EQ(table().to_words().size(), kHead);
    EXPECT_EQ(busy_table().to_words().size(), kHead + 4 * 3);
}

TEST(UsageWords, a_sum_that_overflows_stays_at_the_largest_number) {
    std::vector<std::uint64_t> words = busy_table().to_words();
    words[kHead + 1] = UINT64_MAX;  // empty messages: any number of them is possible
    Usage receiver = table();
    EXPECT_EQ(receiver.merge_words(words), std::nullopt);
    EXPECT_EQ(receiver.merge_words(words), std::nullopt);
    EXPECT_EQ(receiver.messages(0, 0, 0), UINT64_MAX);
}

TEST(UsageWords, a_defect_is_named_by_its_field) {
    using Words = std::vector<std::uint64_t>;
    EXPECT_EQ(complaint([](Words& w) { w.resize(2); }), "length: 2 words are less than a header");
    EXPECT_EQ(complaint([](Words& w) { w.clear(); }), "length: 0 words are less than a header");
    EXPECT_EQ(complaint([](Words& w) { w[0] ^= std::uint64_t{1} << 40; }),
              "magic: these are not the words of a usage table");
    EXPECT_EQ(complaint([](Words& w) { w[0] += 1; }), "version: 2 instead of 1");
    EXPECT_EQ(complaint([](Words& w) { w[1] += 1; }), "shape: 3 x 11 x 5 instead of 3 x 11 x 4");
    EXPECT_EQ(complaint([](Words& w) { w[2] += 1; }), "entries: 5 do not fit 15 words");
    EXPECT_EQ(complaint([](Words& w) { w[2] = UINT64_MAX; }), "entries: 18446744073709551615 do not fit 15 words");
    EXPECT_EQ(complaint([](Words& w) { w.pop_back(); }), "entries: 4 do not fit 14 words");
    EXPECT_EQ(complaint([](Words& w) { w.push_back(0); }), "entries: 4 do not fit 16 words");
    EXPECT_EQ(complaint([](Words& w) { w[kHead + 9] = 132; }), "entry 3, index: 132 is not below 132");
    EXPECT_EQ(complaint([](Words& w) { w[kHead + 9] = UINT64_MAX; }),
              "entry 3, index: 18446744073709551615 is not below 132");
    EXPECT_EQ(complaint([](Words& w) { w[kHead + 3] = 0; }), "entry 1, index: 0 is not above the previous one");
    EXPECT_EQ(complaint([](Words& w) { w[kHead + 4] = 0; }), "entry 1, messages: 0");
    EXPECT_EQ(complaint([](Words& w) { w[kHead + 2] = 1; }), "entry 0, bytes: 1 in 1 messages of 0 B");
    EXPECT_EQ(complaint([](Words& w) { w[kHead + 5] = 129; }), "entry 1, bytes: 129 in 2 messages of <= 64 B");
    EXPECT_EQ(complaint([](Words& w) { w[kHead + 5] = 1; }), "entry 1, bytes: 1 in 2 messages of <= 64 B");
    EXPECT_EQ(complaint([](Words& w) { w[kHead + 10] = UINT64_MAX; }),
              "entry 3, bytes: 5368709120 in 18446744073709551615 messages of > 64 MiB");
}

TEST(UsageWords, random_damage_is_refused_or_harmless) {
    constexpr unsigned kSeed = 20240611;
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
    std::mt19937_64 random(kSeed);
    const std::vector<std::uint64_t> whole = busy_table().to_words();
    for (int i = 0; i < 20000; ++i) {
        std::vector<std::uint64_t> words = whole;
        for (std::uint64_t n = random() % 3 + 1; n > 0; --n)
            words[random() % words.size()] ^= random() % 4 ? std::uint64_t{1} << (random() % 64) : random();
        if (random() % 8 == 0) words.resize(random() % (words.size() + 4));
        Usage receiver = table();
        const auto defect = receiver.merge_words(words);
        if (defect) {
            EXPECT_EQ(receiver.messages(), 0u) << *defect;
        }
        EXPECT_FALSE(format_job_table(receiver, kLabels, 1).empty());
    }
}

// --- the usage of one peer among many ------------------------------------------

TEST(Site08SparseUsage, counts_like_the_full_table) {
    constexpr unsigned kSeed = 8;
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
    std::mt19937_64 random(kSeed);
    Usage full(7, 29);
    SparseUsage sparse(7, 29);
    for (int i = 0; i < 5000; ++i) {
        const auto row = static_cast<std::uint32_t>(random() % 8), reason = static_cast<std::uint32_t>(random() % 30);
        const std::uint64_t bytes = random() >> random() % 64;
        full.add(row, reason, bytes);
        sparse.add(row, reason, bytes);
    }
    EXPECT_EQ(sparse.to_words(), full.to_words());
    EXPECT_EQ(full.shape().find_defect(sparse.to_words()), std::nullopt);
}

TEST(Site08SparseUsage, threads_lose_no_message_and_make_no_cell_twice) {
    SparseUsage usage(3, 4);
    usage.set_threads(true);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (std::uint32_t i = 0; i < 20000; ++i) usage.add(i % 3, i % 4, 3);
        });
    for (auto& thread : threads) thread.join();
    const std::vector<UsageCount> counts = usage.counts();
    ASSERT_EQ(counts.size(), 12u);
    std::uint64_t messages = 0;
    for (const UsageCount& count : counts) messages += count.messages;
    EXPECT_EQ(messages, 80000u);
}

// A job of 10,000 processes with 26 neighbours each, as in a 3-D stencil, with pml_coop_report 2. Each process has a
// table per neighbour, here of messages of four sizes, eager and by rendezvous. All tables of the job together must fit
// 100 MiB. Rank 0 prints them and must not need more than 100 KiB for this.
TEST(Site08SparseUsage, ten_thousand_processes_with_26_neighbours_fit_100_megabytes) {
    constexpr std::size_t kProcesses = 10000, kNeighbours = 26;
    SparseUsage usage(7, 29);
    for (std::uint64_t bytes : {8, 1000, 30000, 300000}) {
        usage.add(0, 0, bytes);
        usage.add(3, 4, bytes);
    }
    const std::size_t table = sizeof usage + usage.memory_bytes();
    EXPECT_LE(kProcesses * kNeighbours * table, 100u << 20) << table << " bytes each";
    EXPECT_LT(table, 36u << 10);
    // Rank 0 keeps its own tables, the words of one other process, and the text printed from them.
    const std::size_t words = kNeighbours * (2 + usage.to_words().size()) * sizeof(std::uint64_t);
    EXPECT_LE(kNeighbours * table + 3 * words, 100u << 10);
}

TEST(Site08SparseUsage, a_kind_that_did_not_occur_takes_no_memory) {
    SparseUsage usage(7, 29);
    EXPECT_EQ(usage.memory_bytes(), 0u);
    usage.add(7, 0, 8);
    usage.add(0, 29, 8);
    EXPECT_EQ(usage.memory_bytes(), 0u);
    usage.add(0, 0, 8);
    const std::size_t one = usage.memory_bytes();
    usage.add(0, 0, 9);
    EXPECT_EQ(usage.memory_bytes(), one);
    usage.add(0, 0, 100000);
    EXPECT_EQ(usage.memory_bytes(), 2 * one);
}

TEST(UsageReport, shows_what_occurred_and_the_totals) {
    EXPECT_EQ(format_job_table(busy_table(), kLabels, 8),
              "pml/coop: messages sent by 8 processes\n"
              "  protocol  size        messages          bytes    amount  reason\n"
              "  eager     0 B                1              0       0 B  fits the eager limit\n"
              "            <= 64 B            2             72      72 B  fits the eager limit\n"
              "  send      <= 256 KiB         1        100,000  97.7 KiB  below pml_coop_rdma_min\n"
              "  rget      > 64 MiB           1  5,368,709,120   5.0 GiB  asked for\n"
              "  total                        5  5,368,809,192   5.0 GiB\n");
}

TEST(UsageReport, takes_the_words_of_another_component) {
    EXPECT_EQ(format_table({"coll: calls", "algorithm", "block", "calls"}, busy_table(), kLabels).substr(0, 82),
              "coll: calls\n"
              "  algorithm  block       calls          bytes    amount  reason\n"
              "  eage");
}

TEST(UsageReport, says_so_when_nothing_was_sent) {
    EXPECT_EQ(format_job_table(table(), kLabels, 1), "pml/coop: messages sent by 1 process: none\n");
    EXPECT_EQ(format_peer_table(4, {}, table().shape(), kLabels), "pml/coop: messages sent by rank 4, by peer: none\n");
}

TEST(UsageReport, lists_peers_by_rank_and_skips_the_silent) {
    const Usage first = busy_table();
    const Usage silent = table();
    Usage second = table();
    second.add(0, 0, 1000);
    const PeerUsage peers[] = {{1, first.counts()}, {2, silent.counts()}, {117, second.counts()}};
    EXPECT_EQ(format_peer_table(0, peers, first.shape(), kLabels),
              "pml/coop: messages sent by rank 0, by peer\n"
              "  peer  protocol  size        messages          bytes    amount  reason\n"
              "     1  eager     0 B                1              0       0 B  fits the eager limit\n"
              "                  <= 64 B            2             72      72 B  fits the eager limit\n"
              "        send      <= 256 KiB         1        100,000  97.7 KiB  below pml_coop_rdma_min\n"
              "        rget      > 64 MiB           1  5,368,709,120   5.0 GiB  asked for\n"
              "   117  eager     <= 1 KiB           1          1,000    1000 B  fits the eager limit\n"
              "        total                        6  5,368,810,192   5.0 GiB\n");
}

TEST(UsageReport, stays_within_a_hundred_columns) {
    const char* const reasons[] = {
        "the receive buffer is not contiguous and the transport neither gets nor puts anything for us at this size",
        "short", "after-a-word-with-hyphens it goes on for quite a while and then some", "last"};
    Usage usage = table();
    for (std::uint32_t reason = 0; reason < 4; ++reason)
        for (int i = 0; i < 1000; ++i) usage.add(1, reason, std::uint64_t{1} << 40);
    const std::string job = format_job_table(usage, {kRows, reasons}, 4);
    const PeerUsage peer = {123456, usage.counts()};
    EXPECT_LE(widest_line(job), 100u) << job;
    EXPECT_LE(widest_line(format_peer_table(7, {&peer, 1}, usage.shape(), {kRows, reasons})), 100u);
    EXPECT_NE(job.find("the receive buffer"), std::string::npos);
    EXPECT_NE(job.find("this size\n"), std::string::npos) << "no word is dropped:\n" << job;
}

TEST(UsageReport, prints_the_number_of_what_has_no_label) {
    Usage usage = table();
    usage.add(2, 3, 1);
    const std::string text = format_job_table(usage, {}, 1);
    EXPECT_NE(text.find("  #2 "), std::string::npos) << text;
    EXPECT_NE(text.find("  #3\n"), std::string::npos) << text;
}

TEST(HumanBytes, picks_the_unit_that_reads_best) {
    EXPECT_EQ(human_bytes(0), "0 B");
    EXPECT_EQ(human_bytes(1023), "1023 B");
    EXPECT_EQ(human_bytes(1024), "1.0 KiB");
    EXPECT_EQ(human_bytes(1536), "1.5 KiB");
    EXPECT_EQ(human_bytes((1 << 20) - 1), "1.0 MiB");
    EXPECT_EQ(human_bytes(std::uint64_t{3} << 30), "3.0 GiB");
    EXPECT_EQ(human_bytes(std::uint64_t{1} << 40), "1.0 TiB");
    EXPECT_EQ(human_bytes(std::uint64_t{1} << 50), "1.0 PiB");
    EXPECT_EQ(human_bytes(UINT64_MAX), "16.0 EiB");
}

}  // namespace
}  // namespace coop
