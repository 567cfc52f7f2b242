// SPDX-License-Identifier: BSD-3-Clause
#include "peers.h"

#include "coop/coll/packet.h"
#include "diagnose.h"
#include "ompi/mca/shim/peers.h"

namespace coop::ag {
namespace {

UseCard card_of(std::int64_t priority) noexcept { return {coll::kPacketVersion, static_cast<std::uint32_t>(priority)}; }

PublishedUse& use() noexcept {
    static auto& published = *new PublishedUse("coll.rdmaag", modex_failed);
    return published;
}

}  // namespace

void publish_use(std::int64_t priority) noexcept { use().publish(card_of(priority)); }

bool all_use_it(ompi_communicator_t& comm, std::int64_t priority) noexcept {
    return use().all_publish(comm, card_of(priority));
}

}  // namespace coop::ag
