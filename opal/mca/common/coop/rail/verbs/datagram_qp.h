// SPDX-License-Identifier: BSD-3-Clause
//
// One UD queue pair with its buffers. Receives are posted at creation and again after each arrival. A send uses
// one of a fixed number of buffers until it completes.
//
// A failed send puts the queue pair into SQE (IBTA 10.3.1.6). It is then returned to RTS; flushed sends are
// lost, as datagrams may be. If the HCA has failed, the queue pair is in error. When all sends have come back, it is
// brought up again, at most every 50 ms: as long as the HCA does not work, it fails again. A queue pair whose sends do not
// complete is brought to the error state, and begins again in the same way.
//
// Threading: none; the owner's lock. Ownership: owns queue pair, completion queue and memory; the HCA must
// outlive it. Errors: a Trouble, or counted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "coop/path/port.h"
#include "coop/rail/verbs/address_handles.h"
#include "coop/rail/verbs/connector.h"
#include "coop/rail/verbs/hcas.h"
#include "coop/rail/verbs/objects.h"

namespace coop::rail {

class DatagramQp {
public:
    // Creates a queue pair on ports()[port] of the HCA, in RTS and with all receives posted.
    static Wanted<std::unique_ptr<DatagramQp>> make(const Hca& hca, std::size_t port, const ConnectorOptions& options,
                                                    ConnectorCounts& counts);

    std::uint32_t qpn() const noexcept { return qp_->qp_num; }
    const path::PortRecord& port() const noexcept { return port_; }  // as it was at first
    std::size_t memory_bytes() const noexcept { return bytes_; }

    // The port has this address from now on.
    void on_moved(const path::PortRecord& port) noexcept { now_ = port; }

    // Drops the datagram if no buffer or address handle is available.
    Status send(const path::PortRecord& remote, std::span<const std::byte> datagram);
    int poll(const Connector::Arrival& arrival);
    bool is_idle() const noexcept { return free_sends_.size() == options_.sends; }  // no send is under way

    // Becomes readable when a datagram arrives after arm(); -1: the device has no completion channels.
    int descriptor() const noexcept { return channel_ ? channel_->fd : -1; }
    void acknowledge() noexcept;
    void arm() noexcept;

private:
    struct FreeMemory {
        void operator()(std::byte* memory) const noexcept;
    };

    DatagramQp(const Hca& hca, std::size_t port, const ConnectorOptions& options, ConnectorCounts& counts);
    Status make_memory(const Hca& hca);
    Status make_qp(const Hca& hca);
    Status to_rts(const Hca& hca);
    int bring_up() noexcept;
    int post_receive(std::uint32_t slot) noexcept;
    void on_arrival(const ibv_wc& wc, const Connector::Arrival& arrival);
    void on_sent(const ibv_wc& wc);
    void recover();
    void begin_again() noexcept;
    void stop_if_mute() noexcept;
    std::byte* slot_address(std::uint32_t slot) const noexcept;

    path::PortRecord port_, now_;
    ConnectorOptions options_;
    ConnectorCounts& counts_;
    std::size_t bytes_ = 0;
    std::unique_ptr<std::byte, FreeMemory> memory_;  // slots: receives, then sends
    Mr mr_;
    CompChannel channel_;
    Cq cq_;
    AddressHandles handles_;
    Qp qp_;                                         // must be destroyed before the members above
    std::vector<std::uint32_t> free_sends_;         // slots
    bool in_error_ = false;                         // receives have been flushed
    std::chrono::steady_clock::time_point again_;   // not before this time
    std::chrono::steady_clock::time_point ended_;   // of the last send, or when the first one began; unless idle
    std::vector<AddressHandles::Handle*> used_by_;  // by send slot
};

}  // namespace coop::rail
