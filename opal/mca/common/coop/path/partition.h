// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions of InfiniBand (IBTA 10.9). A port has a table of keys (P_Keys): 15
// bits name a partition, the upper bit says that the port is a full member of it.
// Two queue pairs hear each other if their keys are of one partition and at least
// one of the two is a full member's. Ports of RoCE have the default key alone.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "coop/base/export.h"

namespace coop::path {

constexpr std::uint16_t kFullMember = 0x8000, kPartitionBits = 0x7fff;
constexpr std::uint16_t kDefaultPkey = 0xffff;  // full member of the default partition

constexpr std::uint16_t partition_of(std::uint16_t pkey) noexcept { return pkey & kPartitionBits; }
constexpr bool is_full_member(std::uint16_t pkey) noexcept { return (pkey & kFullMember) != 0; }
constexpr bool may_talk(std::uint16_t a, std::uint16_t b) noexcept {
    return partition_of(a) != 0 && partition_of(a) == partition_of(b) && (is_full_member(a) || is_full_member(b));
}

struct PkeyChoice {
    std::uint16_t pkey, index;

    bool operator==(const PkeyChoice&) const = default;
};

// The key of a table that a queue pair shall have; keys of partition 0 are empty places. `wanted` names the partition by its lower
// 15 bits; a full member's key of it goes before a limited one's. 0: the first key of a full member, usually the default one, else
// the first key. Nothing: the table has no such key.
COOP_EXPORT std::optional<PkeyChoice> choose_pkey(std::span<const std::uint16_t> table, std::uint16_t wanted) noexcept;

COOP_EXPORT std::string pkey_text(std::uint16_t pkey);                         // "0x8001"
COOP_EXPORT std::string pkeys_text(std::span<const std::uint16_t> table);      // "0xffff, 0x8001", without the empty places

}  // namespace coop::path
