// SPDX-License-Identifier: BSD-3-Clause
//
// node/neighbour.h: memory shared by two processes, and copies between them. The
// other process is a forked child.
#include "coop/node/neighbour.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coop/rndv/board.h"

namespace coop::node {
namespace {

constexpr std::size_t kBytes = 3 * 4096;

std::set<std::string> files_in(const char* folder) {
    std::set<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) names.insert(entry.path());
    return names;
}

// A process that does `work` and then waits until this object is destroyed.
class Child {
public:
    explicit Child(std::function<void()> work) {
        int ready[2], stop[2];
        if (pipe(ready) != 0 || pipe(stop) != 0) std::abort();
        pid_ = fork();
        if (pid_ == 0) {
            close(ready[0]);
            close(stop[1]);
            work();
            char byte = 1;
            if (write(ready[1], &byte, 1) == 1) static_cast<void>(read(stop[0], &byte, 1));
            _exit(0);
        }
        close(ready[1]);
        close(stop[0]);
        stop_ = stop[1];
        char byte = 0;
        EXPECT_EQ(read(ready[0], &byte, 1), 1);
        close(ready[0]);
    }
    ~Child() { end(); }

    void end() {
        if (stop_ < 0) return;
        close(std::exchange(stop_, -1));
        int status = 0;
        waitpid(pid_, &status, 0);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }

    std::int32_t pid() const { return static_cast<std::int32_t>(pid_); }

private:
    pid_t pid_ = -1;
    int stop_ = -1;
};

std::int32_t pid_of_a_dead_process() {
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    waitpid(pid, nullptr, 0);
    return static_cast<std::int32_t>(pid);
}

// --- shared memory -------------------------------------------------------------------

TEST(SharedMemoryOf, a_new_piece_is_zeroed_and_has_a_descriptor) {
    const SharedMemory memory = SharedMemory::create(kBytes);
    ASSERT_TRUE(memory);
    EXPECT_GE(memory.fd(), 0);
    const auto* bytes = static_cast<const unsigned char*>(memory.address());
    for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(bytes[i], 0);
}

TEST(SharedMemoryOf, another_process_sees_what_is_written) {
    const SharedMemory memory = SharedMemory::create(kBytes);
    ASSERT_TRUE(memory);
    auto& word = *new (memory.address()) std::atomic<std::uint64_t>(41);
    const std::int32_t parent = static_cast<std::int32_t>(getpid());
    Child child([&] {
        munmap(memory.address(), kBytes);  // inherited memory is not tested here
        SharedMemory theirs = SharedMemory::attach(parent, memory.fd(), kBytes);
        if (!theirs || theirs.fd() != -1) _exit(2);
        auto& seen = *static_cast<std::atomic<std::uint64_t>*>(theirs.address());
        if (seen.load() != 41) _exit(3);
        seen.store(42);
    });
    EXPECT_EQ(word.load(), 42u);
}

TEST(SharedMemoryOf, a_child_is_attached_to_by_its_parent) {
    // Made before the fork; the child has the same descriptor number.
    const SharedMemory memory = SharedMemory::create(sizeof(rndv::Board));
    ASSERT_TRUE(memory);
    const int fd = memory.fd();
    Child child([&] { (new (memory.address()) rndv::Board)->nonce = 77; });
    const SharedMemory theirs = SharedMemory::attach(child.pid(), fd, sizeof(rndv::Board));
    ASSERT_TRUE(theirs);
    EXPECT_NE(theirs.address(), memory.address());
    const auto& board = *static_cast<const rndv::Board*>(theirs.address());
    EXPECT_EQ(board.magic, rndv::Board::kMagic);
    EXPECT_EQ(board.nonce, 77u);
}

TEST(SharedMemoryOf, what_was_attached_outlives_its_maker) {
    SharedMemory theirs;
    {
        const SharedMemory memory = SharedMemory::create(kBytes);
        ASSERT_TRUE(memory);
        static_cast<char*>(memory.address())[100] = 5;
        theirs = SharedMemory::attach(static_cast<std::int32_t>(getpid()), memory.fd(), kBytes);
    }
    ASSERT_TRUE(theirs);
    EXPECT_EQ(static_cast<char*>(theirs.address())[100], 5);
}

TEST(SharedMemoryOf, is_moved_and_unmapped_once) {
    SharedMemory first = SharedMemory::create(kBytes);
    ASSERT_TRUE(first);
    void* const address = first.address();
    const int fd = first.fd();
    SharedMemory second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_EQ(first.fd(), -1);
    EXPECT_EQ(second.address(), address);
    second = {};
    EXPECT_FALSE(second);
    EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "closed";
}

TEST(SharedMemoryOf, another_size_is_refused) {
    const SharedMemory memory = SharedMemory::create(kBytes);
    ASSERT_TRUE(memory);
    const auto me = static_cast<std::int32_t>(getpid());
    EXPECT_TRUE(SharedMemory::attach(me, memory.fd(), kBytes));
    for (std::size_t bytes : {std::size_t{1}, kBytes - 1, kBytes + 1, 2 * kBytes, std::size_t{0}})
        EXPECT_FALSE(SharedMemory::attach(me, memory.fd(), bytes)) << bytes;
}

TEST(SharedMemoryOf, its_size_cannot_be_changed) {
    const SharedMemory memory = SharedMemory::create(kBytes);
    ASSERT_TRUE(memory);
    EXPECT_NE(ftruncate(memory.fd(), 0), 0);
    EXPECT_NE(ftruncate(memory.fd(), 2 * kBytes), 0);
    EXPECT_NE(fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_WRITE), 0) << "nor may its access be restricted";
}

