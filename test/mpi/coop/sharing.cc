// SPDX-License-Identifier: BSD-3-Clause
// Processes of a node that cannot share memory, or not at first: sharing TROUBLE. All messages must arrive.
//
//     nofile    rank 1 has no free descriptor when it first learns of rank 0, but later it has
//     private   rank 0 is not dumpable, and no process may read its /proc/PID (without capabilities)
//     late      the same, but only after some messages have been exchanged
//     noexec    memfd_create is preloaded (no_memfd.c) and refuses executable memory
//     none      likewise, and refuses all memory
//     apart     rank 1 is started in a PID namespace of its own (own_pid_namespace)
//
// Two ranks. Only for pml/coop.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "mpi_test.h"
#include "variable.h"

using Bytes = std::vector<unsigned char>;

namespace {

const std::string& trouble() { return mpitest::settings().arguments.at(0); }

int rank_in_world() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

void use_up_descriptors() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, 1024);
    setrlimit(RLIMIT_NOFILE, &limit);
    while (open("/dev/null", O_RDONLY) >= 0) {
    }
}

// Closes all of them: if it closed one, another thread could open a file and take the descriptor.
void free_descriptors() {
    char target[64];
    for (int fd = 3; fd < 1024; ++fd) {
        const std::string path = "/proc/self/fd/" + std::to_string(fd);
        const ssize_t bytes = readlink(path.c_str(), target, sizeof target);
        if (bytes > 0 && std::string(target, static_cast<std::size_t>(bytes)) == "/dev/null") close(fd);
    }
}

// Without capabilities, root may not read the /proc/PID of a process that is not dumpable.
void drop_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    if (syscall(SYS_capset, &header, none) != 0) perror("capset");
}

void (*prepare_variables)() = nullptr;  // of variable.h

// Before MPI_Init, because the quicker process maps the other one's memory while that is still in MPI_Init.
void prepare() {
    prepare_variables();
    if (trouble() != "private" && trouble() != "late") return;
    drop_capabilities();
    const char* const rank = getenv("OMPI_COMM_WORLD_RANK");
    if (trouble() == "private" && rank != nullptr && std::string(rank) == "0") prctl(PR_SET_DUMPABLE, 0);
}

void start_trouble() {
    if (trouble() == "nofile" && rank_in_world() == 1) use_up_descriptors();
}

const mpitest::Configure configure([](mpitest::Settings& settings) {
    prepare_variables = std::exchange(settings.before_init, prepare);
    settings.after_init = start_trouble;
});

void check_one_way(const mpitest::Env& env, int from, int bytes) {
    constexpr int kMessages = 20;
    for (int i = 0; i < kMessages; ++i) {
        const std::uint64_t key = pattern::key({static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(i)});
        Bytes data(static_cast<std::size_t>(bytes));
        if (env.rank == from) {
            pattern::fill(key, 0, data.data(), data.size());
            CHECK_MPI(MPI_Send(data.data(), bytes, MPI_BYTE, 1 - from, 1, env.comm));
        } else {
            CHECK_MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, from, 1, env.comm, MPI_STATUS_IGNORE));
            CHECK_PATTERN(key, data.data(), data.size());
        }
    }
}

void check_exchange(const mpitest::Env& env, int bytes) {
    Bytes out(static_cast<std::size_t>(bytes)), in(out.size());
    MPI_Request requests[2];
    pattern::fill(static_cast<std::uint64_t>(env.rank), 0, out.data(), out.size());
    MPI_Irecv(in.data(), bytes, MPI_BYTE, 1 - env.rank, 2, env.comm, &requests[0]);
    MPI_Isend(out.data(), bytes, MPI_BYTE, 1 - env.rank, 2, env.comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_PATTERN(static_cast<std::uint64_t>(1 - env.rank), in.data(), in.size());
}

void check_messages(const mpitest::Env& env) {
    for (int bytes : {100, 5000, 8192, 32768, 70000, 1 << 20}) {
        check_one_way(env, 0, bytes);
        check_one_way(env, 1, bytes);
        check_exchange(env, bytes);
    }
}

// Sends from rank 0 to rank 1 until a message used a bounce buffer.
void await_bounce(const mpitest::Env& env, const Variable& bounced) {
    for (int seen = 0; seen == 0;) {
        check_one_way(env, 0, 8192);
        seen = bounced.read() > 0;
        MPI_Bcast(&seen, 1, MPI_INT, 0, env.comm);
    }
}

}  // namespace

CASE(every_message_arrives) {
    const Variable bounced("messages_bounce");
    check_messages(env);
    if (trouble() == "late") {
        if (env.rank == 0) prctl(PR_SET_DUMPABLE, 0);
        check_messages(env);
    }
    const bool cannot_share = trouble() == "private" || trouble() == "none" || trouble() == "apart" ||
                              (trouble() == "nofile" && env.rank == 0);
    if (cannot_share) CHECK_EQ(bounced.read(), 0);
    if (trouble() == "nofile" && env.rank == 1) free_descriptors();
    if (trouble() == "nofile" || trouble() == "noexec") await_bounce(env, bounced);
}
