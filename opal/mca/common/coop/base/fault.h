// SPDX-License-Identifier: BSD-3-Clause
//
// Fault knobs: make a chosen call of a chosen site fail, so that tests reach
// every error path in a real job. The developer parameter pml_coop_fault holds
// the specification:
//
//     spec  = rule { "," rule }
//     rule  = name ":" n             every n-th call of the site fails, from the n-th on
//           | name "@" k             only the k-th call fails
//           | corrupt "=" byte       corrupt: one of the two rules above, for a corrupt_* site
//           | corrupt "=" byte "." bit
//
// Calls are counted from 1, per site. Example: "busy:7,get@1,corrupt_rts@3=17".
// `busy:1` fails every call, so the job makes no progress.
//
// A corrupted header has one bit flipped. With "=byte" the bit is in that byte (or
// in the last byte of a shorter header): the first injection flips bit 0, the next
// one bit 1 …, or each of them the given bit. Without it, the injections walk over
// the header: the i-th, from 0, is in byte i mod size. Each further round takes
// the next bit, so 8 x size injections visit every bit once.
//
// Threading: hit() and corrupt() may be called by several threads at a time;
// the counts are relaxed atomics. With nothing armed they cost a load and a
// branch. Ownership: none. Errors: a bad specification is returned as text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "coop/base/export.h"
#include "coop/base/tally.h"

namespace coop {

enum class Fault : std::uint8_t {
    kBusy,          // a BTL send reports OUT_OF_RESOURCE
    kAlloc,         // the BTL cannot allocate a descriptor
    kSendi,         // the immediate send is refused
    kRegister,      // memory cannot be registered
    kNoId,          // no memory for the id of another send
    kGet,           // get is not available
    kGetBusy,       // get reports OUT_OF_RESOURCE
    kPut,           // put is not available
    kPutBusy,       // put reports OUT_OF_RESOURCE
    kHcaGet,        // a copy within the node by an HCA cannot be started
    kHcaBusy,       // … reports OUT_OF_RESOURCE
    kHcaLost,       // … fails after it was started
    kHcaKey,        // memory for an HCA to read cannot be registered
    kPages,         // there is no memory for more of a ring of the lane
    kOffer,         // the kernel does not copy a message that is offered in the lane
    kSlow,          // a trial of a collective call counts as an hour longer
    kCorruptMatch,  // a bit of an eager (match) header flips in transit
    kCorruptRts,    // … of a request to send
    kCorruptCts,    // … of a clear to send
    kCorruptFrag,   // … of a fragment
    kCorruptFin,    // … of a FIN
    kCount
};

inline constexpr std::size_t kFaultCount = static_cast<std::size_t>(Fault::kCount);

inline constexpr std::array<const char*, kFaultCount> kFaultLabels = {
    "busy",  "alloc",    "sendi",         "register",    "no_id",       "get",          "get_busy",
    "put",   "put_busy", "hca_get",       "hca_busy",    "hca_lost",    "hca_key",      "pages",
    "offer", "slow",     "corrupt_match", "corrupt_rts", "corrupt_cts", "corrupt_frag", "corrupt_fin",
};
static_assert(kFaultLabels.back() != nullptr, "every fault has a label");

constexpr bool is_corruption(Fault fault) noexcept { return fault >= Fault::kCorruptMatch; }

class Faults {
public:
    Faults() = default;  // nothing armed

    // Returns the faults that `spec` requests, or an error message that quotes the offending word.
    COOP_EXPORT static std::variant<Faults, std::string> parse(std::string_view spec);

    bool armed() const noexcept { return armed_; }
    // Whether calls of the site may fail.
    bool has_rule(Fault fault) const noexcept { return site(fault).every > 0 || site(fault).only > 0; }

    // Counts a call of the site; returns true if this call must fail.
    bool hit(Fault fault) noexcept { return armed_ && count_call(fault); }

    // Counts a call of the site; if this call must fail, flips one bit of the header and returns true.
    bool corrupt(Fault fault, void* header, std::size_t header_bytes) noexcept {
        return armed_ && count_call(fault) && flip_bit(fault, header, header_bytes);
    }

    // Returns how many calls of the site were made to fail.
    COOP_EXPORT std::uint64_t injected(Fault fault) const noexcept;

private:
    struct Site {
        std::uint64_t every = 0;  // 0: no rule of this kind
        std::uint64_t only = 0;   // 0: no rule of this kind
        std::int64_t byte = -1;   // -1: injections walk over the header
        int bit = -1;             // of that byte; -1: injections go round its bits
        Tally calls;              // counted while the site has a rule
        Tally injected;
        Tally flips;
    };

    Site& site(Fault fault) noexcept { return sites_[static_cast<std::size_t>(fault)]; }
    const Site& site(Fault fault) const noexcept { return sites_[static_cast<std::size_t>(fault)]; }

    std::string add_rule(std::string_view rule);  // returns an error message, or ""
    COOP_EXPORT bool count_call(Fault fault) noexcept;
    COOP_EXPORT bool flip_bit(Fault fault, void* header, std::size_t header_bytes) noexcept;

    bool armed_ = false;
    std::array<Site, kFaultCount> sites_{};
};

}  // namespace coop
