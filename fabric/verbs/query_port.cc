// SPDX-License-Identifier: BSD-3-Clause
//
// Ports and their tables of GIDs and P_Keys.
#include <endian.h>

#include <algorithm>
#include <cstring>

#include "fabric/verbs/context.h"
#include "fabric/verbs/operations.h"
#include "fabric/verbs/port_state.h"

namespace coop::fabric {

int query_port(ibv_context* context, std::uint8_t number, ibv_port_attr* attr, std::size_t bytes) {
    const VerbsContext& device = to_context(context);
    if (!device.has_port(number)) return EINVAL;
    const ibv_port_attr described = describe_port(device.subnet(), device.port(number));
    std::memset(attr, 0, bytes);
    std::memcpy(attr, &described, std::min(bytes, sizeof described));
    return 0;
}

namespace {

bool has_gid(const VerbsContext& context, std::uint32_t port, std::uint32_t index) {
    return context.has_port(port) && index < context.port(port).gid_count;
}

ibv_gid_entry gid_entry(const VerbsContext& context, std::uint32_t number, std::uint32_t index) {
    const Port& port = context.port(number);
    ibv_gid_entry entry{};
    std::memcpy(entry.gid.raw, port.gids[index], sizeof entry.gid.raw);
    entry.gid_index = index;
    entry.port_num = number;
    entry.gid_type = gid_type(port, index);
    return entry;
}

}  // namespace
}  // namespace coop::fabric

using namespace coop::fabric;

// Called by programs built before ibv_port_attr grew.
COOP_VERB int ibv_query_port(ibv_context* context, std::uint8_t number, _compat_ibv_port_attr* attr) {
    return query_port(context, number, reinterpret_cast<ibv_port_attr*>(attr),
                      offsetof(ibv_port_attr, port_cap_flags2));
}

COOP_VERB int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
    const VerbsContext& device = to_context(context);
    if (index < 0 || !has_gid(device, port, static_cast<std::uint32_t>(index))) {
        errno = EINVAL;
        return -1;
    }
    *gid = gid_entry(device, port, static_cast<std::uint32_t>(index)).gid;
    return 0;
}

COOP_VERB int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry,
                                std::uint32_t flags, std::size_t entry_bytes) {
    const VerbsContext& device = to_context(context);
    if (flags != 0) return EOPNOTSUPP;
    if (!has_gid(device, port, index)) return EINVAL;
    const ibv_gid_entry found = gid_entry(device, port, index);
    std::memset(entry, 0, entry_bytes);
    std::memcpy(entry, &found, std::min(entry_bytes, sizeof found));
    return 0;
}

COOP_VERB ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most,
                                       std::uint32_t flags, std::size_t entry_bytes) {
    const VerbsContext& device = to_context(context);
    if (flags != 0) return -EOPNOTSUPP;
    std::size_t n = 0;
    for (std::uint32_t port = 1; port <= device.hca().ports; ++port)
        for (std::uint32_t index = 0; index < device.port(port).gid_count; ++index, ++n) {
            if (n == most) return -EINVAL;
            auto* to = reinterpret_cast<ibv_gid_entry*>(reinterpret_cast<std::byte*>(entries) + n * entry_bytes);
            _ibv_query_gid_ex(context, port, index, to, 0, entry_bytes);
        }
    return static_cast<ssize_t>(n);
}

// Private to rdma-core, and used by its ibv_devinfo. 0: InfiniBand and RoCE v1, 1: RoCE v2.
extern "C" int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type);
COOP_VERB int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type) {
    const VerbsContext& device = to_context(context);
    if (!has_gid(device, port, index)) {
        errno = EINVAL;
        return -1;
    }
    *type = gid_type(device.port(port), index) == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
    return 0;
}

COOP_VERB int ibv_query_pkey(ibv_context* context, std::uint8_t number, int index, __be16* pkey) {
    const VerbsContext& device = to_context(context);
    if (!device.has_port(number) || index < 0 || static_cast<std::uint32_t>(index) >= device.port(number).pkey_count) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htobe16(device.port(number).pkeys[index]);
    return 0;
}

// Matches the complete key, because full and limited members of a partition have different keys.
COOP_VERB int ibv_get_pkey_index(ibv_context* context, std::uint8_t number, __be16 pkey) {
    const VerbsContext& device = to_context(context);
    if (device.has_port(number)) {
        const Port& port = device.port(number);
        const auto* const end = port.pkeys + port.pkey_count;
        if (const auto* found = std::find(port.pkeys, end, be16toh(pkey)); found != end)
            return static_cast<int>(found - port.pkeys);
    }
    errno = EINVAL;
    return -1;
}
