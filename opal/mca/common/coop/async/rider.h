// SPDX-License-Identifier: BSD-3-Clause
//
// A packet that goes behind an RDMA read by itself: the FIN of a message, posted
// with the read and fenced behind it, so that nobody has to wake up when the read
// is over (the "fenced" FIN of RDMA Read Based Rendezvous, section 4.2). A read
// that is striped has one on each rail it uses: the peer counts them.
//
// The BTL interface has no place for it: it is handed over beside the call.
//
//     Rider rider{…};
//     { const Offered offered(rider); btl_get(…); }
//     if (rider.taken) …the transport sends it; else it is ours, when the read is over
//
// Threading: of the thread that calls. Ownership: copied by the transport before
// the call returns. Errors: not taken.
#pragma once

#include <cstdint>

#include "coop/base/export.h"

namespace coop::async {

constexpr std::uint32_t kMostRiderBytes = 64;

struct Rider {
    alignas(8) unsigned char packet[kMostRiderBytes];
    std::uint32_t bytes;
    std::uint8_t tag;                                          // of the BTL
    void (*set_parts)(void* packet, std::uint32_t parts) noexcept;  // called once, before it is copied
    bool taken = false;
};

COOP_EXPORT Rider*& offered_rider() noexcept;  // of this thread; null: none

class Offered {
public:
    explicit Offered(Rider& rider) noexcept { offered_rider() = &rider; }
    ~Offered() { offered_rider() = nullptr; }
    Offered(const Offered&) = delete;
    Offered& operator=(const Offered&) = delete;
};

}  // namespace coop::async
