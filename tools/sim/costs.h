// SPDX-License-Identifier: BSD-3-Clause
//
// What things cost a process and a message. The defaults are of the order of the
// dissertation's machines (8.4.1); what they were exactly it does not say.
//
// Units: nanoseconds, bytes per second.
#pragma once

namespace coop::sim {

struct Costs {
    double start_ns = 1000;       // of a message, at its sender
    double post_ns = 600;         // of a stripe with its FIN, or of a control packet
    double completion_ns = 500;   // of a completion or an arrived packet
    double poll_ns = 200;         // of a sweep over the completion queues
    double late_ns = 0;           // the progress engine looks at whole multiples of this; 0: whenever it has time
    double hop_ns = 120;          // of a switch (7.2.2)
    double wire_ns = 1500;        // from HCA to HCA without the switches
    double register_ns = 20'000;  // of the first message of a channel, at either end
    double register_page_ns = 250;  // and for each 4096 bytes of it
    double reduce_bytes_per_s = 1e9;
    double retry_ns = 20e6;       // until an HCA gives a stripe up whose way is gone
    double manager_ns = 200e6;    // until the subnet manager has made new routes
};

}  // namespace coop::sim
