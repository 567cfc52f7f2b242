// SPDX-License-Identifier: BSD-3-Clause
// Windows that still exist when MPI_Finalize is called: the program frees them from a callback, or forgets them.
#include "window.h"

namespace {

MPI_Win late_window = MPI_WIN_NULL;
Bytes late_memory, forgotten_memory(1000, kGuard);

// MPI works while MPI_Finalize deletes the attributes of MPI_COMM_SELF.
int free_window(MPI_Comm, int, void*, void*) {
    int rank, size;
    MPI_Group group;
    CHECK_MPI(MPI_Win_get_group(late_window, &group));
    MPI_Group_rank(group, &rank);
    MPI_Group_size(group, &size);
    MPI_Group_free(&group);
    const int next = (rank + 1) % size, value = 4711;
    CHECK_MPI(MPI_Win_fence(0, late_window));
    CHECK_MPI(MPI_Put(&value, 1, MPI_INT, next, 8, 1, MPI_INT, late_window));
    CHECK_MPI(MPI_Win_fence(0, late_window));
    int got;
    std::memcpy(&got, late_memory.data() + 8, sizeof got);
    CHECK_EQ(got, value);
    CHECK_MPI(MPI_Win_free(&late_window));
    return MPI_SUCCESS;
}

void put_once(MPI_Win win, int next, MPI_Aint at) {
    const unsigned char byte = 0x77;
    CHECK_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    CHECK_MPI(MPI_Put(&byte, 1, MPI_BYTE, next, at, 1, MPI_BYTE, win));
    CHECK_MPI(MPI_Win_unlock(next, win));
}

}  // namespace

CASE(a_window_is_freed_within_finalize) {
    late_memory.assign(64, 0);
    CHECK_MPI(MPI_Win_create(late_memory.data(), 64, 1, MPI_INFO_NULL, env.comm, &late_window));
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_window, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    MPI_Comm_free_keyval(&key);
}

// Of every flavour, some used and some not, one of a process alone; MPI_Finalize must end all the same.
CASE(windows_are_never_freed) {
    const Members members(Flavor::kShared, env.comm);
    const int next = (env.rank + 1) % env.size;
    void* base;
    MPI_Win created, allocated, shared, dynamic, unused;
    CHECK_MPI(MPI_Win_create(forgotten_memory.data(), 500, 1, MPI_INFO_NULL, env.comm, &created));
    CHECK_MPI(MPI_Win_allocate(500, 1, MPI_INFO_NULL, env.comm, &base, &allocated));
    CHECK_MPI(MPI_Win_allocate_shared(500, 1, MPI_INFO_NULL, members.comm, &base, &shared));
    CHECK_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, env.comm, &dynamic));
    CHECK_MPI(MPI_Win_attach(dynamic, forgotten_memory.data() + 500, 500));
    CHECK_MPI(MPI_Win_create(forgotten_memory.data(), 500, 1, MPI_INFO_NULL, env.comm, &unused));
    MPI_Aint mine;
    MPI_Get_address(forgotten_memory.data() + 500, &mine);
    std::vector<MPI_Aint> places(as_size(env.size));
    MPI_Allgather(&mine, 1, MPI_AINT, places.data(), 1, MPI_AINT, env.comm);
    put_once(created, next, 10);
    put_once(allocated, next, 10);
    put_once(shared, (rank_in(members.comm) + 1) % size_of(members.comm), 10);
    put_once(dynamic, next, places[as_size(next)] + 10);
    MPI_Barrier(env.comm);
    for (const std::size_t at : {10, 510}) CHECK_EQ(forgotten_memory[at], 0x77);
    CHECK_UNTOUCHED(kGuard, forgotten_memory.data() + 511, 489);
}
