// SPDX-License-Identifier: BSD-3-Clause
//
// A minimal harness for programs that check MPI's behaviour. A program is a list of
// CASEs, which every rank runs in the order of the file. A case gets its own
// communicator, and the harness then checks that no message is left over in it. A
// failed CHECK prints what was expected and aborts the job, because other ranks may be
// waiting for the one that failed.
//
//     program [--list] [--from CASE] [--only CASE] [--funneled | --serialized | --multiple]
//
// The last ones request that thread level from MPI, instead of the program's own.
//
// Rank 0 prints "RUN case", then "OK case seconds" or "SKIP case why";
// test/mpi/run reads that, and restarts the program after a case that ended it.
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

// Settings of a program.
struct Settings {
    int thread_level = MPI_THREAD_SINGLE;          // requested from MPI, which must provide it
    int hang_seconds = 120;                        // time limit of a case
    void (*before_init)() = nullptr;               // before MPI_Init
    void (*after_init)() = nullptr;                // before the first message
    int (*child_main)(MPI_Comm parent) = nullptr;  // in spawned processes, instead of the cases
    std::vector<std::string> arguments;            // what the harness did not take
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

// Checks byte by byte that `bytes` bytes are the message `key`.
void check_pattern(std::uint64_t key, const void* data, std::size_t bytes, const char* file, int line);
// Checks that all of the bytes are `value`.
void check_untouched(unsigned char value, const void* data, std::size_t bytes, const char* file, int line);

// True if stock ob1 is being tested (COOP_TEST_PML=ob1, set by test/mpi/run).
bool on_ob1();

// For a case that stock Open MPI is known to fail: true if ob1 is being tested, after
// noting the reason.
bool skipped_on_ob1(const char* why);

// Factor for the time limits of cases: $COOP_TEST_HANG_SCALE (default: 1), for slow machines.
int hang_scale();

}  // namespace mpitest

#define CASE(name)                                         \
    static void name(const mpitest::Env&);                 \
    static const mpitest::AddCase add_##name(#name, name); \
    static void name([[maybe_unused]] const mpitest::Env& env)

#define CHECK(condition) ((condition) ? (void)0 : mpitest::fail(__FILE__, __LINE__, "not true: " #condition))
#define CHECK_EQ(a, b) \
    mpitest::check_equal(static_cast<long long>(a), static_cast<long long>(b), #a, #b, __FILE__, __LINE__)
#define CHECK_MPI(call) mpitest::check_mpi((call), #call, __FILE__, __LINE__)
#define CHECK_ERROR(call, error_class) mpitest::check_error_class((call), (error_class), #call, __FILE__, __LINE__)
#define CHECK_PATTERN(key, data, bytes) mpitest::check_pattern((key), (data), (bytes), __FILE__, __LINE__)
#define CHECK_UNTOUCHED(value, data, bytes) mpitest::check_untouched((value), (data), (bytes), __FILE__, __LINE__)
