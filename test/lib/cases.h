// SPDX-License-Identifier: BSD-3-Clause
//
// Shared by the harnesses of test/mpi and test/fabric. A program is a list of CASEs that run in the order of the file;
// --from and --only select some of them. A case that hangs is ended and named. lib/cases.sh runs such programs.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace cases {

template <class Body>
struct Case {
    const char* name;
    Body body;
};

template <class Body>
std::vector<Case<Body>>& all() {
    static std::vector<Case<Body>> list;
    return list;
}

inline char current[160] = "start";  // for the hang guard, which may not allocate

inline void (*more_about_hang)() = nullptr;  // says more, if not null; a signal handler

inline void on_hang(int) {
    constexpr char text[] = "HANG in ";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    (void)!write(STDERR_FILENO, current, strlen(current));
    (void)!write(STDERR_FILENO, "\n", 1);
    if (more_about_hang != nullptr) more_about_hang();
    _exit(124);
}

// Starts the case `what`, which may run for `seconds`.
inline void enter(const std::string& what, unsigned seconds) {
    snprintf(current, sizeof current, "%s", what.c_str());
    signal(SIGALRM, on_hang);
    alarm(seconds);
}

// Reports that the current case failed, and why.
inline void say_failed(const char* file, int line, const std::string& what) {
    const char* name = strrchr(file, '/');
    fflush(stdout);
    fprintf(stderr, "CHECK failed in %s: %s:%d: %s\n", current, name == nullptr ? file : name + 1, line, what.c_str());
    fflush(stderr);
}

inline std::string unequal(long long a, long long b, const char* a_text, const char* b_text) {
    return std::string(a_text) + " is " + std::to_string(a) + ", expected " + b_text + " = " + std::to_string(b);
}

// Returns the cases selected on the command line. Passes arguments other than --list, --from and --only to `other`.
// Exits if a name does not exist.
template <class Body, class Other>
std::vector<Case<Body>> select(int argc, char** argv, Other other) {
    std::string from, only;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--list") {
            for (const auto& one : all<Body>()) puts(one.name);
            exit(0);
        }
        if (argument == "--from" && i + 1 < argc) from = argv[++i];
        else if (argument == "--only" && i + 1 < argc) only = argv[++i];
        else other(argument);
    }
    std::vector<Case<Body>> chosen;
    for (const auto& one : all<Body>()) {
        if (!from.empty() && from != one.name) continue;
        from.clear();
        if (only.empty() || only == one.name) chosen.push_back(one);
    }
    if (chosen.empty()) {
        fprintf(stderr, "no such case\n");
        exit(2);
    }
    return chosen;
}

}  // namespace cases
