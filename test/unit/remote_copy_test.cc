// SPDX-License-Identifier: BSD-3-Clause
//
// node/remote_copy.h: copies to and from another process, a forked child that holds the same addresses.
#include "coop/node/remote_copy.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <numeric>
#include <vector>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coop/node/neighbour.h"

namespace coop::node {
namespace {

using To = RemoteCopy::To;

// A copy of this process, which sleeps until the end of the test.
class Other {
public:
    Other() : pid(fork()) {
        for (; pid == 0;) pause();
    }
    ~Other() { end(); }
    void end() {
        if (ended_) return;
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        ended_ = true;
    }
    const pid_t pid;

private:
    bool ended_ = false;
};

std::vector<unsigned char> numbers(std::size_t bytes) {
    std::vector<unsigned char> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<unsigned char>(i * 7 + i / 251);
    return all;
}

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

bool may_copy() {
    std::uint64_t word = 5;
    const Other other;
    return try_copy(other.pid, address_of(&word), 5) == 0;
}

#define NEEDS_CMA() \
    if (!may_copy()) GTEST_SKIP() << "the kernel does not permit CMA here"

}  // namespace

TEST(RemoteCopy, writes_and_reads_back_more_blocks_than_one_call_takes) {
    NEEDS_CMA();
    constexpr std::size_t kBlocks = 3 * RemoteCopy::kMostBlocks + 5, kBytes = 12, kStride = 20;
    std::vector<unsigned char> there(kBlocks * kStride, 9), sent = numbers(kBlocks * kBytes), found(sent.size());
    const Other other;
    RemoteCopy writes(other.pid, To::kThere);
    for (std::size_t i = 0; i < kBlocks; ++i)
        ASSERT_TRUE(writes.add(&sent[i * kBytes], address_of(&there[i * kStride]), kBytes));
    ASSERT_TRUE(writes.flush());
    EXPECT_EQ(writes.error(), 0);
    RemoteCopy reads(other.pid, To::kHere);
    std::vector<unsigned char> all(there.size());
    ASSERT_TRUE(reads.add(all.data(), address_of(there.data()), all.size()) && reads.flush());
    for (std::size_t i = 0; i < kBlocks; ++i) {
        ASSERT_EQ(std::memcmp(&all[i * kStride], &sent[i * kBytes], kBytes), 0) << i;
        for (std::size_t gap = kBytes; gap < kStride; ++gap) ASSERT_EQ(all[i * kStride + gap], 9) << i;
    }
    // The memory of this process is its own.
    EXPECT_EQ(there[0], 9);
}

TEST(RemoteCopy, blocks_of_both_sides_may_differ) {
    NEEDS_CMA();
    std::vector<unsigned char> there = numbers(1000), here(1000, 0);
    const Other other;
    RemoteCopy reads(other.pid, To::kHere);
    // 30 bytes at once there go to two places here; 40 from two places go to one.
    ASSERT_TRUE(reads.add(&here[0], address_of(&there[100]), 10));
    ASSERT_TRUE(reads.add(&here[500], address_of(&there[110]), 20));
    ASSERT_TRUE(reads.add(&here[520], address_of(&there[300]), 40));
    ASSERT_TRUE(reads.flush());
    EXPECT_EQ(std::memcmp(&here[0], &there[100], 10), 0);
    EXPECT_EQ(std::memcmp(&here[500], &there[110], 20), 0);
    EXPECT_EQ(std::memcmp(&here[520], &there[300], 40), 0);
    EXPECT_EQ(here[10], 0);
    EXPECT_EQ(here[560], 0);
}

TEST(RemoteCopy, nothing_to_copy_is_no_error) {
    RemoteCopy copy(getpid(), To::kThere);
    EXPECT_TRUE(copy.flush());
    EXPECT_TRUE(copy.add(nullptr, 0, 0) && copy.flush());
    EXPECT_EQ(copy.error(), 0);
}

TEST(RemoteCopy, memory_that_does_not_exist_is_an_error_after_what_comes_before_it) {
    NEEDS_CMA();
    const long page = sysconf(_SC_PAGESIZE);
    void* const two = mmap(nullptr, 2 * static_cast<std::size_t>(page), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(two, MAP_FAILED);
    ASSERT_EQ(munmap(static_cast<char*>(two) + page, static_cast<std::size_t>(page)), 0);
    const Other other;
    std::vector<unsigned char> sent = numbers(200), found(100);
    const std::uint64_t end = address_of(two) + static_cast<std::uint64_t>(page);
    RemoteCopy writes(other.pid, To::kThere);
    EXPECT_FALSE(writes.add(sent.data(), end - 100, 100) && writes.add(&sent[100], end, 100) && writes.flush());
    EXPECT_EQ(writes.error(), EFAULT);
    EXPECT_EQ(writes.copied(), 100u);
    RemoteCopy reads(other.pid, To::kHere);
    ASSERT_TRUE(reads.add(found.data(), end - 100, 100) && reads.flush());
    EXPECT_EQ(std::memcmp(found.data(), sent.data(), 100), 0);
    munmap(two, static_cast<std::size_t>(page));
}

TEST(RemoteCopy, a_process_that_has_ended_is_named) {
    NEEDS_CMA();
    std::uint64_t word = 1;
    Other other;
    other.end();
    RemoteCopy reads(other.pid, To::kHere);
    EXPECT_FALSE(reads.add(&word, address_of(&word), sizeof word) && reads.flush());
    EXPECT_EQ(reads.error(), ESRCH);
    EXPECT_EQ(try_both({other.pid, 1, address_of(&word), 1}), ESRCH);
    EXPECT_EQ(try_read(other.pid, address_of(&word)), ESRCH);
}

TEST(RemoteCopy, a_test_leaves_other_processes_alone) {
    NEEDS_CMA();
    static std::uint64_t words[3] = {1, 2, 3};
    const Other other;
    const auto try_word = [&](std::uint64_t number) { return try_both({other.pid, 1, address_of(&words[1]), number}); };
    EXPECT_EQ(try_word(2), 0);
    EXPECT_EQ(try_word(77), ESRCH);  // a stranger has something else there
    for (const std::uint64_t& word : words) EXPECT_EQ(try_copy(other.pid, address_of(&word), word), 0);
    EXPECT_EQ(try_read(other.pid, 8), EFAULT);
    static const std::uint64_t constant = 4;
    EXPECT_EQ(try_both({other.pid, 1, address_of(&constant), 4}), EFAULT);
    EXPECT_EQ(try_both({other.pid, 1, 8, 4}), EFAULT);
}

TEST(RemoteCopy, each_process_is_tried_once) {
    NEEDS_CMA();
    static CopyTrials trials;
    EXPECT_EQ(try_both(trials.own()), 0);
    EXPECT_EQ(trials.own().pid, getpid());
    Other other, stranger;
    CopyProbe its = trials.own();
    its.pid = other.pid;
    EXPECT_EQ(trials.attempt(its), 0);
    const CopyProbe others[] = {{stranger.pid, its.dumpable, its.address, its.number},
                                {other.pid, 1 - its.dumpable, its.address, its.number},
                                {other.pid, its.dumpable, its.address, its.number + 1}};
    EXPECT_EQ(trials.attempt(others[2]), ESRCH);
    other.end();
    stranger.end();
    EXPECT_EQ(trials.attempt(its), 0);
    for (const CopyProbe& each : others) EXPECT_EQ(trials.attempt(each), ESRCH);
}

TEST(RemoteCopy, a_process_that_is_no_longer_dumpable_is_tried_again) {
    NEEDS_CMA();
    static CopyTrials trials;
    const int before = trials.own().dumpable;
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
    EXPECT_EQ(trials.own().dumpable, 0);
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, before), 0);
    CopyProbe its = trials.own();
    Other other;
    its.pid = other.pid;
    EXPECT_EQ(trials.attempt(its), 0);
    other.end();
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
    EXPECT_EQ(trials.attempt(its), ESRCH);
    ASSERT_EQ(prctl(PR_SET_DUMPABLE, before), 0);
    EXPECT_EQ(trials.attempt(its), 0);
}

}  // namespace coop::node