TEST(SharedMemoryOf, descriptors_of_anything_else_are_refused) {
    const auto me = static_cast<std::int32_t>(getpid());
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    char name[] = "/tmp/coop-neighbour-test.XXXXXX";
    const int file = mkstemp(name);
    ASSERT_GE(file, 0);
    unlink(name);
    ASSERT_EQ(ftruncate(file, kBytes), 0);
    const int folder = open("/tmp", O_RDONLY);
    const int null = open("/dev/zero", O_RDWR);
    for (int fd : {ends[0], ends[1], file, folder, null, 999999, -1})
        EXPECT_FALSE(SharedMemory::attach(me, fd, kBytes)) << fd;
    for (int fd : {ends[0], ends[1], file, folder, null}) close(fd);
}

TEST(SharedMemoryOf, memory_that_is_not_sealed_is_refused) {
    const auto me = static_cast<std::int32_t>(getpid());
    for (int seals : {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_SEAL}) {
        const int fd = memfd_create("ompi-coop-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ASSERT_GE(fd, 0);
        ASSERT_EQ(ftruncate(fd, kBytes), 0);
        ASSERT_EQ(seals ? fcntl(fd, F_ADD_SEALS, seals) : 0, 0);
        EXPECT_FALSE(SharedMemory::attach(me, fd, kBytes)) << seals;
        close(fd);
    }
}

// Tells whether a file has been opened. attach() must open only memory of this kind: if the process id denotes another
// process than intended, the descriptor may be of any kind, and opening it may have effects.
class OpensSeen {
public:
    explicit OpensSeen(const std::string& file) : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
        EXPECT_GE(inotify_add_watch(events_, file.c_str(), IN_OPEN), 0) << file;
    }
    ~OpensSeen() { close(events_); }
    bool any() {
        char events[1024];
        return read(events_, events, sizeof events) > 0;
    }

private:
    int events_;
};

