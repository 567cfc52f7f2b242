// SPDX-License-Identifier: BSD-3-Clause
//
// A minimal user of rail/verbs: a process that connects to others on demand and
// sends one message over every rail of each. A case is a Crowd of nodes; the test
// program only gives orders, and each Node is a process on a host.
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

enum class Who : std::uint32_t {
    kFirst,
    kBoth
};  // which side asks for a connection: the process with the lower number, or both

struct Order {
    std::uint32_t nodes = 2, number = 0;  // number of processes, and the number of this one
    std::uint32_t local_rank = 0;
    Who who = Who::kFirst;
    coop::path::Limits limits;
    bool scarce = false;  // use very few buffers and address handles for datagrams
    std::uint32_t lazy_ms =
        0;  // processes with odd numbers do nothing for this time after `go`, like peers that compute
};

struct Report {
    std::uint32_t established = 0, given_up = 0;  // connections
    std::uint32_t rails = 0;                      // live rails of all connections
    std::uint32_t messages = 0;                   // received with the right contents
    std::uint32_t wrong = 0;                      // number of errors
    std::uint32_t queue_pairs = 0;                // made
    std::uint32_t sent = 0, repeated = 0;         // datagrams
    std::uint32_t dropped = 0;                    // datagrams not sent for lack of a buffer or handle
    std::uint64_t connect_us = 0;                 // from the first request until all connections were established
    std::uint64_t heap_bytes = 0;      // heap used by all connections with their queue pairs, without message buffers
    std::uint64_t datagram_bytes = 0;  // memory of the connector
};

void put_bytes(verbstest::Channel& channel, const std::vector<std::byte>& bytes);
std::vector<std::byte> get_bytes(verbstest::Channel& channel);

class Crowd {
public:
    // Node i is on host `host_of(i)`; the nodes' orders differ only in number and local rank.
    Crowd(Order order, const std::function<std::string(std::uint32_t)>& host_of);

    // The ports of node `i`, as they will be published.
    const coop::path::PortList& ports(std::uint32_t i) const { return ports_[i]; }
    // Publishes the ports and has all connect to all. Fails the case unless all connections and messages arrive.
    std::vector<Report> connect();

private:
    std::vector<std::unique_ptr<verbstest::Process>> processes_;
    std::vector<std::vector<std::byte>> packed_;  // lists of ports in wire format
    std::vector<coop::path::PortList> ports_;
};

}  // namespace railtest
