// SPDX-License-Identifier: BSD-3-Clause
//
// The smallest user of rail/verbs: a process that connects to others on demand
// and sends one message over every rail of each. A case is a Crowd of them; the
// program itself only gives orders, and each Node is a process on a host.
//
//     crowd: order -------------> node: opens its HCAs
//                  <------------- ports
//            ports of all ------>       asks for connections, before it looks at any datagram
//                  <------------- asked
//            go ---------------->       connects, sends, checks what it gets
//                  <------------- report
//            end of channel ---->       ends; until then it answers its peers
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coop/path/connect.h"
#include "process.h"

namespace railtest {

enum class Who : std::uint32_t { kFirst, kBoth };  // who asks: of two processes the one with the lower number, or both

struct Order {
    std::uint32_t nodes = 2, number = 0;  // how many processes, and which one this is
    std::uint32_t local_rank = 0;
    Who who = Who::kFirst;
    coop::path::Limits limits;
    bool scarce = false;        // with very few buffers and address handles for datagrams
    std::uint32_t lazy_ms = 0;  // this long after `go` the odd ones do nothing: a peer that computes
};

struct Report {
    std::uint32_t established = 0, given_up = 0;  // connections
    std::uint32_t rails = 0;                      // live, of all connections
    std::uint32_t messages = 0;                   // received and right
    std::uint32_t wrong = 0;                      // anything that should not be
    std::uint32_t queue_pairs = 0;                // made
    std::uint32_t sent = 0, repeated = 0;         // datagrams
    std::uint32_t dropped = 0;                    // datagrams that were not sent, for want of a buffer or handle
    std::uint64_t connect_us = 0;                 // from asking until all were established
    std::uint64_t heap_bytes = 0;                 // that connecting took, all connections, with queue pairs, without buffers of messages
    std::uint64_t datagram_bytes = 0;             // the connector's memory
};

void put_bytes(verbstest::Channel& channel, const std::vector<std::byte>& bytes);
std::vector<std::byte> get_bytes(verbstest::Channel& channel);

class Crowd {
public:
    // Node i is on host `host_of(i)`; orders differ in their number and local rank only.
    Crowd(Order order, const std::function<std::string(std::uint32_t)>& host_of);

    // Of node `i`, as it will be published.
    const coop::path::PortList& ports(std::uint32_t i) const { return ports_[i]; }
    // Publishes the ports, and all connect to all; fails the case unless each connection is there, with all messages.
    std::vector<Report> connect();

private:
    std::vector<std::unique_ptr<verbstest::Process>> processes_;
    std::vector<std::vector<std::byte>> packed_;  // lists of ports, as they travel
    std::vector<coop::path::PortList> ports_;
};

}  // namespace railtest
