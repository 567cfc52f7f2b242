// SPDX-License-Identifier: BSD-3-Clause
#include "coop/coll/packet.h"

#include <iterator>

#include "coop/wire/check.h"

namespace coop::coll {
namespace {

constexpr std::size_t kWords = sizeof(Packet) / 8;

// factor^n, so that the sum of wire::mix() over all words becomes a sum of products that the CPU computes in parallel.
constexpr std::uint64_t power(std::size_t n) noexcept { return n == 0 ? 1 : wire::kFactor * power(n - 1); }

std::uint16_t check_of(Packet packet) noexcept {
    packet.check = 0;
    std::uint64_t words[kWords];
    std::memcpy(words, &packet, sizeof words);
    constexpr std::uint64_t kPowers[] = {power(5), power(4), power(3), power(2), power(1)};
    static_assert(std::size(kPowers) == kWords);
    std::uint64_t sum = wire::kSeed * power(kWords);
    for (std::size_t i = 0; i < kWords; ++i) sum += words[i] * kPowers[i];
    return wire::fold(sum);
}

// Bytes that follow the packet.
std::uint64_t following(const Packet& packet) noexcept {
    switch (packet.kind) {
    case Kind::kShort:
    case Kind::kData: return packet.bytes;
    case Kind::kAnnounce:
    case Kind::kBuffer: return packet.parts;
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
    if (packet.kind < Kind::kShort || packet.kind > Kind::kBuffer) return "kind";
    const bool has_handle = packet.kind == Kind::kAnnounce || packet.kind == Kind::kBuffer;
    if (has_handle && packet.parts > kMaxHandleBytes) return "bytes of the handle";
    if (packet.kind == Kind::kLanded && packet.parts == 0) return "parts";
    if (arrived_bytes < sizeof packet || arrived_bytes - sizeof packet != following(packet)) return "length";
    return nullptr;
}

}  // namespace coop::coll
