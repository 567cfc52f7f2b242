// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tool/readdress.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "fabric/engine/outage.h"
#include "fabric/shm/trace.h"
#include "fabric/topo/units.h"

namespace coop::fabric {
namespace {

using Gid = std::array<std::uint8_t, 16>;

constexpr const char* kNew = "new";

bool is_ethernet(const Port& port) { return port.link_layer == IBV_LINK_LAYER_ETHERNET; }

std::uint32_t lids_of(const Port& port) { return 1u << port.lmc; }

// --- LIDs -----------------------------------------------------------------------------------------------------------

// The port that has one of these LIDs, other than `port`; kNone: there is none.
std::uint32_t owner_of_block(const Segment& subnet, std::uint32_t base, std::uint32_t count, std::uint32_t port) {
    for (std::uint32_t lid = base; lid < base + count; ++lid)
        if (const std::uint32_t owner = subnet.lids()[lid].port; owner != kNone && owner != port) return owner;
    return kNone;
}

// 0: there is none.
std::uint32_t lowest_free_block(const Segment& subnet, std::uint32_t count) {
    for (std::uint32_t base = count; base + count <= subnet.lids().size(); base += count)
        if (owner_of_block(subnet, base, count, kNone) == kNone) return base;
    return 0;
}

Error choose_lid(const Segment& subnet, std::uint32_t index, const std::string& text, std::uint32_t& base) {
    const std::uint32_t count = lids_of(subnet.ports()[index]);
    if (text == kNew) {
        base = lowest_free_block(subnet, count);
        return base != 0 ? Error{} : Error{"--lid: no LIDs are free"};
    }
    const std::uint64_t wanted = parse_number(text).value_or(0);
    if (wanted % count != 0) return {"--lid: " + text + " is not a multiple of 2^LMC, " + std::to_string(count)};
    if (wanted == 0 || wanted + count > subnet.lids().size())
        return {"--lid: " + text + " is not in 0x1.." + hex_text(subnet.lids().size() - count) +
                ", where the forwarding tables of this subnet end"};
    base = static_cast<std::uint32_t>(wanted);
    const std::uint32_t owner = owner_of_block(subnet, base, count, index);
    return owner == kNone ? Error{} : Error{"--lid: " + text + " belongs to " + port_name(subnet, owner)};
}

// Leads packets for LID `to` where those for `from` were led, and those for `from` nowhere.
void move_lid(const Segment& subnet, std::uint32_t port, std::uint32_t from, std::uint32_t to) {
    const auto lids = subnet.lids();
    for (std::size_t at = 0; at < subnet.switches().size(); ++at) {
        auto& old = subnet.forwards()[at * lids.size() + from];
        subnet.forwards()[at * lids.size() + to].store(old.load());
        old.store(0);
    }
    for (PinnedRoute& route : subnet.pinned_routes()) {
        if (route.slid == from) route.slid = static_cast<std::uint16_t>(to);
        if (route.dlid == from) route.dlid = static_cast<std::uint16_t>(to);
    }
    lids[to].down = 0;
    lids[to].port = port;
    lids[from].port = kNone;
    lids[from].down = 0;
}

// --- GIDs -----------------------------------------------------------------------------------------------------------

bool is_ipv4(const std::uint8_t* gid) {
    static constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(gid, kMapped, sizeof kMapped) == 0;
}

void next_gid(const Segment& subnet, Gid& gid) {
    std::uint8_t& varies = gid[is_ipv4(gid.data()) ? 12 : 13];
    do ++varies;
    while (find_port_by_gid(subnet, gid.data()) != kNone);
}

void set_gid(Port& port, std::uint32_t index, const Gid& gid) { std::ranges::copy(gid, port.gids[index]); }

Error replace_gid(const Segment& subnet, std::uint32_t index, const std::string& text) {
    Port& port = subnet.ports()[index];
    Gid gid{};
    if (inet_pton(AF_INET6, text.c_str(), gid.data()) != 1) return check_gid_text(text);
    const std::uint32_t owner = find_port_by_gid(subnet, gid.data());
    if (owner != kNone && owner != index) return {"--gid: " + text + " belongs to " + port_name(subnet, owner)};
    if (is_ethernet(port)) {
        set_gid(port, is_ipv4(gid.data()) ? 1 : 0, gid);
        return {};
    }
    if (std::memcmp(gid.data(), port.gids[0], 8) != 0)
        return {"--gid: " + text + " does not have the prefix of " + port_name(subnet, index)};
    set_gid(port, 0, gid);
    return {};
}

}  // namespace

Error check_lid_text(const std::string& text) {
    if (text == kNew || parse_number(text)) return {};
    return bad_value("--lid", text, "a number such as 0x10 or 16, or 'new'");
}

Error change_lid(const Segment& subnet, std::uint32_t index, const std::string& text) {
    Port& port = subnet.ports()[index];
    if (is_ethernet(port)) return {"--lid: RoCE has no LIDs"};
    {
        Guard guard(subnet.header().lock);
        std::uint32_t base = 0;
        if (Error error = choose_lid(subnet, index, text, base)) return error;
        const std::uint32_t old = port.lid;
        if (base == old) return {};
        for (std::uint32_t bits = 0; bits < lids_of(port); ++bits) move_lid(subnet, index, old + bits, base + bits);
        port.lid = base;
        port.route_lid = base;
        subnet.header().addresses.fetch_add(1);
        trace(subnet, TraceKind::lid_changed, index, base);
    }
    raise_on_port(subnet, port, IBV_EVENT_LID_CHANGE);
    return {};
}

Error check_gid_text(const std::string& text) {
    Gid gid{};
    if (text == kNew || inet_pton(AF_INET6, text.c_str(), gid.data()) == 1) return {};
    return bad_value("--gid", text, "a GID such as fe80::2:c903:0:99 or ::ffff:10.0.0.9, or 'new'");
}

Error change_gid(const Segment& subnet, std::uint32_t index, const std::string& text) {
    Port& port = subnet.ports()[index];
    {
        Guard guard(subnet.header().lock);
        if (text != kNew) {
            if (Error error = replace_gid(subnet, index, text)) return error;
        } else {
            for (std::uint32_t i = 0; i < port.gid_count; ++i) {
                Gid gid{};
                std::copy_n(port.gids[i], gid.size(), gid.begin());
                next_gid(subnet, gid);
                set_gid(port, i, gid);
            }
        }
        subnet.header().addresses.fetch_add(1);
        trace(subnet, TraceKind::gid_changed, index);
    }
    raise_on_port(subnet, port, IBV_EVENT_GID_CHANGE);
    return {};
}

}  // namespace coop::fabric
