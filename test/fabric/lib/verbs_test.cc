// SPDX-License-Identifier: BSD-3-Clause
// The harness behind verbs_test.h, with main().
#include "verbs_test.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "process.h"

namespace verbstest {
namespace {

struct Case {
    const char* name;
    Body body;
};

struct Skipped {
    std::string why;
};

std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}

constexpr unsigned kHangSeconds = 20;
char current[160] = "start";  // for the hang guard, which may not allocate
bool far_asked = false;

void on_hang(int) {
    constexpr char text[] = "HANG in ";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    (void)!write(STDERR_FILENO, current, strlen(current));
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(124);
}

void enter(const char* name) {
    snprintf(current, sizeof current, "%s (pid %d)", name, static_cast<int>(getpid()));
    signal(SIGALRM, on_hang);
    alarm(kHangSeconds);
}

void run(const Case& test) {
    enter(test.name);
    printf("RUN %s\n", test.name);
    fflush(stdout);
    const auto start = std::chrono::steady_clock::now();
    try {
        test.body();
    } catch (const Skipped& skipped) {
        printf("SKIP %s %s\n", test.name, skipped.why.c_str());
        fflush(stdout);
        return;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    printf("OK %s %.2f\n", test.name, took.count());
    fflush(stdout);
}

// The cases asked for on the command line; exits on a name that is not there.
std::vector<Case> select(int argc, char** argv) {
    std::string from, only;
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        if (arg == "--list") {
            for (const Case& c : cases()) puts(c.name);
            exit(0);
        }
        if (arg == "--far") {
            far_asked = true;
        } else if (arg == "--from" && i + 1 < argc) {
            from = argv[++i];
        } else if (arg == "--only" && i + 1 < argc) {
            only = argv[++i];
        } else {
            fprintf(stderr, "usage: %s [--list] [--from CASE] [--only CASE] [--far]\n", argv[0]);
            exit(2);
        }
    }
    std::vector<Case> chosen;
    for (const Case& c : cases()) {
        if (!from.empty() && from != c.name) continue;
        from.clear();
        if (only.empty() || only == c.name) chosen.push_back(c);
    }
    if (chosen.empty()) {
        fprintf(stderr, "no such case\n");
        exit(2);
    }
    return chosen;
}

}  // namespace

AddCase::AddCase(const char* name, Body body) { cases().push_back({name, body}); }

void fail(const char* file, int line, const std::string& what) {
    const char* name = strrchr(file, '/');
    fflush(stdout);
    fprintf(stderr, "CHECK failed in %s: %s:%d: %s\n", current, name == nullptr ? file : name + 1, line, what.c_str());
    fflush(stderr);
    _exit(1);  // other processes of the case see their end of the channel closed
}

void check_equal(long long a, long long b, const char* a_text, const char* b_text, const char* file, int line) {
    if (a == b) return;
    fail(file, line, std::string(a_text) + " is " + std::to_string(a) + ", expected " + b_text + " = " + std::to_string(b));
}

void check_number(int number, int expected, const char* text, const char* file, int line) {
    if (number == expected) return;
    const auto describe = [](int n) { return n == 0 ? "success" : std::to_string(n) + " (" + strerror(n) + ")"; };
    fail(file, line, std::string(text) + " gave " + describe(number) + ", expected " + describe(expected));
}

void skip(const std::string& why) { throw Skipped{why}; }

std::string ground() {
    const char* name = getenv("COOP_TEST_GROUND");
    return name == nullptr ? "ib" : name;
}

bool far() { return far_asked; }

}  // namespace verbstest

int main(int argc, char** argv) {
    using namespace verbstest;
    if (argc > 2 && strcmp(argv[1], "--role") == 0) {
        enter(argv[2]);
        return run_role(argv[2]);
    }
    const std::vector<Case> chosen = select(argc, argv);
    setenv("COOP_FABRIC_HOST", "h0", 0);  // before any verbs call
    for (const Case& test : chosen) run(test);
}
