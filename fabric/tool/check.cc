// SPDX-License-Identifier: BSD-3-Clause
//
// coop-fabric check: tests whether this machine permits what a subnet needs.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fabric/shm/process.h"
#include "fabric/tool/environment.h"
#include "fabric/tool/options.h"
#include "fabric/tool/virtual_hosts.h"

namespace coop::fabric {
namespace {

constexpr std::uint64_t kRoom_bytes = 64ull << 20;

// Tries to copy between two processes neither of which is the other's parent, as is the case with ranks.
std::string sibling_refusal() {
    const pid_t still = fork();
    if (still == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // as a process on a subnet does
        for (;;) pause();
    }
    int ends[2];
    if (still < 0 || pipe(ends) != 0) return std::string("cannot try: ") + std::strerror(errno);
    usleep(20'000);  // until the prctl above has been executed
    const pid_t copier = fork();
    if (copier == 0) {
        const std::string refusal = copy_refusal(still);
        _exit(write(ends[1], refusal.data(), refusal.size()) < 0 ? 1 : 0);
    }
    close(ends[1]);
    std::string refusal;
    char part[256];
    for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) refusal.append(part, static_cast<std::size_t>(n));
    close(ends[0]);
    kill(still, SIGKILL);
    waitpid(still, nullptr, 0);
    if (copier > 0) waitpid(copier, nullptr, 0);
    return refusal;
}

std::string room_refusal() {
    struct statvfs info {};
    if (statvfs("/dev/shm", &info) != 0)
        return std::string("/dev/shm: ") + std::strerror(errno) + ". A tmpfs has to be mounted there";
    const std::uint64_t free_bytes = std::uint64_t{info.f_bavail} * info.f_frsize;
    if (free_bytes >= kRoom_bytes) return {};
    return "only " + std::to_string(free_bytes >> 20) + " MiB are free, less than " +
           std::to_string(kRoom_bytes >> 20) + ": mount -o remount,size=2G /dev/shm, or docker run --shm-size=2g";
}

std::string fault_refusal() {
    const int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
    if (fd >= 0) return close(fd), std::string();
    return std::string(std::strerror(errno)) +
           ". It takes Linux 5.11; a container's seccomp filter may forbid it (--security-opt seccomp=unconfined)";
}

std::string memory_refusal() {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    constexpr std::uint64_t kLittle_bytes = 1ull << 30;
    if (limit.rlim_cur >= kLittle_bytes) return {};
    return "it is " + std::to_string(limit.rlim_cur >> 10) +
           " KiB: programs that register more fail, as on hardware (ulimit -l unlimited, or --memlock)";
}

std::string library_refusal() {
    std::string path;
    return find_library(path).text;
}

// Prints one line; returns true if nothing is missing.
bool report(const char* what, const std::string& refusal, bool needed) {
    std::printf("%-8s %s%s%s\n",
                refusal.empty() ? "ok"
                : needed        ? "MISSING"
                                : "missing",
                what, refusal.empty() ? "" : ": ", refusal.c_str());
    return refusal.empty();
}

int run_check(Words words) {
    if (Error error = take_options(kCheckCommand, words, {})) return misuse(kCheckCommand, error);
    if (!words.empty()) return misuse(kCheckCommand, {"'" + words[0] + "' is unexpected"});
    bool works = report("the library", library_refusal(), true);
    works &= report("copying between processes", sibling_refusal(), true);
    works &= report("room in /dev/shm", room_refusal(), true);
    report("memory to register (RLIMIT_MEMLOCK)", memory_refusal(), false);
    report("virtual hosts (--virtual-hosts)", virtual_host_refusal(), false);
    report("watching registered memory (--strict-mr)", fault_refusal(), false);
    return works ? 0 : 1;
}

}  // namespace

const Command kCheckCommand = {"check", "test whether this machine can run a subnet",
                               R"(coop-fabric check

Tests what a subnet needs of this machine and says how to get what is missing. Every subnet needs the items marked
MISSING in capitals; if there is one, the exit status is 1. Items marked 'missing' are needed only by the option in
brackets. A low RLIMIT_MEMLOCK matters only to programs that register more memory than it allows.
)",
                               run_check};

}  // namespace coop::fabric
