// SPDX-License-Identifier: BSD-3-Clause
// The implementation of the harness in mpi_test.h, with main().
#include "mpi_test.h"

#include <sys/wait.h>

#include "cases.h"
#include "keep_loaded.h"

namespace mpitest {
namespace {

std::string skip;  // the reason why this case is skipped, or empty

// With every pml, mpirun of Open MPI 4.1.4 sometimes does not answer a process that has been spawned on a busy machine. The
// process then stays in PMIx_Init, before MPI opens a pml, and the job waits for it. lib/report.sh looks for this line.
void tell_of_unanswered() {
    constexpr const char* kLook = R"sh(own=$(readlink /proc/$PPID/exe)
        for each in /proc/[0-9]*; do
            [ $each = /proc/$PPID ] || [ "$(readlink $each/exe)" != "$own" ] || grep -q mca_pml_ $each/maps ||
                echo "mpirun does not answer process ${each#/proc/}" >&2
        done)sh";
    const pid_t shell = fork();
    if (shell == 0) {
        execl("/bin/sh", "sh", "-c", kLook, nullptr);
        _exit(127);
    }
    int status = 0;
    if (shell > 0) (void)!waitpid(shell, &status, 0);
}

// When a hang guard ends a rank, mpirun ends the others.
void enter(const char* name, int world_rank) {
    cases::enter(name + (" on rank " + std::to_string(world_rank)),
                 static_cast<unsigned>(settings().hang_seconds * hang_scale()));
}

void check_nothing_left(MPI_Comm comm) {
    MPI_Barrier(comm);
    int flag = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status);
    if (flag != 0)
        fail(__FILE__, __LINE__,
             "a message is left over: source " + std::to_string(status.MPI_SOURCE) + ", tag " +
                 std::to_string(status.MPI_TAG));
}

void run(const cases::Case<Body>& test) {
    Env env;
    MPI_Comm_dup(MPI_COMM_WORLD, &env.comm);
    MPI_Comm_rank(env.comm, &env.rank);
    MPI_Comm_size(env.comm, &env.size);
    enter(test.name, env.rank);
    if (env.rank == 0) {
        printf("RUN %s\n", test.name);
        fflush(stdout);
    }
    skip.clear();
    const double start = MPI_Wtime();
    test.body(env);
    check_nothing_left(env.comm);
    MPI_Comm_free(&env.comm);
    if (env.rank == 0) {
        if (skip.empty()) printf("OK %s %.2f\n", test.name, MPI_Wtime() - start);
        else printf("SKIP %s %s\n", test.name, skip.c_str());
        fflush(stdout);
    }
}

}  // namespace

AddCase::AddCase(const char* name, Body body) { cases::all<Body>().push_back({name, body}); }

Settings& settings() {
    static Settings the;
    return the;
}

bool on_ob1() {
    const char* pml = getenv("COOP_TEST_PML");
    return pml != nullptr && strcmp(pml, "ob1") == 0;
}

bool skipped_on_ob1(const char* why) {
    if (!on_ob1()) return false;
    skip = std::string("stock ob1 fails here: ") + why;
    return true;
}

int hang_scale() {
    const char* scale = getenv("COOP_TEST_HANG_SCALE");
    const int value = scale == nullptr ? 1 : atoi(scale);
    return value < 1 ? 1 : value;
}

void fail(const char* file, int line, const std::string& what) {
    cases::say_failed(file, line, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void check_equal(long long a, long long b, const char* a_text, const char* b_text, const char* file, int line) {
    if (a != b) fail(file, line, cases::unequal(a, b, a_text, b_text));
}

std::string mpi_error_text(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return text;
}

void check_mpi(int code, const char* text, const char* file, int line) {
    if (code != MPI_SUCCESS) fail(file, line, std::string(text) + " returned " + mpi_error_text(code));
}

void check_error_class(int code, int error_class, const char* text, const char* file, int line) {
    int got = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &got);
    if (got != error_class)
        fail(
            file, line,
            std::string(text) + " gave '" + mpi_error_text(code) + "', expected '" + mpi_error_text(error_class) + "'");
}

void check_pattern(std::uint64_t key, const void* data, std::size_t bytes, const char* file, int line) {
    const std::size_t at = pattern::mismatch(key, 0, data, bytes);
    if (at == pattern::kNone) return;
    fail(file, line,
         "byte " + std::to_string(at) + " of " + std::to_string(bytes) + " is " +
             std::to_string(static_cast<const unsigned char*>(data)[at]) + ", expected " +
             std::to_string(pattern::byte(key, at)));
}

void check_untouched(unsigned char value, const void* data, std::size_t bytes, const char* file, int line) {
    const auto* in = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i)
        if (in[i] != value)
            fail(file, line,
                 "byte " + std::to_string(i) + " of " + std::to_string(bytes) + " beyond the message was written");
}

}  // namespace mpitest

int main(int argc, char** argv) {
    using namespace mpitest;
    const auto chosen = cases::select<Body>(argc, argv, [](const std::string& argument) {
        if (argument == "--funneled") settings().thread_level = MPI_THREAD_FUNNELED;
        else if (argument == "--serialized") settings().thread_level = MPI_THREAD_SERIALIZED;
        else if (argument == "--multiple") settings().thread_level = MPI_THREAD_MULTIPLE;
        else settings().arguments.push_back(argument);
    });
    cases::more_about_hang = tell_of_unanswered;
    enter("MPI_Init", -1);
    if (settings().before_init != nullptr) settings().before_init();
    int provided = 0;
    MPI_Init_thread(&argc, &argv, settings().thread_level, &provided);
    keep_components_loaded();
    if (provided < settings().thread_level) fail(__FILE__, __LINE__, "MPI does not provide the thread level");

    if (settings().after_init != nullptr) settings().after_init();
    MPI_Comm parent = MPI_COMM_NULL;
    if (settings().child_main != nullptr) MPI_Comm_get_parent(&parent);
    int result = 0;
    if (parent != MPI_COMM_NULL) {
        enter("child", -1);
        result = settings().child_main(parent);
    } else {
        for (const auto& test : chosen) run(test);
    }
    enter("MPI_Finalize", -1);
    MPI_Finalize();
    return result;
}
