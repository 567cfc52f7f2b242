// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/alternates.h"

#include <algorithm>

namespace coop::path {
namespace {

std::uint8_t least_mtu(const PortRecord& a, const PortRecord& b) noexcept { return std::min(a.mtu, b.mtu); }

// The other ports of the HCA of `own`, as indices: those with higher numbers first, in ascending order.
std::vector<std::uint8_t> others(std::span<const PortRecord> ports, std::uint8_t own) {
    std::vector<std::uint8_t> found;
    for (std::size_t i = 0; i < ports.size(); ++i)
        if (i != own && ports[i].hca == ports[own].hca) found.push_back(static_cast<std::uint8_t>(i));
    const auto distance = [&](std::uint8_t i) { return static_cast<std::uint8_t>(ports[i].port - ports[own].port); };
    std::sort(found.begin(), found.end(), [&](std::uint8_t a, std::uint8_t b) { return distance(a) < distance(b); });
    return found;
}

unsigned common_lids(const PortRecord& a, const PortRecord& b) noexcept {
    return 1u << std::min({a.lmc + 0u, b.lmc + 0u, kMaxLmc});
}

void add_ports(Ring& ring, std::span<const PortRecord> local, std::span<const PortRecord> remote) {
    const PathChoice rail = ring.paths.front();
    const std::uint8_t mtu = least_mtu(local[rail.local_port], remote[rail.remote_port]);
    const Reach reach = reach_between(local, remote);
    const auto ours = others(local, rail.local_port), theirs = others(remote, rail.remote_port);
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
        const PortRecord &here = local[ours[i]], &there = remote[theirs[i]];
        if (!reach_each_other(here, there, reach) || least_mtu(here, there) < mtu) continue;
        PathChoice path = rail;
        path.local_port = ours[i];
        path.remote_port = theirs[i];
        path.local_bits = path.remote_bits = static_cast<std::uint8_t>(rail.local_bits % common_lids(here, there));
        ring.paths.push_back(path);
    }
}

void add_lids(Ring& ring, std::span<const PortRecord> local, std::span<const PortRecord> remote) {
    const PathChoice rail = ring.paths.front();
    const unsigned lids = common_lids(local[rail.local_port], remote[rail.remote_port]);
    for (unsigned i = 1; i < lids; ++i) {
        PathChoice path = rail;
        path.local_bits = path.remote_bits = static_cast<std::uint8_t>((rail.local_bits + i) % lids);
        ring.paths.push_back(path);
    }
}

NoAlternate lacks(Apm mode) noexcept {
    switch (mode) {
    case Apm::kLmc: return NoAlternate::kNoLid;
    case Apm::kPort: return NoAlternate::kNoPort;
    case Apm::kOff:
    case Apm::kAuto: break;
    }
    return NoAlternate::kNoPath;
}

NoAlternate inability(const PortRecord& here, const PortRecord& there) noexcept {
    if (here.link_layer == LinkLayer::kEthernet) return NoAlternate::kRoce;
    if (here.migrates == 0) return NoAlternate::kHcaCannot;
    if (there.migrates == 0) return NoAlternate::kPeerCannot;
    return NoAlternate::kNone;
}

}  // namespace

const char* describe(NoAlternate why) noexcept {
    switch (why) {
    case NoAlternate::kNone: return "there is an alternate path";
    case NoAlternate::kOff: return "this process does not want any";
    case NoAlternate::kRoce: return "RoCE has no path migration";
    case NoAlternate::kHcaCannot: return "the HCA of this process has no path migration";
    case NoAlternate::kPeerCannot: return "the HCA of the peer has no path migration";
    case NoAlternate::kPeerOff: return "the peer does not want any";
    case NoAlternate::kPeerDiffers: return "one process wants another port, the other one another LID";
    case NoAlternate::kNoPort:
        return "the two HCAs have no other ports that were active at the start and reach each other";
    case NoAlternate::kNoLid: return "one of the ports has only one LID (LMC 0)";
    case NoAlternate::kNoPath:
        return "the two HCAs have no other ports that were active at the start and reach each other, and one of the "
               "ports "
               "has only one LID (LMC 0)";
    case NoAlternate::kRefused: return "the HCA has refused to load one";
    }
    return "?";
}

AgreedApm agreed(Apm own, Apm peers) noexcept {
    if (own == Apm::kOff) return {Apm::kOff, NoAlternate::kOff};
    if (peers == Apm::kOff) return {Apm::kOff, NoAlternate::kPeerOff};
    if (own == peers || peers == Apm::kAuto) return {own, NoAlternate::kNone};
    if (own == Apm::kAuto) return {peers, NoAlternate::kNone};
    return {Apm::kOff, NoAlternate::kPeerDiffers};
}

Ring ring_of(const PathChoice& rail, std::span<const PortRecord> local, std::span<const PortRecord> remote) {
    const PortRecord &here = local[rail.local_port], &there = remote[rail.remote_port];
    Ring ring{{rail}, NoAlternate::kNone};
    const AgreedApm apm = agreed(static_cast<Apm>(here.apm), static_cast<Apm>(there.apm));
    if (ring.why = apm.why; ring.why == NoAlternate::kNone) ring.why = inability(here, there);
    if (ring.why != NoAlternate::kNone) return ring;
    if (apm.mode != Apm::kLmc) add_ports(ring, local, remote);
    if (apm.mode != Apm::kPort && !ring.has_alternate()) add_lids(ring, local, remote);
    if (!ring.has_alternate()) ring.why = lacks(apm.mode);
    return ring;
}

}  // namespace coop::path
