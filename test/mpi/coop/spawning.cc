// SPDX-License-Identifier: BSD-3-Clause
// A process keeps nothing of spawned processes that have ended. One rank. Only for pml/coop.
#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include <fstream>

#include "mpi_test.h"
#include "variable.h"

namespace {

constexpr int kLong = 200000;
constexpr const char* kOurs = "ompi-coop";  // in the names of the memory that pml/coop shares

std::string this_program() {
    char path[PATH_MAX] = "";
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return std::string(path, n > 0 ? static_cast<std::size_t>(n) : 0);
}

int mappings() {
    std::ifstream maps("/proc/self/maps");
    int found = 0;
    for (std::string line; std::getline(maps, line);) found += line.find(kOurs) != std::string::npos;
    return found;
}

int descriptors() {
    int found = 0;
    DIR* folder = opendir("/proc/self/fd");
    CHECK(folder != nullptr);
    while (const dirent* entry = readdir(folder)) {
        char target[PATH_MAX] = "";
        const std::string path = std::string("/proc/self/fd/") + entry->d_name;
        found += readlink(path.c_str(), target, sizeof target - 1) > 0 &&
                 std::string(target).find(kOurs) != std::string::npos;
    }
    closedir(folder);
    return found;
}

void exchange(MPI_Comm inter, int side) {
    int remote = 0;
    MPI_Comm_remote_size(inter, &remote);
    for (int peer = 0; peer < remote; ++peer)
        for (int bytes : {8, kLong}) {
            std::vector<unsigned char> out(static_cast<std::size_t>(bytes)), in(out.size());
            pattern::fill(static_cast<std::uint64_t>(side), 0, out.data(), out.size());
            MPI_Sendrecv(out.data(), bytes, MPI_BYTE, peer, 1, in.data(), bytes, MPI_BYTE, peer, 1, inter,
                         MPI_STATUS_IGNORE);
            CHECK_PATTERN(static_cast<std::uint64_t>(1 - side), in.data(), in.size());
        }
}

int child(MPI_Comm parent) {
    exchange(parent, 1);
    MPI_Comm_disconnect(&parent);
    return 0;
}

const mpitest::Configure configure([](mpitest::Settings& s) { s.child_main = child; });

void spawn_and_part(int count) {
    MPI_Comm children;
    MPI_Comm_spawn(this_program().c_str(), MPI_ARGV_NULL, count, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                   MPI_ERRCODES_IGNORE);
    exchange(children, 0);
    MPI_Comm_disconnect(&children);
}

}  // namespace

// Argument: the number of rounds.
CASE(processes_that_are_gone_leave_no_memory) {
    const int rounds = std::stoi(mpitest::settings().arguments.at(0));
    const Variable known("processes_now"), most("processes_high");
    spawn_and_part(2);
    const int maps = mappings(), files = descriptors();
    const auto records = known.read();
    CHECK(maps > 0);  // those of this process
    for (int i = 0; i < rounds; ++i) spawn_and_part(2);
    CHECK_EQ(mappings(), maps);
    CHECK_EQ(descriptors(), files);
    CHECK_EQ(known.read(), records);
    CHECK(most.read() >= records + 2);
}
