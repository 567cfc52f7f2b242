// SPDX-License-Identifier: BSD-3-Clause
// One message of more than 2 GiB (more than 31 bits can count), every byte checked. Needs twice its size of memory.
#include <sys/mman.h>

#include "mpi_test.h"

namespace {

const mpitest::Configure configure([](mpitest::Settings& s) { s.hang_seconds = 600; });

constexpr std::size_t kBlock = 1 << 20;
constexpr std::size_t kBytes = (std::size_t{2} << 30) + (std::size_t{200} << 20) + 12345;

struct Memory {
    unsigned char* data;
    Memory()
        : data(static_cast<unsigned char*>(
              mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        CHECK(data != MAP_FAILED);
    }
    ~Memory() { munmap(data, kBytes); }
};

// A type of kBytes for count 1: MiBs and a rest.
MPI_Datatype whole() {
    MPI_Datatype block, blocks, type;
    MPI_Type_contiguous(kBlock, MPI_BYTE, &block);
    MPI_Type_contiguous(static_cast<int>(kBytes / kBlock), block, &blocks);
    int lengths[2] = {1, static_cast<int>(kBytes % kBlock)};
    MPI_Aint at[2] = {0, static_cast<MPI_Aint>(kBytes / kBlock * kBlock)};
    MPI_Datatype parts[2] = {blocks, MPI_BYTE};
    MPI_Type_create_struct(2, lengths, at, parts, &type);
    MPI_Type_free(&block);
    MPI_Type_free(&blocks);
    MPI_Type_commit(&type);
    return type;
}

}  // namespace

CASE(message_of_more_than_2_gib_arrives_whole) {
    if (env.rank > 1) return;
    Memory memory;
    MPI_Datatype type = whole();
    if (env.rank == 0) {
        pattern::fill(77, 0, memory.data, kBytes);
        MPI_Send(memory.data, 1, type, 1, 1, env.comm);
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 2, env.comm, MPI_STATUS_IGNORE);  // wait until the receiver has checked
    } else {
        MPI_Status status;
        MPI_Count count = 0;
        MPI_Recv(memory.data, 1, type, 0, 1, env.comm, &status);
        MPI_Get_elements_x(&status, MPI_BYTE, &count);
        CHECK_EQ(count, kBytes);
        CHECK_PATTERN(77, memory.data, kBytes);
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 2, env.comm);
    }
    MPI_Type_free(&type);
}

CASE(probe_tells_a_size_of_more_than_2_gib) {
    if (env.rank > 1) return;
    Memory memory;
    MPI_Datatype type = whole();
    if (env.rank == 0) {
        memory.data[kBytes - 1] = 99;
        MPI_Send(memory.data, 1, type, 1, 1, env.comm);
    } else {
        MPI_Status status;
        MPI_Count count = 0;
        MPI_Message message;
        MPI_Mprobe(0, 1, env.comm, &message, &status);
        MPI_Get_elements_x(&status, MPI_BYTE, &count);
        CHECK_EQ(count, kBytes);
        MPI_Mrecv(memory.data, 1, type, &message, MPI_STATUS_IGNORE);
        CHECK_EQ(memory.data[kBytes - 1], 99);
    }
    MPI_Type_free(&type);
}
