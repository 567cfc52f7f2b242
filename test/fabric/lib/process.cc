// SPDX-License-Identifier: BSD-3-Clause
#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "verbs_test.h"

extern char** environ;

namespace verbstest {
namespace {

constexpr int kChannelFd = 100;  // descriptor of the channel in the process of a role

struct Role {
    const char* name;
    RoleBody body;
};

std::vector<Role>& roles() {
    static std::vector<Role> all;
    return all;
}

// The environment with one variable set, or removed if the value is empty.
class Environment {
public:
    Environment(const std::string& name, const std::string& value) {
        for (char** entry = environ; *entry != nullptr; ++entry)
            if (strncmp(*entry, (name + "=").c_str(), name.size() + 1) != 0) text_.emplace_back(*entry);
        if (!value.empty()) text_.push_back(name + "=" + value);
        for (std::string& entry : text_) pointers_.push_back(entry.data());
        pointers_.push_back(nullptr);
    }
    char** get() { return pointers_.data(); }

private:
    std::vector<std::string> text_;
    std::vector<char*> pointers_;
};

int wait_for(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) fail(__FILE__, __LINE__, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string self() {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    CHECK(length > 0);
    return std::string(path, static_cast<std::size_t>(length));
}

// Starts the tool with standard output to this descriptor. It does not need the preloaded library.
pid_t start_tool(const std::vector<std::string>& words, int out) {
    const char* named = getenv("COOP_FABRIC_TOOL");
    std::vector<std::string> text{named == nullptr ? "coop-fabric" : named};
    text.insert(text.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : text) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    Environment environment("LD_PRELOAD", "");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    pid_t pid = -1;
    const int result = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environment.get());
    posix_spawn_file_actions_destroy(&actions);
    if (result != 0) fail(__FILE__, __LINE__, text[0] + " does not start: " + strerror(result));
    return pid;
}

}  // namespace

// --- channel --------------------------------------------------------------------------------------------------------

void Channel::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void Channel::put_bytes(const void* from, std::size_t bytes) {
    const auto* at = static_cast<const char*>(from);
    while (bytes > 0) {
        const ssize_t n = send(fd_, at, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) fail(__FILE__, __LINE__, "the other process of this case is gone");
        at += n;
        bytes -= static_cast<std::size_t>(n);
    }
}

bool Channel::read_all(void* to, std::size_t bytes) {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
        const ssize_t n = read(fd_, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

void Channel::get_bytes(void* to, std::size_t bytes) {
    if (!read_all(to, bytes)) fail(__FILE__, __LINE__, "the other process of this case has ended");
}

// --- roles ----------------------------------------------------------------------------------------------------------

AddRole::AddRole(const char* name, RoleBody body) { roles().push_back({name, body}); }

int run_role(const char* name) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fcntl(kChannelFd, F_SETFD, FD_CLOEXEC) != 0) return 2;  // the parent is gone, or nobody started this as a role
    Channel channel(kChannelFd);
    for (const Role& role : roles())
        if (strcmp(role.name, name) == 0) return role.body(channel);
    return 2;
}

Process::Process(const char* role, const char* host) {
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    std::string program = self(), word = "--role", name = role;
    char* arguments[] = {program.data(), word.data(), name.data(), nullptr};
    Environment environment("COOP_FABRIC_HOST", host);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], kChannelFd);
    const int result = posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environment.get());
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    channel_.adopt(ends[0]);
    CHECK_OK(result);
}

Process::~Process() {
    if (pid_ > 0) kill();
}

int Process::wait() {
    const int status = wait_for(pid_);
    pid_ = -1;
    return status;
}

void Process::kill() {
    ::kill(pid_, SIGKILL);
    wait();
}

int Process::finish() {
    channel_.close();
    return wait();
}

// --- the tool -------------------------------------------------------------------------------------------------------

void tool(const std::vector<std::string>& words) {
    const int status = wait_for(start_tool(words, STDERR_FILENO));
    if (status == 0) return;
    std::string text;
    for (const std::string& word : words) text += " " + word;
    fail(__FILE__, __LINE__, "coop-fabric" + text + " ended with status " + std::to_string(status));
}

std::string tool_output(const std::vector<std::string>& words) {
    int ends[2];
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = start_tool(words, ends[1]);
    ::close(ends[1]);
    std::string text;
    char part[4096];
    for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
    ::close(ends[0]);
    CHECK_EQ(wait_for(pid), 0);
    return text;
}

}  // namespace verbstest
