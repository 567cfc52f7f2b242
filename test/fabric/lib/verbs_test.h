// SPDX-License-Identifier: BSD-3-Clause
//
// A minimal harness for programs that check verbs. A program is a list of CASEs, run in the order of the file in one
// process; a ROLE runs in another process of a case (process.h). A CHECK that fails ends the program and prints what
// was expected; test/fabric/run then starts it again with the next case, on a new subnet.
//
//     program [--list] [--from CASE] [--only CASE] [--far]
//
// Prints "RUN case", then "OK case seconds" or "SKIP case why". --far: the other end of a pair is a process on another
// host (end.h).
//
// The comments of the cases cite InfiniBand Architecture Specification volume 1, release 1.4, as "IBTA": chapter 9
// transport layer, 10 software transport interface, 11 software transport verbs, 17 channel adapters.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

namespace verbstest {

using Body = void (*)();

struct AddCase {
    AddCase(const char* name, Body body);
};

[[noreturn]] void fail(const char* file, int line, const std::string& what);
void check_equal(long long a, long long b, const char* a_text, const char* b_text, const char* file, int line);
// For verbs that return 0 or an error number, as most do.
void check_number(int number, int expected, const char* text, const char* file, int line);

// Ends this case as skipped; objects are destroyed on the way out.
[[noreturn]] void skip(const std::string& why);

// The kind of subnet: the value of COOP_TEST_GROUND, which test/fabric/run sets ("ib" if unset).
std::string ground();

// True if the other end of a pair is in another process.
bool far();

}  // namespace verbstest

#define CASE(name)                                           \
    static void name();                                      \
    static const verbstest::AddCase add_##name(#name, name); \
    static void name()

#define CHECK(condition) ((condition) ? (void)0 : verbstest::fail(__FILE__, __LINE__, "not true: " #condition))
#define CHECK_EQ(a, b) \
    verbstest::check_equal(static_cast<long long>(a), static_cast<long long>(b), #a, #b, __FILE__, __LINE__)
// The verb must succeed; the verb must return this error number.
#define CHECK_OK(call) verbstest::check_number((call), 0, #call, __FILE__, __LINE__)
#define CHECK_ERROR(call, number) verbstest::check_number((call), (number), #call, __FILE__, __LINE__)
// The verb must return null and set errno.
#define CHECK_NULL(call, number)                                                                                    \
    (errno = 0, (call) == nullptr ? verbstest::check_number(errno, (number), "errno of " #call, __FILE__, __LINE__) \
                                  : verbstest::fail(__FILE__, __LINE__, "succeeded, and should not: " #call))
