// SPDX-License-Identifier: BSD-3-Clause
// node/byte_lock.h: a lock ends with the process that holds it, however that ends.
#include "coop/node/byte_lock.h"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

#include "coop/node/segment.h"

namespace coop::node {
namespace {

constexpr std::size_t kBytes = 4096;

// A child that attaches the memory, locks a byte, and ends when it is told to, or is killed.
class Holder {
public:
    Holder(const Segment& of, std::uint32_t at) {
        int ready[2];
        EXPECT_EQ(pipe(ready), 0);
        pid_ = fork();
        if (pid_ == 0) {
            const Segment theirs = Segment::attach(of.ticket(), kBytes, true);
            const char locked = theirs && lock_byte(theirs.descriptor(), at) ? 1 : 0;
            if (write(ready[1], &locked, 1) == 1) pause();
            _exit(0);
        }
        close(ready[1]);
        EXPECT_EQ(read(ready[0], &locked_, 1), 1);
        close(ready[0]);
    }
    ~Holder() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    bool has_locked() const { return locked_ == 1; }

private:
    pid_t pid_;
    char locked_ = 0;
};

TEST(ByteLock, is_seen_by_others_until_its_holder_is_killed) {
    const Segment mine = Segment::create(kBytes);
    ASSERT_TRUE(mine);
    const std::int32_t fd = mine.ticket().fd;
    {
        const Holder other(mine, 3);
        ASSERT_TRUE(other.has_locked());
        EXPECT_TRUE(is_locked_elsewhere(fd, 3));
        EXPECT_FALSE(is_locked_elsewhere(fd, 2));
        EXPECT_FALSE(is_locked_elsewhere(fd, 4));
        EXPECT_FALSE(Holder(mine, 3).has_locked());
        EXPECT_TRUE(Holder(mine, 4).has_locked());
    }
    EXPECT_FALSE(is_locked_elsewhere(fd, 3));
}

TEST(ByteLock, lasts_as_long_as_the_descriptor_that_the_segment_keeps) {
    const Segment mine = Segment::create(kBytes);
    ASSERT_TRUE(mine);
    {
        const Segment attached = Segment::attach(mine.ticket(), kBytes, true);
        ASSERT_TRUE(attached);
        ASSERT_TRUE(lock_byte(attached.descriptor(), 0));
        EXPECT_TRUE(is_locked_elsewhere(mine.ticket().fd, 0));
        EXPECT_EQ(Segment::attach(mine.ticket(), kBytes).descriptor(), -1);
        EXPECT_TRUE(is_locked_elsewhere(mine.ticket().fd, 0));  // another descriptor of the file has been closed
    }
    EXPECT_FALSE(is_locked_elsewhere(mine.ticket().fd, 0));
}

TEST(ByteLock, can_be_ended_while_a_forked_process_holds_the_descriptor) {
    const Segment mine = Segment::create(kBytes);
    const Segment attached = Segment::attach(mine.ticket(), kBytes, true);
    ASSERT_TRUE(mine && attached);
    ASSERT_TRUE(lock_byte(attached.descriptor(), 1));
    const pid_t child = fork();
    if (child == 0) pause();
    EXPECT_TRUE(is_locked_elsewhere(mine.ticket().fd, 1));
    unlock_byte(attached.descriptor(), 1);
    EXPECT_FALSE(is_locked_elsewhere(mine.ticket().fd, 1));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

TEST(ByteLock, counts_as_locked_what_cannot_be_found_out) {
    EXPECT_FALSE(lock_byte(-1, 0));
    EXPECT_TRUE(is_locked_elsewhere(-1, 0));
}

}  // namespace
}  // namespace coop::node
