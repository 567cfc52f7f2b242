// SPDX-License-Identifier: BSD-3-Clause
// Messages when there is no memory for another request: an error, never a hang, and the messages that there is memory
// for arrive in order. Two ranks. Only for pml/coop.
#include <unistd.h>

#include "mpi_test.h"

namespace {

constexpr int kLong = 100000, kShort = 64;  // bytes

std::uint64_t key_of(int i) { return pattern::key({static_cast<std::uint64_t>(i)}); }

// Makes errors of the communicator return.
class Returning {
public:
    explicit Returning(MPI_Comm comm) : comm_(comm) { MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN); }
    ~Returning() { MPI_Comm_set_errhandler(comm_, MPI_ERRORS_ARE_FATAL); }

private:
    MPI_Comm comm_;
};

bool is_out_of_memory(int code) {
    int error_class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
    CHECK(error_class == MPI_SUCCESS || error_class == MPI_ERR_NO_MEM);
    return error_class == MPI_ERR_NO_MEM;
}

// Rank 0 sends `count` messages of `bytes` bytes while rank 1 makes no call. Then both learn which of them were sent.
// Returns how many were not.
int send_and_receive(const mpitest::Env& env, int count, int bytes) {
    const Returning errors(env.comm);
    std::vector<unsigned char> refused(static_cast<std::size_t>(count) / 8 + 1, 0);  // bits: few enough for one packet
    std::vector<MPI_Request> requests(static_cast<std::size_t>(count), MPI_REQUEST_NULL);
    std::vector<unsigned char> data(requests.size() * static_cast<std::size_t>(bytes));
    const auto message = [&](int i) { return &data[static_cast<std::size_t>(i) * static_cast<std::size_t>(bytes)]; };
    int missing = 0;
    for (int i = 0; i < count && env.rank == 0; ++i) {
        pattern::fill(key_of(i), 0, message(i), static_cast<std::size_t>(bytes));
        const auto at = static_cast<std::size_t>(i);
        if (is_out_of_memory(MPI_Isend(message(i), bytes, MPI_BYTE, 1, 7, env.comm, &requests[at])))
            refused[at / 8] |= static_cast<unsigned char>(1u << at % 8);
    }
    if (env.rank == 1) usleep(100000);
    CHECK_MPI(MPI_Bcast(refused.data(), static_cast<int>(refused.size()), MPI_BYTE, 0, env.comm));
    for (int i = 0; i < count; ++i) {
        const int is_refused = refused[static_cast<std::size_t>(i) / 8] >> i % 8 & 1;
        missing += is_refused;
        if (env.rank == 0 || is_refused) continue;
        MPI_Recv(message(0), bytes, MPI_BYTE, 0, 7, env.comm, MPI_STATUS_IGNORE);
        CHECK_PATTERN(key_of(i), message(0), static_cast<std::size_t>(bytes));
    }
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    return missing;
}

}  // namespace

// pml_coop_fault no_id@5: the fifth message with a handshake gets no id.
CASE(a_send_without_an_id_returns_an_error) {
    CHECK_EQ(send_and_receive(env, 12, kLong), 1);
    CHECK_EQ(send_and_receive(env, 12, kLong), 0);
}

// pml_coop_fault no_id@1: for blocking, synchronous, buffered and persistent sends.
CASE(every_kind_of_send_returns_the_error) {
    const Returning errors(env.comm);
    std::vector<unsigned char> data(kLong), attached(kLong + MPI_BSEND_OVERHEAD);
    const std::string kind = mpitest::settings().arguments.at(0);
    int status = MPI_SUCCESS;
    if (env.rank == 0) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (kind == "send") status = MPI_Send(data.data(), kLong, MPI_BYTE, 1, 1, env.comm);
        if (kind == "ssend") status = MPI_Ssend(data.data(), 8, MPI_BYTE, 1, 1, env.comm);
        if (kind == "bsend") {
            MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
            status = MPI_Bsend(data.data(), kLong, MPI_BYTE, 1, 1, env.comm);
            void* buffer;
            int bytes;
            MPI_Buffer_detach(&buffer, &bytes);
        }
        if (kind == "start") {
            MPI_Send_init(data.data(), kLong, MPI_BYTE, 1, 1, env.comm, &request);
            status = MPI_Start(&request);
            MPI_Request_free(&request);
        }
        CHECK(is_out_of_memory(status));
        MPI_Send(data.data(), kLong, MPI_BYTE, 1, 2, env.comm);
    } else {
        MPI_Recv(data.data(), kLong, MPI_BYTE, 0, 2, env.comm, MPI_STATUS_IGNORE);
    }
}

// pml_coop_free_list_max 64.
CASE(more_long_sends_than_there_is_room_for_return_an_error) {
    CHECK(send_and_receive(env, 100, kLong) >= 100 - 64);
    CHECK_EQ(send_and_receive(env, 20, kLong), 0);
}

// Short messages need no answer: they wait for room in the transport instead.
CASE(short_sends_without_room_wait) { CHECK_EQ(send_and_receive(env, 5000, kShort), 0); }

CASE(more_receives_than_there_is_room_for_return_an_error) {
    const Returning errors(env.comm);
    std::vector<MPI_Request> requests(100, MPI_REQUEST_NULL);
    int value = 0, refused = 0;
    for (MPI_Request& request : requests)
        refused += is_out_of_memory(MPI_Irecv(&value, 1, MPI_INT, 1 - env.rank, 3, env.comm, &request));
    CHECK(refused >= 100 - 64);
    for (MPI_Request& request : requests) {
        if (request == MPI_REQUEST_NULL) continue;
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK_EQ(send_and_receive(env, 20, kLong), 0);
}

// The last message is received first, while the others, more than 262144, wait for their receives.
CASE(three_hundred_thousand_sends_wait_for_their_receives) {
    constexpr int kMany = 300000;
    std::vector<unsigned char> data(kLong);
    if (env.rank == 0) {
        std::vector<MPI_Request> requests(kMany);
        for (MPI_Request& request : requests) MPI_Issend(nullptr, 0, MPI_BYTE, 1, 0, env.comm, &request);
        MPI_Send(data.data(), kLong, MPI_BYTE, 1, 1, env.comm);
        MPI_Waitall(kMany, requests.data(), MPI_STATUSES_IGNORE);
    } else {
        MPI_Recv(data.data(), kLong, MPI_BYTE, 0, 1, env.comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < kMany; ++i) MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, env.comm, MPI_STATUS_IGNORE);
    }
}