TEST(Site13Attach, opens_nothing_that_cannot_be_such_memory) {
    const auto me = static_cast<std::int32_t>(getpid());
    char folder[] = "/dev/shm/coop-neighbour-test.XXXXXX";  // the same type of file system as a memfd: tmpfs
    ASSERT_TRUE(mkdtemp(folder));
    const std::string fifo = std::string(folder) + "/fifo", file = std::string(folder) + "/file";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const int fifo_fd = open(fifo.c_str(), O_RDWR | O_NONBLOCK), file_fd = open(file.c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_GE(fifo_fd, 0);
    ASSERT_GE(file_fd, 0);
    ASSERT_EQ(ftruncate(file_fd, kBytes), 0);
    {
        OpensSeen of_fifo(fifo), of_file(file);
        EXPECT_FALSE(SharedMemory::attach(me, fifo_fd, kBytes));
        EXPECT_FALSE(SharedMemory::attach(me, file_fd, kBytes));
        EXPECT_FALSE(of_fifo.any());
        EXPECT_FALSE(of_file.any());
        close(open(file.c_str(), O_RDONLY));
        EXPECT_TRUE(of_file.any()) << "the test can detect an open";
    }
    for (int fd : {fifo_fd, file_fd}) close(fd);
    std::filesystem::remove_all(folder);
}

TEST(Site13Attach, memory_that_another_program_made_is_refused_though_it_is_sealed) {
    const int fd = memfd_create("another-program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(ftruncate(fd, kBytes), 0);
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    const SharedMemory theirs = SharedMemory::attach(static_cast<std::int32_t>(getpid()), fd, kBytes);
    EXPECT_FALSE(theirs);
    EXPECT_EQ(theirs.error(), EBADF);
    close(fd);
}

TEST(Site13Attach, a_failure_says_why) {
    const SharedMemory memory = SharedMemory::create(kBytes);
    ASSERT_TRUE(memory);
    const auto me = static_cast<std::int32_t>(getpid());
    EXPECT_EQ(SharedMemory().error(), 0);
    EXPECT_EQ(SharedMemory::attach(me, 999999, kBytes).error(), ENOENT);
    EXPECT_EQ(SharedMemory::attach(me, memory.fd(), kBytes + 1).error(), EBADF);
    Child child([&] {
        const rlimit few{64, 64};
        if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(2);
        while (open("/dev/null", O_RDONLY) >= 0) {
        }
        if (SharedMemory::attach(me, memory.fd(), kBytes).error() != EMFILE) _exit(3);
        if (SharedMemory::create(kBytes).error() != EMFILE) _exit(4);
    });
}

TEST(SharedMemoryOf, a_dead_process_has_none) {
    EXPECT_FALSE(SharedMemory::attach(pid_of_a_dead_process(), 3, kBytes));
    EXPECT_FALSE(SharedMemory::attach(-1, 3, kBytes));
    EXPECT_FALSE(SharedMemory::attach(0, 3, kBytes));
}

TEST(SharedMemoryOf, has_no_name_anywhere) {
    const auto before_shm = files_in("/dev/shm");
    const SharedMemory memory = SharedMemory::create(sizeof(rndv::Board));
    ASSERT_TRUE(memory);
    const auto mine = [](const std::string& name) { return name.find("coop-board") != std::string::npos; };
    for (const char* folder : {"/dev/shm", "/tmp"})
        for (const std::string& name : files_in(folder)) EXPECT_FALSE(mine(name)) << name;
    // Other processes may create files there, but not of this size.
    for (const std::string& name : files_in("/dev/shm"))
        if (!before_shm.count(name)) {
            std::error_code gone;
            EXPECT_NE(std::filesystem::file_size(name, gone), sizeof(rndv::Board)) << name;
        }
}

// The flags that /proc/self/smaps shows for the mapping at `address`; empty: it shows none.
std::string flags_of(const void* address) {
    std::ifstream maps("/proc/self/smaps");
    std::string line, start;
    for (bool here = false; std::getline(maps, line);) {
        unsigned long from = 0, to = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2)
            here = from == reinterpret_cast<std::uintptr_t>(address);
        else if (here && line.starts_with("VmFlags:")) return line + " ";
    }
    return {};
}

TEST(SharedMemoryOf, is_in_the_core_dump_of_its_creator_alone) {
    const SharedMemory mine = SharedMemory::create(kBytes);
    const SharedMemory attached = SharedMemory::attach(static_cast<std::int32_t>(getpid()), mine.fd(), kBytes);
    ASSERT_TRUE(mine && attached);
    const std::string own = flags_of(mine.address()), other = flags_of(attached.address());
    if (own.empty() || other.empty()) GTEST_SKIP() << "this kernel does not show flags of mappings";
    EXPECT_EQ(own.find(" dd "), std::string::npos) << own;
    EXPECT_NE(other.find(" dd "), std::string::npos) << other;
}

TEST(SharedMemoryOf, is_not_inherited_by_programs_that_are_started) {
    const SharedMemory memory = SharedMemory::create(kBytes);
    ASSERT_TRUE(memory);
    EXPECT_TRUE(fcntl(memory.fd(), F_GETFD) & FD_CLOEXEC);
}

// --- copies --------------------------------------------------------------------------

std::uint64_t here = 0;  // at the same address in a child

TEST(Copies, of_a_word_of_another_process_succeed_where_the_kernel_allows) {
    here = 1;
    Child child([] { here = 0x1234567890abcdef; });
    const int error = try_copy(child.pid(), reinterpret_cast<std::uint64_t>(&here), 0x1234567890abcdef);
    if (error == EPERM || error == ENOSYS) GTEST_SKIP() << "the kernel denies copies here";
    EXPECT_EQ(error, 0);
}

TEST(Copies, of_another_word_say_that_it_is_another_process) {
    here = 1;
    Child child([] { here = 2; });
    const int error = try_copy(child.pid(), reinterpret_cast<std::uint64_t>(&here), 3);
    if (error == EPERM || error == ENOSYS) GTEST_SKIP() << "the kernel denies copies here";
    EXPECT_EQ(error, ESRCH);
}

TEST(Copies, from_nowhere_or_nobody_are_errors_not_signals) {
    Child child([] {});
    EXPECT_NE(try_copy(child.pid(), 0, 0), 0);
    EXPECT_NE(try_copy(child.pid(), UINT64_MAX, 0), 0);
    EXPECT_NE(try_copy(pid_of_a_dead_process(), reinterpret_cast<std::uint64_t>(&here), 0), 0);
}

TEST(Processes, are_alive_until_they_have_ended) {
    EXPECT_TRUE(is_alive(static_cast<std::int32_t>(getpid())));
    Child child([] {});
    EXPECT_TRUE(is_alive(child.pid()));
    child.end();
    EXPECT_FALSE(is_alive(child.pid()));
}

TEST(RandomWords, are_not_zero_and_differ) {
    std::set<std::uint64_t> words;
    for (int i = 0; i < 1000; ++i) words.insert(random_word());
    EXPECT_EQ(words.size(), 1000u);
    EXPECT_EQ(words.count(0), 0u);
}

}  // namespace
}  // namespace coop::node
