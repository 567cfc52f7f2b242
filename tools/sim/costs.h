// SPDX-License-Identifier: BSD-3-Clause
//
// Costs of processes and messages. The defaults are of the order of magnitude of
// the dissertation's machines (8.4.1), which does not give exact values.
//
// Units: nanoseconds, bytes per second.
#pragma once

#include <cstdint>

namespace coop::sim {

struct Costs {
    double start_ns = 1000;         // per message, at its sender
    double post_ns = 600;           // per stripe with its FIN, or control packet
    double completion_ns = 500;     // per completion or arrived packet
    double poll_ns = 200;           // per sweep over the completion queues
    double late_ns = 0;             // the progress engine polls at multiples of this; 0: whenever the CPU is free
    double hop_ns = 120;            // per switch (7.2.2)
    double wire_ns = 1500;          // from HCA to HCA, without the switches
    double node_ns = 300;           // between processes of a host
    double node_bytes_per_s = 5e9;  // of the sender's CPU, which copies messages between them
    double register_ns = 20'000;    // per first message of a channel, at each end
    double register_page_ns = 250;  // plus this for each 4096 bytes of it
    double new_buffer_ns = 0;       // allgather with new buffers in each call: per registration
    double new_buffer_page_ns = 0;  // plus this for each 4096 bytes
    double copy_bytes_per_s = 1e9;  // of steps through buffers
    double reduce_bytes_per_s = 1e9;
    double retry_ns = 20e6;     // until an HCA gives up a stripe whose route is down
    double manager_ns = 200e6;  // until the subnet manager has new routes

    bool has_new_buffers() const noexcept { return new_buffer_ns > 0 || new_buffer_page_ns > 0; }
    double registration_ns(std::uint64_t bytes) const noexcept { return cost(register_ns, register_page_ns, bytes); }
    double new_buffer_registration_ns(std::uint64_t bytes) const noexcept {
        return cost(new_buffer_ns, new_buffer_page_ns, bytes);
    }
    double copy_ns(std::uint64_t bytes) const noexcept { return static_cast<double>(bytes) / copy_bytes_per_s * 1e9; }
    double node_copy_ns(std::uint64_t bytes) const noexcept {
        return static_cast<double>(bytes) / node_bytes_per_s * 1e9;
    }

private:
    static double cost(double base_ns, double page_ns, std::uint64_t bytes) noexcept {
        return base_ns + page_ns * static_cast<double>((bytes + 4095) / 4096);
    }
};

}  // namespace coop::sim
