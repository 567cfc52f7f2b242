// SPDX-License-Identifier: BSD-3-Clause
//
// What our components and our transports tell each other beyond the BTL interface
// of Open MPI: one table of functions per transport, found by the address of the
// BTL module.
//
//     btl/coopib                       registry.h                     pml/coop
//     publish_extension(module, table) ─────────► find_extension(module)
//                                                 once per BTL module; it keeps the pointer
//
// A stock BTL has no table, and neither has one of another version (registry.h):
// then the caller uses the BTL interface alone. A null function pointer means that
// the transport lacks this ability; `put`, `get`, `send_urgent` and `make_urgent`
// are never null.
//
// Adding to it: a function at the end of the table, or a field at the end of
// RdmaOptions, and a higher kBtlExtensionAbi. The number also changes with the
// layout of any type that the functions pass (Rider, rndv::HcaLoads,
// async::Handler), because both sides compile it.
//
// The functions take the module and the endpoint that the caller would pass to the
// BTL function of the same kind. Units: bytes. Threading: `serve` by
// one thread, before the first message and after the last; the others as the BTL
// functions. Ownership: the transport's; a table and its
// module are valid until the BTL is finalized. Errors: `put` and `get` return what
// the BTL functions return, codes of Open MPI; a false result is explained at the
// function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coop/rndv/hca_load.h"
#include "coop/sched/marker.h"

// Open MPI's, by name only: the core does not see its headers.
struct mca_btl_base_module_t;
struct mca_btl_base_endpoint_t;
struct mca_btl_base_descriptor_t;
struct mca_btl_base_registration_handle_t;

namespace coop {

namespace async {
class Handler;
}

constexpr std::uint32_t kMaxRiderBytes = 64;

// A packet that follows an RDMA read without further help: the FIN of a message,
// posted with the read and fenced, so that no process has to notice the end of the
// read (the "fenced" FIN of RDMA Read Based Rendezvous, section 4.2). A striped
// read has one copy on each rail that it uses, and the peer counts them.
//
// The transport copies the packet before the call returns, or leaves `taken` false:
// then the caller sends it when the read is complete.
struct Rider {
    alignas(8) unsigned char packet[kMaxRiderBytes];
    std::uint32_t bytes;
    std::uint8_t tag;                                               // of the BTL
    void (*set_parts)(void* packet, std::uint32_t parts) noexcept;  // called once, before the packet is copied
    bool taken = false;
};

struct RdmaOptions {
    // Anything but kNone also says that the asynchronous handler may call `done`.
    sched::Marker marker = sched::Marker::kNone;
    Rider* rider = nullptr;  // of a get; null: none
};

// The state of the way to a process of this node that leads through an HCA.
enum class LoopbackWay : std::uint8_t { kConnecting, kReady, kBroken };

// How any version of a table begins.
struct BtlExtensionHead {
    std::uint32_t abi;
    std::uint32_t bytes;  // of the table
};

constexpr std::uint32_t kBtlExtensionAbi = 1;

struct BtlExtension {
    using Btl = mca_btl_base_module_t;
    using Endpoint = mca_btl_base_endpoint_t;
    using Handle = mca_btl_base_registration_handle_t;
    using RdmaDone = void (*)(Btl*, Endpoint*, void* local_address, Handle* local, void* context, void* data,
                              int status);
    using Rdma = int (*)(Btl*, Endpoint*, void* local_address, std::uint64_t remote_address, Handle* local,
                         Handle* remote, std::size_t bytes, const RdmaOptions& options, RdmaDone done, void* data);

    BtlExtensionHead head{kBtlExtensionAbi, sizeof(BtlExtension)};

    // As btl_put and btl_get. `done` gets `data`, and null as its `context`, which is that of the BML.
    Rdma put = nullptr;
    Rdma get = nullptr;

    // Messages that interrupt a receiver which has asked for that. `send_urgent` copies a packet before it returns;
    // false: there is no way to do so now, a descriptor has to be used. `make_urgent` marks a descriptor that the
    // caller is about to send.
    bool (*send_urgent)(Btl*, Endpoint*, const void* packet, std::size_t bytes, std::uint8_t tag) = nullptr;
    void (*make_urgent)(Btl*, mca_btl_base_descriptor_t*) = nullptr;

    // Copies inside a node by HCAs (Cooperative Rendezvous Protocols, section III): both are there, or neither. The
    // first call of `loopback_way` begins to connect and waits for nothing; a broken way stays broken.
    LoopbackWay (*loopback_way)(Btl*, Endpoint*) = nullptr;
    // Of the HCAs of a way that is kReady, the largest number of large operations on one of them, of all processes of
    // the node.
    std::uint32_t (*hca_operations)(Btl*, Endpoint*) = nullptr;
    // The board on which the transport counts its large operations from now on; null: it does not count. The caller
    // keeps it mapped until it has passed null.
    void (*share_hca_loads)(Btl*, rndv::HcaLoads* loads) = nullptr;

    // The asynchronous handler that the transport serves from now on (async/handler.h): it registers as a source of
    // interrupts, takes turns with that handler and reports to it; null: none. False: it cannot interrupt.
    bool (*serve)(Btl*, async::Handler* handler) = nullptr;
};

}  // namespace coop
