// SPDX-License-Identifier: BSD-3-Clause
#include "peers.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "coop/coll/packet.h"

namespace coop::ag {
namespace {

constexpr const char* kKey = "coll.rdmaag";

struct Card {
    std::uint32_t version;
    std::uint32_t priority;
    bool operator==(const Card&) const = default;
};
Card card_of(std::int64_t priority) noexcept { return {coll::kPacketVersion, static_cast<std::uint32_t>(priority)}; }

bool has_published(ompi_proc_t& proc, const Card& expected) noexcept {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    int rc;
    OPAL_MODEX_RECV_STRING(rc, kKey, &proc.super.proc_name, &bytes, &size);
    Card card{};
    const bool whole = rc == OMPI_SUCCESS && bytes && size == sizeof card;
    if (whole) std::memcpy(&card, bytes, sizeof card);
    std::free(bytes);
    return whole && card == expected;
}

std::uint64_t name_of(const ompi_proc_t& proc) noexcept {
    return std::uint64_t{proc.super.proc_name.jobid} << 32 | proc.super.proc_name.vpid;
}

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
    for (int rank = 0; rank < ompi_comm_size(&comm); ++rank) {
        ompi_proc_t& proc = *ompi_comm_peer_lookup(&comm, rank);
        if (&proc == ompi_proc_local() || known.contains(name_of(proc))) continue;
        if (!has_published(proc, expected)) return false;
        known.insert(name_of(proc));
    }
    return true;
}

}  // namespace coop::ag
