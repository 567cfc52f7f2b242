// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/supervise.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace coop::fabric {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;
constexpr std::int64_t kPatience_ns = 5 * kSecond_ns;

sigset_t our_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGPIPE}) sigaddset(&set, signal);
    return set;
}

// The parent's process number according to /proc; 0: the process is gone.
pid_t parent_of(const char* pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE* file = std::fopen(path, "re");
    if (file == nullptr) return 0;
    char line[512] = "";
    const char* read = std::fgets(line, sizeof line, file);
    std::fclose(file);
    const char* behind_name = read == nullptr ? nullptr : std::strrchr(line, ')');
    int parent = 0;
    if (behind_name == nullptr || std::sscanf(behind_name + 1, " %*c %d", &parent) != 1) return 0;
    return parent;
}

void signal_children(int signal) {
    DIR* folder = opendir("/proc");
    if (folder == nullptr) return;
    while (const dirent* entry = readdir(folder))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && parent_of(entry->d_name) == getpid())
            kill(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)), signal);
    closedir(folder);
}

void wait_for_signal(std::int64_t at_most_ns, siginfo_t* info) {
    const sigset_t set = our_signals();
    const timespec time = {at_most_ns / kSecond_ns, at_most_ns % kSecond_ns};
    if (sigtimedwait(&set, info, &time) < 0) info->si_signo = 0;
}

// Runs in the new process. Executes the command, which closes the pipe; on failure writes the reason to the pipe.
[[noreturn]] void become(const Words& command, const std::function<Error()>& prepare, pid_t parent, int pipe_end) {
    const sigset_t set = our_signals();
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    Error error = getppid() == parent ? prepare() : Error{"coop-fabric was killed"};
    if (!error) {
        std::vector<char*> words;
        for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        execvp(words[0], words.data());
        error = {"cannot run '" + command[0] + "': " + std::strerror(errno)};
    }
    [[maybe_unused]] const ssize_t written = write(pipe_end, error.text.data(), error.text.size());
    _exit(127);
}

std::string read_all(int fd) {
    std::string text;
    char part[256];
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0 || (n < 0 && errno == EINTR);)
        if (n > 0) text.append(part, static_cast<std::size_t>(n));
    return text;
}

}  // namespace

void block_signals() {
    const sigset_t set = our_signals();
    sigprocmask(SIG_BLOCK, &set, nullptr);
}

Error start(const Words& command, const std::function<Error()>& prepare, pid_t& child) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {std::string("pipe: ") + std::strerror(errno)};
    const pid_t parent = getpid();
    child = fork();
    if (child == 0) become(command, prepare, parent, ends[1]);
    close(ends[1]);
    Error error = child < 0 ? Error{std::string("fork: ") + std::strerror(errno)} : Error{read_all(ends[0])};
    close(ends[0]);
    if (error && child > 0) waitpid(child, nullptr, 0);
    return error;
}

int wait_for(pid_t child) {
    std::int64_t kill_at_ns = 0;
    for (int status = 0;;) {
        pid_t ended;
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
            if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        siginfo_t info{};
        wait_for_signal(kill_at_ns == 0 ? 3600 * kSecond_ns : std::max<std::int64_t>(kill_at_ns - now_ns(), 1), &info);
        const bool is_from_process = info.si_code <=
                                     0;  // otherwise from the terminal, which sends it to the command itself
        const bool ends = info.si_signo == SIGTERM || info.si_signo == SIGHUP ||
                          (info.si_signo == SIGINT && is_from_process);
        if (kill_at_ns != 0 && (ends || now_ns() >= kill_at_ns)) {
            signal_children(SIGKILL);
            kill_at_ns = now_ns() + kSecond_ns;
        } else if (info.si_signo != 0 && info.si_signo != SIGCHLD && info.si_signo != SIGPIPE) {
            if (is_from_process) kill(child, info.si_signo);
            if (ends) kill_at_ns = now_ns() + kPatience_ns;
        }
    }
}

void end_descendants() {
    const std::int64_t start_ns = now_ns();
    bool asked = false;
    for (;;) {
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        if (waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return;
        const std::int64_t passed_ns = now_ns() - start_ns;
        if (passed_ns > 2 * kSecond_ns) {
            signal_children(SIGKILL);
        } else if (passed_ns > kSecond_ns && !asked) {
            signal_children(SIGTERM);
            asked = true;
        }
        siginfo_t info{};
        wait_for_signal(kSecond_ns / 50, &info);
    }
}

}  // namespace coop::fabric
