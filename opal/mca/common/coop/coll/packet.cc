// SPDX-License-Identifier: BSD-3-Clause
#include "coop/coll/packet.h"

#include "coop/wire/check.h"

namespace coop::coll {
namespace {

std::uint16_t check_of(Packet packet) noexcept {
    packet.check = 0;
    std::uint64_t words[sizeof packet / 8], state = wire::kSeed;
    std::memcpy(words, &packet, sizeof words);
    for (const std::uint64_t word : words) state = wire::mix(state, word);
    return wire::fold(state);
}

// Bytes that follow the packet.
std::uint64_t following(const Packet& packet) noexcept {
    switch (packet.kind) {
    case Kind::kShort:
    case Kind::kData: return packet.bytes;
    case Kind::kAnnounce: return packet.parts;
    case Kind::kLanded: break;
    }
    return 0;
}

}  // namespace

void seal(Packet& packet) noexcept {
    packet.version = kPacketVersion;
    packet.check = check_of(packet);
}

const char* find_damage(const Packet& packet, std::size_t arrived_bytes) noexcept {
    if (packet.check != check_of(packet)) return "check word";
    if (packet.version != kPacketVersion) return "version";
    if (packet.kind < Kind::kShort || packet.kind > Kind::kLanded) return "kind";
    if (packet.kind == Kind::kAnnounce && packet.parts > kMaxHandleBytes) return "bytes of the handle";
    if (packet.kind == Kind::kLanded && packet.parts == 0) return "parts";
    if (arrived_bytes < sizeof packet || arrived_bytes - sizeof packet != following(packet)) return "length";
    return nullptr;
}

}  // namespace coop::coll
