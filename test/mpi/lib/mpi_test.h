// SPDX-License-Identifier: BSD-3-Clause
//
// The smallest harness for programs that check MPI's behaviour. A program is a
// list of CASEs; every rank runs all of them in the order of the file. A case
// gets a communicator of its own, and after it the harness checks that no
// message is left over in there. A CHECK that does not hold aborts the job with
// what was expected: other ranks may be waiting for the one that failed.
//
//     program [--list] [--from CASE] [--only CASE] [--funneled | --serialized | --multiple]
//
// The last ones ask MPI for that thread level, whatever the program says of itself.
//
// Rank 0 prints "RUN case", then "OK case seconds" or "SKIP case why";
// test/mpi/run reads that, and restarts the program behind a case that killed it.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pattern.h"

namespace mpitest {

struct Env {
    MPI_Comm comm = MPI_COMM_NULL;  // a duplicate of MPI_COMM_WORLD
    int rank = 0;
    int size = 0;
};

using Body = void (*)(const Env&);

struct AddCase {
    AddCase(const char* name, Body body);
};

// What a program may say about itself, beside its cases.
struct Settings {
    int thread_level = MPI_THREAD_SINGLE;  // asked of MPI, and insisted on
    int hang_seconds = 120;                // a case without end is ended then
    void (*before_init)() = nullptr;       // before MPI_Init
    void (*after_init)() = nullptr;        // before the first message
    int (*child_main)(MPI_Comm parent) = nullptr;  // in spawned processes, instead of the cases
    std::vector<std::string> arguments;    // what the harness did not take
};
Settings& settings();
struct Configure {
    explicit Configure(void (*set)(Settings&)) { set(settings()); }
};

[[noreturn]] void fail(const char* file, int line, const std::string& what);
void check_equal(long long a, long long b, const char* a_text, const char* b_text, const char* file, int line);
std::string mpi_error_text(int code);
void check_mpi(int code, const char* text, const char* file, int line);
void check_error_class(int code, int error_class, const char* text, const char* file, int line);

// Checks that `bytes` is the message `key`, byte by byte.
void check_pattern(std::uint64_t key, const void* data, std::size_t bytes, const char* file, int line);
// Checks that all of `bytes` are `value`.
void check_untouched(unsigned char value, const void* data, std::size_t bytes, const char* file, int line);

// Whether stock ob1 is what is tested (COOP_TEST_PML=ob1, set by test/mpi/run).
bool on_ob1();

// For a case that stock Open MPI is known to fail: whether this is it, after
// noting why.
bool skipped_on_ob1(const char* why);

// The time hang guards are scaled by: sanitizers are slow.
int hang_scale();

}  // namespace mpitest

#define CASE(name)                                              \
    static void name(const mpitest::Env&);                      \
    static const mpitest::AddCase add_##name(#name, name);      \
    static void name([[maybe_unused]] const mpitest::Env& env)

#define CHECK(condition) \
    ((condition) ? (void)0 : mpitest::fail(__FILE__, __LINE__, "not true: " #condition))
#define CHECK_EQ(a, b) \
    mpitest::check_equal(static_cast<long long>(a), static_cast<long long>(b), #a, #b, __FILE__, __LINE__)
#define CHECK_MPI(call) mpitest::check_mpi((call), #call, __FILE__, __LINE__)
#define CHECK_ERROR(call, error_class) mpitest::check_error_class((call), (error_class), #call, __FILE__, __LINE__)
#define CHECK_PATTERN(key, data, bytes) mpitest::check_pattern((key), (data), (bytes), __FILE__, __LINE__)
#define CHECK_UNTOUCHED(value, data, bytes) mpitest::check_untouched((value), (data), (bytes), __FILE__, __LINE__)
