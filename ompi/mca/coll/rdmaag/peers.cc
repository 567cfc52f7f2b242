// SPDX-License-Identifier: BSD-3-Clause
#include "peers.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "coop/coll/packet.h"
#include "diagnose.h"

namespace coop::ag {
namespace {

constexpr const char* kKey = "coll.rdmaag";

struct Card {
    std::uint32_t version;
    std::uint32_t priority;
    bool operator==(const Card&) const = default;
};
Card card_of(std::int64_t priority) noexcept { return {coll::kPacketVersion, static_cast<std::uint32_t>(priority)}; }

bool has_published(const opal_process_name_t& name, const Card& expected) noexcept {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    opal_process_name_t asked = name;
    int rc;
    OPAL_MODEX_RECV_STRING(rc, kKey, &asked, &bytes, &size);
    Card card{};
    const bool whole = rc == OMPI_SUCCESS && bytes && size == sizeof card;
    if (whole) std::memcpy(&card, bytes, sizeof card);
    std::free(bytes);
    // An error may be of this process alone, so it must not decide.
    if (rc != OMPI_SUCCESS && rc != OPAL_ERR_NOT_FOUND) modex_failed(name.vpid, rc);
    return whole && card == expected;
}

std::uint64_t key_of(const opal_process_name_t& name) noexcept { return std::uint64_t{name.jobid} << 32 | name.vpid; }

}  // namespace

void publish_use(std::int64_t priority) noexcept {
    Card card = card_of(priority);
    int rc;
    OPAL_MODEX_SEND_STRING(rc, OPAL_PMIX_GLOBAL, const_cast<char*>(kKey), &card, sizeof card);
    static_cast<void>(rc);  // the others then do not use it with this process
}

bool all_use_it(ompi_communicator_t& comm, std::int64_t priority) noexcept {
    const Card expected = card_of(priority);
    static std::mutex lock;
    static auto& known = *new std::unordered_set<std::uint64_t>;
    const std::lock_guard guard(lock);
    // By name: looking up the processes would create those that this one never talks to.
    for (int rank = 0; rank < ompi_comm_size(&comm); ++rank) {
        const opal_process_name_t name = ompi_group_get_proc_name(comm.c_local_group, rank);
        if (rank == ompi_comm_rank(&comm) || known.contains(key_of(name))) continue;
        if (!has_published(name, expected)) return false;
        known.insert(key_of(name));
    }
    return true;
}

}  // namespace coop::ag
