// SPDX-License-Identifier: BSD-3-Clause
// Hints that applications and tools give pml/coop while the job runs: parameters written through MPI_T, and the
// communicator info keys coop_protocol and coop_overlap. Two ranks. Only for pml/coop.
#include <unistd.h>

#include "mpi_test.h"
#include "control.h"
#include "variable.h"

namespace {

constexpr std::size_t kBytes = 300000;

void message(MPI_Comm comm, int rank) {
    std::vector<unsigned char> data(kBytes);
    MPI_Barrier(comm);
    if (rank == 0) {
        pattern::fill(7, 0, data.data(), kBytes);
        MPI_Send(data.data(), static_cast<int>(kBytes), MPI_BYTE, 1, 0, comm);
    } else {
        MPI_Recv(data.data(), static_cast<int>(kBytes), MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(7, data.data(), kBytes);
    }
    MPI_Barrier(comm);
}

// Expects that the next message of rank 0 uses this row.
void expect_row(const mpitest::Env& env, MPI_Comm comm, const std::string& row) {
    const Variable sent("messages_" + row);
    const auto before = sent.read();
    message(comm, env.rank);
    if (env.rank == 0) CHECK_EQ(sent.read() - before, 1);
}

void set_info(MPI_Comm comm, const char* key, const char* value) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
}

std::string info_of(MPI_Comm comm, const char* key) {
    MPI_Info info;
    char value[64] = "";
    int found = 0;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get(info, key, sizeof value - 1, value, &found);
    MPI_Info_free(&info);
    return found ? value : "";
}

}  // namespace

CASE(the_protocol_may_be_written_at_any_time) {
    for (const char* word : {"rget", "rput", "coop", "send", "rget"}) {
        CHECK_EQ(write_word("pml_coop_protocol", word), MPI_SUCCESS);
        expect_row(env, env.comm, word);
    }
    CHECK_EQ(write_word("pml_coop_protocol", "hybrid"), MPI_SUCCESS);
}

// MPI_T refuses an index without a word. A number out of range is accepted, and reported when the next message starts.
// None of its messages needs a request.
CASE(a_sender_that_only_uses_the_lane_takes_in_what_is_written) {
    constexpr int kMessages = 50, kLength = 16384;
    const Variable lane("messages_lane");
    std::vector<char> data(kLength, 'x');
    const auto send_some = [&] {
        const auto before = lane.read();
        for (int i = 0; i < kMessages; ++i) {
            if (env.rank == 0) CHECK_MPI(MPI_Send(data.data(), kLength, MPI_BYTE, 1, 0, env.comm));
            if (env.rank == 1) CHECK_MPI(MPI_Recv(data.data(), kLength, MPI_BYTE, 0, 0, env.comm, MPI_STATUS_IGNORE));
        }
        return static_cast<int>(lane.read() - before);
    };
    const std::int64_t all = 65536, none = 0, found = -1;
    CHECK_EQ(write_control("pml_coop_lane_max", &all), MPI_SUCCESS);
    message(env.comm, env.rank);  // a long one, so that the new value is certainly used
    send_some();                  // lengthens the ring
    CHECK_EQ(send_some(), env.rank == 0 ? kMessages : 0);
    CHECK_EQ(write_control("pml_coop_lane_max", &none), MPI_SUCCESS);
    CHECK_EQ(send_some(), 0);
    CHECK_EQ(write_control("pml_coop_lane_max", &found), MPI_SUCCESS);
}

CASE(a_process_that_only_receives_takes_in_what_is_written) {
    const Variable offers("offers");
    std::vector<char> data(200000, 'x');
    const auto bytes = static_cast<int>(data.size());
    const auto offers_of_next = [&] {
        const auto before = offers.read();
        if (env.rank == 0) {
            usleep(100000);
            CHECK_MPI(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 0, env.comm));
        } else {
            CHECK_MPI(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 0, env.comm, MPI_STATUS_IGNORE));
        }
        return offers.read() - before;
    };
    MPI_Barrier(env.comm);
    CHECK_EQ(offers_of_next(), env.rank == 1 ? 1u : 0u);
    const std::int64_t never = 0, again = 65536;
    CHECK_EQ(write_control("pml_coop_rtr_min", &never), MPI_SUCCESS);
    CHECK_EQ(offers_of_next(), 0u);
    CHECK_EQ(write_control("pml_coop_rtr_min", &again), MPI_SUCCESS);
    CHECK_EQ(offers_of_next(), env.rank == 1 ? 1u : 0u);
}

CASE(a_written_value_that_is_not_allowed_changes_nothing) {
    CHECK_EQ(write_word("pml_coop_protocol", "rput"), MPI_SUCCESS);
    expect_row(env, env.comm, "rput");
    for (int index : {-1, 1000}) CHECK(write_control("pml_coop_protocol", &index) != MPI_SUCCESS);
    expect_row(env, env.comm, "rput");
    const std::int64_t chunk = 1;
    CHECK_EQ(write_control("pml_coop_copy_chunk", &chunk), MPI_SUCCESS);
    expect_row(env, env.comm, "rput");
    CHECK_EQ(write_word("pml_coop_protocol", "rget"), MPI_SUCCESS);
    expect_row(env, env.comm, "rget");
    const std::int64_t allowed = 512 * 1024;
    CHECK_EQ(write_control("pml_coop_copy_chunk", &allowed), MPI_SUCCESS);
    CHECK_EQ(write_word("pml_coop_protocol", "hybrid"), MPI_SUCCESS);
}

CASE(a_communicator_has_its_own_protocol) {
    MPI_Comm other;
    MPI_Comm_dup(env.comm, &other);
    set_info(other, "coop_protocol", "rput");
    CHECK(info_of(other, "coop_protocol") == "rput");
    expect_row(env, other, "rput");
    set_info(other, "coop_protocol", "rget");
    expect_row(env, other, "rget");
    set_info(other, "coop_protocol", "no such thing");
    expect_row(env, other, "rget");
    MPI_Comm_free(&other);
}

// Under coop_coll the row shows how the calls were classified.
CASE(the_side_that_overlaps_leaves_the_copying_to_the_other) {
    for (int computing : {0, 1}) {
        MPI_Comm other;
        MPI_Comm_dup(env.comm, &other);
        set_info(other, "coop_protocol", "coop_coll");
        expect_row(env, other, "coop");
        if (env.rank == computing) set_info(other, "coop_overlap", "yes");
        expect_row(env, other, computing == 0 ? "rget" : "rput");
        if (env.rank == computing) set_info(other, "coop_overlap", "no");
        expect_row(env, other, "coop");
        MPI_Comm_free(&other);
    }
}
