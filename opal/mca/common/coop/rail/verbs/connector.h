// SPDX-License-Identifier: BSD-3-Clause
//
// Carries the datagrams of path/datagram.h: one unreliable datagram (UD) queue pair on each active port. Its number and
// key are stored in the record of that port, which travels in the modex. Memory is per port, not per peer; address
// handles are kept for the most recent peers.
//
// Datagrams may be lost, also locally: send() drops a datagram if all send buffers are in flight. The state
// machine repeats it. Each attempt takes another way between the two processes, so one dead HCA or port
// does not prevent a connection.
//
// Threading: the caller's lock; no thread of its own. Ownership: uses the HCAs, which must outlive it and not
// move. Errors: a Status with an error message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "coop/path/port.h"
#include "coop/rail/verbs/address.h"
#include "coop/rail/verbs/hcas.h"
#include "coop/rail/verbs/objects.h"

namespace coop::rail {

struct ConnectorOptions {
    std::uint32_t receives = 256;         // posted on each port
    std::uint32_t sends = 64;             // in flight on each port
    std::uint32_t address_handles = 128;  // kept on each port
    std::uint32_t qkey = 0x636f6f70;      // not privileged: the upper bit is 0
    bool every_port = true;               // false: the first one of each HCA
    AddressOptions address;
};

struct ConnectorCounts {
    std::uint64_t sent = 0, received = 0;
    std::uint64_t dropped_here = 0;  // no buffer was free, or no address handle could be made
    std::uint64_t failed = 0;        // sends that completed with an error
    std::uint64_t recovered = 0;     // times a queue pair was recovered after such an error
};

// Selects the ports of a datagram: another pair for each attempt, first those that are not to be avoided.
struct Way {
    std::uint32_t attempt = 0;
    path::PortSet avoid_local = 0, avoid_remote = 0;
};

class Connector {
public:
    // Writes ud_qpn and ud_qkey into the record of each port. Reports a port whose queue pair cannot be created in
    // `diagnostics`; returns Trouble if none can.
    static Wanted<Connector> open(std::span<Hca> hcas, const ConnectorOptions& options,
                                  std::vector<Diagnostic>& diagnostics);

    Connector(Connector&&) noexcept;
    Connector& operator=(Connector&&) noexcept;
    ~Connector();

    // Sends to the process that has these ports. `now`: the same ports with their present addresses, if these differ.
    // A failure is not fatal.
    Status send(std::span<const path::PortRecord> remote, std::span<const std::byte> datagram, const Way& way = {},
                std::span<const path::PortRecord> now = {});
    // A port of this process has another address.
    void on_moved(const path::PortRecord& port) noexcept;

    // Calls back for each datagram that has arrived; returns their number. The bytes are valid during the
    // callback, which may call send(), and must be validated with path::decode().
    using Arrival = std::function<void(std::span<const std::byte>)>;
    int poll(const Arrival& arrival);
    // Whether every datagram has left this process. poll() notices that.
    bool has_sent() const noexcept;

    // To sleep until a datagram arrives: call poll(2) on these descriptors, acknowledge() the readable one,
    // arm(), then poll() until it returns 0, because a datagram that arrived before arm() does not wake. Empty
    // if one of the devices has no completion channels.
    std::vector<int> descriptors() const;
    void acknowledge(int descriptor) noexcept;
    void arm() noexcept;

    const ConnectorCounts& counts() const noexcept;
    std::size_t memory_bytes() const noexcept;  // registered for datagrams on all HCAs

private:
    struct Parts;
    explicit Connector(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

}  // namespace coop::rail
