// SPDX-License-Identifier: BSD-3-Clause
//
// What a transport for copies inside a node and a transport of HCAs tell each
// other, beside the interface that Open MPI has for them: whether the HCAs' way
// to a process of this node, by loopback, can be used already, and how busy they
// are. (Cooperative Rendezvous Protocols, section III)
//
// The HCA transport sets `loopback` when it opens; whoever has the load board of
// the node sets `hca_loads`, and until then nothing is counted.
//
// Threading: `loopback` is set before the first message; its calls may come from
// any thread that may call the transport. Ownership: who sets a pointer keeps
// what it points to, and takes the pointer back first. Errors: none; a way that
// cannot be had stays kBroken.
#pragma once

#include <atomic>
#include <cstdint>

#include "coop/base/export.h"
#include "coop/rndv/hca_load.h"

namespace coop::node {

class Loopback {
public:
    enum class Way : std::uint8_t { kConnecting, kReady, kBroken };

    virtual ~Loopback() = default;
    // The module of the transport, as its upper layer knows it.
    virtual const void* transport() const noexcept = 0;
    // Of the way to an endpoint of that module; the first call begins to connect it, and waits for nothing.
    virtual Way way_to(void* endpoint) noexcept = 0;
    // The most large operations that are on one of the HCAs behind the way, of all processes of the node. It is kReady.
    virtual std::uint32_t operations(void* endpoint) noexcept = 0;
};

COOP_EXPORT extern Loopback* loopback;                       // null: no such transport
COOP_EXPORT extern std::atomic<rndv::HcaLoads*> hca_loads;   // null: nothing is counted

}  // namespace coop::node
