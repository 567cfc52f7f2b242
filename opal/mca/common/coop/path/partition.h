// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions of InfiniBand (IBTA 10.9). A port has a table of keys (P_Keys): 15 bits identify a partition, and
// the upper bit marks the port as a full member of it. Two queue pairs can communicate if their keys are of the
// same partition and at least one of them is a full member's. RoCE ports have only the default key.
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

// Chooses the key for a queue pair from a port's table; keys of partition 0 are unused entries. `wanted`
// selects the partition by its lower 15 bits; a full member's key takes precedence over a limited one's. With
// `wanted` 0: the first key of a full member, usually the default one, otherwise the first key. Returns nothing
// if the table has no such key.
COOP_EXPORT std::optional<PkeyChoice> choose_pkey(std::span<const std::uint16_t> table, std::uint16_t wanted) noexcept;

COOP_EXPORT std::string pkey_text(std::uint16_t pkey);                     // "0x8001"
COOP_EXPORT std::string pkeys_text(std::span<const std::uint16_t> table);  // "0xffff, 0x8001", without unused entries

}  // namespace coop::path
