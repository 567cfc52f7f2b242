// SPDX-License-Identifier: BSD-3-Clause
//
// Which processes of the job use a component. Open MPI selects components in each process alone; one that selects another
// component than its peers would wait for them for ever. So each process publishes what it uses in the modex. Include
// Open MPI's headers first (compat.h of the component).
//
// Threading: publish() before Open MPI exchanges the modex; all_publish() in any thread.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_set>

namespace coop {

// What a process publishes: processes use the component together if they have published the same.
struct UseCard {
    std::uint32_t version;
    std::uint32_t priority;
    bool operator==(const UseCard&) const = default;
};

class PublishedUse {
public:
    // `key`: of the component. failed(rank, code) is called if Open MPI cannot tell what a process has published; it ends
    // the job, since an error of this process alone must not decide.
    PublishedUse(const char* key, void (*failed)(std::uint32_t rank, int code)) noexcept : key_(key), failed_(failed) {}

    void publish(UseCard card) noexcept {
        int rc;
        OPAL_MODEX_SEND_STRING(rc, OPAL_PMIX_GLOBAL, const_cast<char*>(key_), &card, sizeof card);
        static_cast<void>(rc);  // the others then do not use it with this process
    }

    // Whether every process of the communicator has published the same as this one. Asks for each process once.
    bool all_publish(ompi_communicator_t& comm, UseCard expected) {
        const std::lock_guard guard(lock_);
        // By name: looking up the processes would create those that this one never talks to.
        for (int rank = 0; rank < ompi_comm_size(&comm); ++rank) {
            const opal_process_name_t name = ompi_group_get_proc_name(comm.c_local_group, rank);
            const std::uint64_t key = std::uint64_t{name.jobid} << 32 | name.vpid;
            if (rank == ompi_comm_rank(&comm) || known_.contains(key)) continue;
            if (!has_published(name, expected)) return false;
            known_.insert(key);
        }
        return true;
    }

private:
    bool has_published(opal_process_name_t name, UseCard expected) const noexcept {
        std::uint8_t* bytes = nullptr;
        std::size_t size = 0;
        int rc;
        OPAL_MODEX_RECV_STRING(rc, key_, &name, &bytes, &size);
        UseCard card{};
        const bool whole = rc == OMPI_SUCCESS && bytes && size == sizeof card;
        if (whole) std::memcpy(&card, bytes, sizeof card);
        std::free(bytes);
        if (rc != OMPI_SUCCESS && rc != OPAL_ERR_NOT_FOUND) failed_(name.vpid, rc);
        return whole && card == expected;
    }

    const char* const key_;
    void (*const failed_)(std::uint32_t rank, int code);
    std::mutex lock_;
    std::unordered_set<std::uint64_t> known_;
};

// Whether the process is on this node. By name: looking it up in the communicator would create it; Open MPI creates those
// of the own node at start.
inline bool is_on_this_node(ompi_communicator_t& comm, std::uint32_t rank) noexcept {
    if (rank == static_cast<std::uint32_t>(ompi_comm_rank(&comm))) return true;
    const opal_proc_t* const proc = ompi_proc_lookup(
        ompi_group_get_proc_name(comm.c_local_group, static_cast<int>(rank)));
    return proc && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags);
}

}  // namespace coop
