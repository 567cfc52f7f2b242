// SPDX-License-Identifier: BSD-3-Clause
//
// Extends the BTL interface of Open MPI between our components and our transports:
// one table of functions per transport, found by the address of the BTL module.
//
//     btl/coopib                       registry.h                     pml/coop
//     publish_extension(module, table) ─────────► find_extension(module)
//                                                 pml/coop calls this once per BTL module and keeps the pointer
//
// A stock BTL has no table, and a table of another version is not used (registry.h).
// In both cases the caller uses the BTL interface alone. A null function pointer means that
// the transport lacks this ability; `put`, `get`, `send_urgent`, `make_urgent`,
// `transfer_pieces`, `needs_read_behind`, `read_behind`, `send_contiguous`, `long_packet_max`, `send_long` and, if it has atomic operations, `reaches_atomics`,
// `atomics_wait` and `atomics_keep_order` are never null.
//
// To extend it, add a function at the end of the table or a field at the end of
// RdmaOptions, and increment kBtlExtensionAbi. Increment it also when the layout of
// a type that the functions pass changes (Rider, rndv::HcaLoads, async::Handler),
// because both sides are compiled with that layout.
//
// The functions take the module and the endpoint that the caller would pass to the
// BTL function of the same kind. Units: bytes. Threading: one thread calls `serve`,
// before the first message and after the last; the others have the rules of the BTL
// functions. Ownership: the transport owns the table; table and module are valid
// until the BTL is finalized. Errors: `put` and `get` return Open MPI's codes, like
// the BTL functions; the other functions explain a false result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coop/rndv/hca_load.h"
#include "coop/sched/marker.h"
#include "coop/sched/rail_set.h"

// Types of Open MPI, only declared: the core does not include its headers.
struct mca_btl_base_module_t;
struct mca_btl_base_endpoint_t;
struct mca_btl_base_descriptor_t;
struct mca_btl_base_registration_handle_t;

namespace coop {

namespace async {
class Handler;
}

constexpr std::uint32_t kMaxRiderBytes = 64;

// A packet that the HCA sends after the data of a put or a get. It is posted together
// with the operation, so that no process has to notice the end of the operation first:
//
//     put    it follows the write on the same queue pair, which keeps the order: when
//            the packet arrives, the data is in the peer's memory
//     get    it is fenced: the HCA sends it when the read has ended (the "fenced" FIN
//            of RDMA Read Based Rendezvous, section 4.2)
//
// A striped operation has one copy on each rail that it uses, and the peer counts them.
//
// The transport copies the packet and sets `taken` before the call returns. If it
// leaves `taken` false, the caller sends the packet when the operation is complete.
struct Rider {
    alignas(8) unsigned char packet[kMaxRiderBytes];
    std::uint32_t bytes;
    std::uint8_t tag;                                               // BTL tag
    void (*set_parts)(void* packet, std::uint32_t parts) noexcept;  // called once, before the packet is copied
    bool taken = false;
};

// A packet behind RDMA writes, on each rail that has carried some of them: when all copies have arrived, the data of the
// writes is in the memory of the peer. (Multi-rail dissertation, section 5.2.1)
struct RailSignal {
    alignas(8) unsigned char packet[kMaxRiderBytes];
    std::uint32_t bytes;
    std::uint8_t tag;  // BTL tag
    // Called once for each copy, before it is sent: it is copy `place` of `copies`.
    void (*set_place)(void* packet, std::uint32_t place, std::uint32_t copies) noexcept;
    // Writes to the peer after this moment are meant; 0: all. The transport sets the moment of this signal, which the
    // caller keeps for the next one to the same peer. Writes of other users of the transport may add copies.
    std::uint64_t since = 0;
    std::uint32_t copies = 0;  // the result; 0: there was no such write
};

struct RdmaOptions {
    // A marker other than kNone also permits the asynchronous handler to call `done`.
    sched::Marker marker = sched::Marker::kNone;
    Rider* rider = nullptr;  // null: none
    bool whole = false;      // one request on one rail, never stripes
    // Of a whole operation: those of a lane take the same rail, and lanes 0, 1, … take different ones as long as there
    // are rails.
    std::uint8_t lane = sched::kNoLane;
    // Post it in this call as far as the queue pairs have room, so that it makes progress while the caller computes.
    // Otherwise the transport may keep it until the rails have less to do, and know their bandwidths better.
    bool now = false;
    // One request, which the HCA of the peer executes that executes atomic operations on its memory. Precondition: it
    // reaches_atomics().
    bool beside_atomics = false;
};

// One of several transfers that the caller starts together.
struct RdmaPiece {
    std::byte* local_address;
    std::uint64_t remote_address;
    std::uint64_t bytes;  // > 0, and no more than the transport takes in one put or get
};
constexpr std::size_t kMostPieces = 32;  // of one call

// The state of a loopback connection: to a process of this node, through an HCA.
enum class LoopbackWay : std::uint8_t { kConnecting, kReady, kBroken };

// Tables of all versions begin with this.
struct BtlExtensionHead {
    std::uint32_t abi;
    std::uint32_t bytes;  // size of the table
};

constexpr std::uint32_t kBtlExtensionAbi = 10;

struct BtlExtension {
    using Btl = mca_btl_base_module_t;
    using Endpoint = mca_btl_base_endpoint_t;
    using Handle = mca_btl_base_registration_handle_t;
    using RdmaDone = void (*)(Btl*, Endpoint*, void* local_address, Handle* local, void* context, void* data,
                              int status);
    using Rdma = int (*)(Btl*, Endpoint*, void* local_address, std::uint64_t remote_address, Handle* local,
                         Handle* remote, std::size_t bytes, const RdmaOptions& options, RdmaDone done, void* data);

