// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/address_handle.h"

#include <endian.h>

#include <cstring>

#include "fabric/engine/path.h"
#include "fabric/verbs/port_state.h"
#include "fabric/verbs/protection_domain.h"

namespace coop::fabric {

bool is_good_address(const VerbsContext& context, const ibv_ah_attr& attr) {
    if (!context.has_port(attr.port_num) || attr.sl > 15) return false;
    const Port& port = context.port(attr.port_num);
    if (attr.is_global != 0) return attr.grh.sgid_index < port.gid_count;
    return !is_ethernet(port);
}

namespace {

// Index of a GID in the port's table; -1: not found.
int find_gid(const Port& port, const std::uint8_t (&gid)[16]) {
    for (std::uint32_t i = 0; i < port.gid_count; ++i)
        if (std::memcmp(port.gids[i], gid, sizeof gid) == 0) return static_cast<int>(i);
    return -1;
}

}  // namespace
}  // namespace coop::fabric

using namespace coop::fabric;

COOP_VERB ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
    const VerbsContext& context = to_context(pd->context);
    if (!is_good_address(context, *attr)) return refuse<ibv_ah>(EINVAL);
    const Path path = path_of(*attr);
    const std::uint32_t addresses = context.subnet().header().addresses.load(std::memory_order_acquire);
    const Route route = find_route(context.subnet(), context.port_index(attr->port_num), path);
    // On Ethernet the address is resolved now; on InfiniBand nothing checks whether a port has the LID.
    if (!route.leads_somewhere() && is_ethernet(context.port(attr->port_num))) return refuse<ibv_ah>(EHOSTUNREACH);
    auto* ah = new VerbsAh;
    ah->context = pd->context;
    ah->pd = pd;
    ah->to = {route, path, to_pd(pd).number, addresses};
    return ah;
}

// Describes the sender of a datagram: by LID, and by GID if the datagram had a global header, which is in its first 40
// bytes.
COOP_VERB int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                                  ibv_ah_attr* attr) {
    const VerbsContext& device = to_context(context);
    *attr = {};
    if (!device.has_port(port)) {
        errno = EINVAL;
        return -1;
    }
    attr->dlid = wc->slid;
    attr->sl = wc->sl;
    attr->src_path_bits = wc->dlid_path_bits;
    attr->port_num = port;
    if ((wc->wc_flags & IBV_WC_GRH) == 0) return 0;
    const int index = find_gid(device.port(port), grh->dgid.raw);
    if (index < 0) {
        errno = ENODATA;
        return -1;
    }
    const std::uint32_t flow = be32toh(grh->version_tclass_flow);
    attr->is_global = 1;
    attr->grh.dgid = grh->sgid;
    attr->grh.sgid_index = static_cast<std::uint8_t>(index);
    attr->grh.flow_label = flow & 0xfffff;
    attr->grh.traffic_class = static_cast<std::uint8_t>(flow >> 20);
    attr->grh.hop_limit = grh->hop_limit;
    return 0;
}

COOP_VERB ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
    ibv_ah_attr attr;
    return ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) == 0 ? ibv_create_ah(pd, &attr) : nullptr;
}

COOP_VERB int ibv_destroy_ah(ibv_ah* ah) {
    delete static_cast<VerbsAh*>(ah);
    return 0;
}
