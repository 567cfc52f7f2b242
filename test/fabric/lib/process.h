// SPDX-License-Identifier: BSD-3-Clause
//
// Other processes of a case: roles, and the tool coop-fabric.
//
// A role is a new process of this program on another host of the subnet (fork and exec, because it has to make its
// first verbs call itself), connected by a socket pair. It ends with its case, whatever happens (PR_SET_PDEATHSIG).
//
// Ownership: a Process ends its process when destroyed. Errors: a channel whose other end is gone fails the case.
#pragma once

#include <sys/types.h>

#include <string>
#include <type_traits>
#include <vector>

namespace verbstest {

class Channel {
public:
    explicit Channel(int fd = -1) : fd_(fd) {}
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    ~Channel() { close(); }

    template <class T>
    void put(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        put_bytes(&value, sizeof value);
    }
    template <class T>
    T get() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value;
        get_bytes(&value, sizeof value);
        return value;
    }
    // Returns false at the end of the other side, without failing the case.
    template <class T>
    bool try_get(T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        return read_all(&value, sizeof value);
    }
    void adopt(int fd) { fd_ = fd; }
    void close();

private:
    void put_bytes(const void* from, std::size_t bytes);
    void get_bytes(void* to, std::size_t bytes);
    bool read_all(void* to, std::size_t bytes);

    int fd_;
};

using RoleBody = int (*)(Channel&);

struct AddRole {
    AddRole(const char* name, RoleBody body);
};

// main() calls this: it runs the role in a process that Process started.
int run_role(const char* name);

class Process {
public:
    explicit Process(const char* role, const char* host = "h1");
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process();

    Channel& channel() { return channel_; }
    pid_t pid() const { return pid_; }
    void kill();   // sends SIGKILL and waits
    int finish();  // closes the channel and waits; returns the exit status, or 128 + signal

private:
    int wait();

    pid_t pid_ = -1;
    Channel channel_;
};

// Runs `coop-fabric WORDS` ($COOP_FABRIC_TOOL) with its output to stderr. Any failure fails the case.
void tool(const std::vector<std::string>& words);
// As tool(), but returns the output.
std::string tool_output(const std::vector<std::string>& words);

// Runs a command of the tool, and another one when it goes out of scope.
class Meanwhile {
public:
    Meanwhile(std::vector<std::string> now, std::vector<std::string> after) : after_(std::move(after)) { tool(now); }
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;
    ~Meanwhile() { over(); }
    void over() {
        if (!after_.empty()) tool(after_);
        after_.clear();
    }

private:
    std::vector<std::string> after_;
};

}  // namespace verbstest

#define ROLE(name)                                                \
    static int name(verbstest::Channel&);                         \
    static const verbstest::AddRole add_role_##name(#name, name); \
    static int name([[maybe_unused]] verbstest::Channel& channel)
