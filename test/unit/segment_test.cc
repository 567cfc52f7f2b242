// SPDX-License-Identifier: BSD-3-Clause
// node/segment.h: memory shared by several processes; the other ones are forked children.
#include "coop/node/segment.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

namespace coop::node {
namespace {

constexpr std::size_t kBytes = 3 * 4096 + 64;

// Whether `work` returns true in a child.
bool in_child(const std::function<bool()>& work) {
    const pid_t pid = fork();
    if (pid == 0) _exit(work() ? 0 : 1);
    int status = -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(NodeSegment, is_seen_by_all_that_attach) {
    const Segment mine = Segment::create(kBytes);
    ASSERT_TRUE(mine);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mine.memory()) % 64, 0u);
    std::memset(mine.memory(), 7, kBytes);
    for (unsigned char child = 1; child <= 3; ++child) {
        EXPECT_TRUE(in_child([&] {
            const Segment theirs = Segment::attach(mine.ticket(), kBytes);
            if (!theirs || theirs.memory()[kBytes - 1] != std::byte{7}) return false;
            theirs.memory()[child] = std::byte{child};
            return true;
        }));
        EXPECT_EQ(mine.memory()[child], std::byte{child});
    }
}

TEST(NodeSegment, is_not_attached_with_another_ticket_or_length) {
    const Segment mine = Segment::create(kBytes);
    ASSERT_TRUE(mine);
    SegmentTicket other = mine.ticket();
    ++other.nonce;
    EXPECT_EQ(Segment::attach(other, kBytes).error(), EBADF);
    EXPECT_EQ(Segment::attach(mine.ticket(), kBytes + 64).error(), EBADF);
    EXPECT_EQ(Segment::attach(mine.ticket(), kBytes - 64).error(), EBADF);
    EXPECT_FALSE(Segment::attach({}, kBytes));
    EXPECT_TRUE(Segment::attach(mine.ticket(), kBytes));
}

TEST(NodeSegment, is_not_attached_once_concealed) {
    Segment mine = Segment::create(kBytes);
    ASSERT_TRUE(mine);
    const Segment theirs = Segment::attach(mine.ticket(), kBytes);
    mine.conceal();
    EXPECT_FALSE(Segment::attach(mine.ticket(), kBytes));
    mine.memory()[5] = std::byte{5};
    EXPECT_EQ(theirs.memory()[5], std::byte{5});
}

TEST(NodeSegment, has_a_bound) {
    EXPECT_EQ(Segment::create(Segment::kMostBytes + 1).error(), EINVAL);
    EXPECT_EQ(Segment::attach({}, Segment::kMostBytes + 1).error(), EINVAL);
}

}  // namespace
}  // namespace coop::node
