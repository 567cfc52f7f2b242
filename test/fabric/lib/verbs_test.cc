// SPDX-License-Identifier: BSD-3-Clause
// Implements verbs_test.h, with main().
#include "verbs_test.h"

#include <chrono>

#include "cases.h"
#include "process.h"

namespace verbstest {
namespace {

struct Skipped {
    std::string why;
};

constexpr unsigned kHangSeconds = 20;
bool far_asked = false;

void enter(const char* name) { cases::enter(name + (" (pid " + std::to_string(getpid())) + ")", kHangSeconds); }

void run(const cases::Case<Body>& test) {
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

}  // namespace

AddCase::AddCase(const char* name, Body body) { cases::all<Body>().push_back({name, body}); }

void fail(const char* file, int line, const std::string& what) {
    cases::say_failed(file, line, what);
    _exit(1);  // closes the channels, so that the other processes of the case end
}

void check_equal(long long a, long long b, const char* a_text, const char* b_text, const char* file, int line) {
    if (a != b) fail(file, line, cases::unequal(a, b, a_text, b_text));
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
    const auto chosen = cases::select<Body>(argc, argv, [argv](const std::string& argument) {
        if (argument == "--far") {
            far_asked = true;
            return;
        }
        fprintf(stderr, "usage: %s [--list] [--from CASE] [--only CASE] [--far]\n", argv[0]);
        exit(2);
    });
    setenv("COOP_FABRIC_HOST", "h0", 0);  // before the first verbs call
    for (const auto& test : chosen) run(test);
}
