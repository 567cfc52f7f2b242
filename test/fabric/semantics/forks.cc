// SPDX-License-Identifier: BSD-3-Clause
// fork() and registered memory: ibv_fork_init(3), ibv_is_fork_initialized(3), madvise(2) MADV_DONTFORK. IBTA does not
// mention fork(). Kernels from 5.12 on copy registered pages when a process forks. Before that a child shares them, and
// the process that writes first gets a page other than the device's. ibv_fork_init() keeps the memory from children.
// The ground strictfork (test/fabric/README.md), a subnet made with --strict-fork, simulates the worst case of such an
// old kernel.
//
// ibv_fork_init() applies to the whole process and cannot be undone, so each case runs in its own process.
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "end.h"

using namespace verbstest;

extern char** environ;

namespace {

constexpr std::size_t kPage = 4096;

bool strict() { return ground() == "strictfork"; }

// Forks; the child calls `what` and exits. Returns its wait status.
int status_of_child(const std::function<void()>& what) {
    fflush(nullptr);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(15);
        signal(SIGSEGV, SIG_DFL);
        what();
        _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

ibv_wc_status write_from_a_to_b(Two& two) {
    two.a.qp.post(write(1, two.a.memory.sge(0, 64), two.b.memory.remote()));
    return two.a.scq.wait().status;
}

// Pages with a registration of their own.
struct Registered {
    explicit Registered(ibv_pd* pd)
        : at(static_cast<volatile unsigned char*>(
              mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          mr(ibv_reg_mr(pd, const_cast<unsigned char*>(at), 2 * kPage, IBV_ACCESS_LOCAL_WRITE)) {
        CHECK(mr != nullptr);
        at[0] = 7;
    }
    volatile unsigned char* at;
    ibv_mr* mr;
};

ROLE(asks_in_time) {
    channel.put(static_cast<int>(ibv_is_fork_initialized()));
    channel.put(ibv_fork_init());
    channel.put(static_cast<int>(ibv_is_fork_initialized()));
    Two two;
    channel.put(ibv_fork_init());
    return 0;
}

ROLE(asks_too_late) {
    Two two;
    channel.put(ibv_fork_init());
    channel.put(static_cast<int>(ibv_is_fork_initialized()));
    return 0;
}

ROLE(forks) {
    if (channel.get<bool>()) CHECK_OK(ibv_fork_init());
    Two two;
    channel.put(static_cast<int>(write_from_a_to_b(two)));
    CHECK_EQ(status_of_child([] {}), 0);
    channel.put(static_cast<int>(write_from_a_to_b(two)));
    return 0;
}

ROLE(lets_a_child_look) {
    CHECK_OK(ibv_fork_init());
    Node node;
    Registered memory(node.pd);
    ibv_mr* again = ibv_reg_mr(node.pd, const_cast<unsigned char*>(memory.at), kPage, IBV_ACCESS_LOCAL_WRITE);
    const auto look = [&] { _exit(memory.at[0]); };
    channel.put(status_of_child(look));
    CHECK_OK(ibv_dereg_mr(memory.mr));
    channel.put(status_of_child(look));  // the other registration still exists
    CHECK_OK(ibv_dereg_mr(again));
    channel.put(status_of_child(look));
    return 0;
}

ROLE(spawns) {
    Two two;
    CHECK_EQ(system("true"), 0);
    char name[] = "true";
    char* const arguments[] = {name, nullptr};
    pid_t child;
    int status;
    CHECK_EQ(posix_spawnp(&child, name, nullptr, nullptr, arguments, environ), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    channel.put(static_cast<int>(write_from_a_to_b(two)));
    return 0;
}

}  // namespace

CASE(fork_init_says_what_it_did) {
    Process process("asks_in_time", "h0");
    CHECK_EQ(process.channel().get<int>(), strict() ? IBV_FORK_DISABLED : IBV_FORK_UNNEEDED);
    CHECK_EQ(process.channel().get<int>(), 0);
    CHECK_EQ(process.channel().get<int>(), strict() ? IBV_FORK_ENABLED : IBV_FORK_UNNEEDED);
    CHECK_EQ(process.channel().get<int>(), 0);  // a second call does no harm
}

CASE(fork_init_comes_before_the_first_registration) {
    Process process("asks_too_late", "h0");
    CHECK_EQ(process.channel().get<int>(), strict() ? EINVAL : 0);
    CHECK_EQ(process.channel().get<int>(), strict() ? IBV_FORK_DISABLED : IBV_FORK_UNNEEDED);
}

CASE(registered_memory_survives_a_fork_after_fork_init) {
    Process process("forks", "h0");
    process.channel().put(true);
    CHECK_EQ(process.channel().get<int>(), IBV_WC_SUCCESS);
    CHECK_EQ(process.channel().get<int>(), IBV_WC_SUCCESS);
}

CASE(registered_memory_is_lost_by_a_fork_without_fork_init_if_strict) {
    Process process("forks", "h0");
    process.channel().put(false);
    CHECK_EQ(process.channel().get<int>(), IBV_WC_SUCCESS);
    CHECK_EQ(process.channel().get<int>() == IBV_WC_SUCCESS, !strict());
}

// If two registrations cover a page, it is returned to children when the last one ends.
CASE(child_has_no_registered_memory_after_fork_init_if_strict) {
    Process process("lets_a_child_look", "h0");
    CHECK_EQ(process.channel().get<int>(), strict() ? SIGSEGV : 7 << 8);
    CHECK_EQ(process.channel().get<int>(), strict() ? SIGSEGV : 7 << 8);
    CHECK_EQ(process.channel().get<int>(), 7 << 8);
}

// Neither system() nor posix_spawn() copies the memory: a child of vfork() uses the parent's memory until it executes a
// program.
CASE(system_and_posix_spawn_need_no_fork_init) {
    Process process("spawns", "h0");
    CHECK_EQ(process.channel().get<int>(), IBV_WC_SUCCESS);
}
