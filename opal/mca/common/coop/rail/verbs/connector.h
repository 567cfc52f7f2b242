// SPDX-License-Identifier: BSD-3-Clause
//
// Carries the datagrams of path/connect.h: on each HCA one unreliable datagram
// (UD) queue pair, on its first active port. Its number and key are put into the
// records of that port, which travel in the modex. Memory is per HCA, not per
// peer; address handles are kept for the peers used last.
//
// A datagram may be lost, here too: send() drops it when all send buffers are in
// flight. The state machine repeats it; each attempt takes another of the ways
// between the two processes, so one dead HCA does not stop them.
//
// Threading: the caller's lock; no thread of its own. Ownership: uses the HCAs,
// which must outlive it and stay where they are. Errors: status and sentence.
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
    std::uint32_t receives = 256;  // posted on each HCA
    std::uint32_t sends = 64;      // in flight on each HCA
    std::uint32_t address_handles = 128;  // kept on each HCA
    std::uint32_t qkey = 0x636f6f70;  // not privileged: the upper bit is 0
    AddressOptions address;
};

struct ConnectorCounts {
    std::uint64_t sent = 0, received = 0;
    std::uint64_t dropped_here = 0;  // no buffer was free, or no address handle could be made
    std::uint64_t failed = 0;        // sends that completed with an error
    std::uint64_t recovered = 0;     // times a queue pair was brought back after one
};

class Connector {
public:
    // Writes ud_qpn and ud_qkey into the first port of each HCA. An HCA whose
    // queue pair cannot be made is said; Trouble if none can.
    static Wanted<Connector> open(std::span<Hca> hcas, const ConnectorOptions& options, std::vector<Said>& said);

    Connector(Connector&&) noexcept;
    Connector& operator=(Connector&&) noexcept;
    ~Connector();

    // To the process that has these ports. `attempt` chooses the way. Not fatal if it fails.
    Status send(std::span<const path::PortRecord> remote, std::span<const std::byte> datagram, std::uint32_t attempt = 0);

    // Calls back with the bytes of each datagram that has arrived, valid during the
    // call, which may call send(); returns how many. path::decode() is what looks at them.
    using Arrival = std::function<void(std::span<const std::byte>)>;
    int poll(const Arrival& arrival);

    // To sleep until a datagram arrives: poll(2) on these descriptors, acknowledge() the one that is readable, arm(),
    // and poll() until it returns 0, since a datagram that came before arm() does not wake. Empty if one of the devices
    // cannot wake anybody.
    std::vector<int> descriptors() const;
    void acknowledge(int descriptor) noexcept;
    void arm() noexcept;

    const ConnectorCounts& counts() const noexcept;
    std::size_t memory_bytes() const noexcept;  // registered for datagrams, all HCAs

private:
    struct Parts;
    explicit Connector(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

}  // namespace coop::rail