    BtlExtensionHead head{kBtlExtensionAbi, sizeof(BtlExtension)};

    // Like btl_put and btl_get. `data` is passed to `done`, whose argument `context`, which only the BML uses, is null.
    Rdma put = nullptr;
    Rdma get = nullptr;

    // Urgent messages interrupt the receiver if it has requested interrupts. `send_urgent` copies the packet before it
    // returns; it returns false if it cannot send now, and the caller has to use a descriptor. `make_urgent` marks a
    // descriptor that the caller is about to send.
    bool (*send_urgent)(Btl*, Endpoint*, const void* packet, std::size_t bytes, std::uint8_t tag) = nullptr;
    void (*make_urgent)(Btl*, mca_btl_base_descriptor_t*) = nullptr;

    // The longest packet of a message whose sender waits for it; at most btl_eager_limit. A longer message arrives sooner
    // after a handshake, because it can use all rails.
    std::size_t (*awaited_packet_max)(const Btl*) = nullptr;

    // Copies inside a node by HCAs (Cooperative Rendezvous Protocols, section III); a table has both functions or
    // neither. The first call of `loopback_way` starts connecting and does not wait; a broken connection stays broken.
    LoopbackWay (*loopback_way)(Btl*, Endpoint*) = nullptr;
    // Returns the number of large operations that all processes of the node together have in flight on the busiest HCA
    // of the connection. Precondition: loopback_way() has returned kReady.
    std::uint32_t (*hca_operations)(Btl*, Endpoint*) = nullptr;
    // Sets the load board on which the transport counts its large operations; null: it stops counting. The caller keeps
    // the board mapped until it has passed null.
    void (*share_hca_loads)(Btl*, rndv::HcaLoads* loads) = nullptr;

    // Attaches the transport to the asynchronous handler (async/handler.h): the transport registers as a source of
    // interrupts, takes turns with the handler and reports to it. Null detaches it. Returns false if the transport
    // cannot interrupt.
    bool (*serve)(Btl*, async::Handler* handler) = nullptr;

    // Whether the last byte of an RDMA write of the peer becomes visible here after all its other bytes, on every rail of
    // the connection: then this process may poll that byte (with an acquire load). The answer is about one write, not
    // about several, and about writes into this process only; the peer answers for the other direction. False while not
    // connected, and if the driver does not know. It asks the driver: keep the answer.
    bool (*lands_in_order)(Btl*, Endpoint*) = nullptr;

    // Puts, or gets, of 1..kMostPieces pieces between one local and one remote region, in no order. The transport posts
    // them in few lists, and `done` is called once, when all have ended; its local address is that of the first piece. The
    // pieces stay until then. No piece is striped, so this is for short ones.
    int (*transfer_pieces)(Btl*, Endpoint*, bool puts, const RdmaPiece* pieces, std::size_t count, Handle* local,
                           Handle* remote, RdmaDone done, void* data) = nullptr;
    // Sends copies of a packet behind the writes to the peer that have begun so far. Returns false, and sends nothing, if it
    // cannot do so now; then the caller waits for the completion of its writes instead.
    bool (*signal)(Btl*, Endpoint*, RailSignal&) = nullptr;
    // Whether a rail leads to the HCA of the peer that executes atomic operations on its memory. Without one, an atomic
    // operation ends the job. While not connected: whether there is such a path, which may still fail to open.
    bool (*reaches_atomics)(Btl*, Endpoint*) = nullptr;
    // Whether some atomic operation that has begun may not have been posted. It is posted only while the caller lets the
    // transport progress.
    bool (*atomics_wait)(Btl*, Endpoint*) = nullptr;
    // Whether the HCA of the peer executes atomic operations, and puts and gets beside_atomics, in the order in which one
    // thread starts them, so that the next one need not wait for the end of the last. False while not connected.
    bool (*atomics_keep_order)(Btl*, Endpoint*) = nullptr;

    // Whether read_behind() would start a read now. If the peer has one HCA, it never does.
    bool (*needs_read_behind)(Btl*, Endpoint*, std::uint64_t since) = nullptr;
    // Starts reads of the byte at `remote_address` behind the writes to the peer that have begun since the moment `since`
    // (0: all), one on each rail that has carried some. When they have ended, `done` is called once, and what the writes
    // have written is visible to everybody. The reads go to kMaxRails bytes from `local_address` on. Sets `since` to this
    // moment. Returns false, and starts nothing, if no read is needed: there were no such writes, or the peer has one HCA.
    bool (*read_behind)(Btl*, Endpoint*, void* local_address, std::uint64_t remote_address, Handle* local,
                        Handle* remote, std::uint64_t& since, RdmaDone done, void* data) = nullptr;

    // Like btl_sendi for a payload that lies in order and without gaps in host memory. Returns false if it cannot send now.
    bool (*send_contiguous)(Btl*, Endpoint*, const void* header, std::size_t header_bytes, const void* payload,
                            std::size_t payload_bytes, std::uint8_t tag) = nullptr;

    // Packets above btl_eager_limit, which the transport copies before the call returns. `long_packet_max` returns the
    // length of the longest one; 0: there are none. `send_long` is like send_contiguous, and returns false, too, if the
    // peer takes no such packets.
    std::size_t (*long_packet_max)(const Btl*) = nullptr;
    bool (*send_long)(Btl*, Endpoint*, const void* header, std::size_t header_bytes, const void* payload,
                      std::size_t payload_bytes, std::uint8_t tag) = nullptr;
};

}  // namespace coop
