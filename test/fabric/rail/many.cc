// SPDX-License-Identifier: BSD-3-Clause
// 64 processes on 8 hosts connect all to all at once; prints how long it takes, and the memory that a peer costs.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "node.h"
#include "verbs_test.h"

using namespace railtest;
using coop::path::Connection;
using coop::path::PathChoice;
using coop::path::RailEnds;

namespace {

constexpr std::uint32_t kNodes = 64, kHosts = 8;

std::string host_of(std::uint32_t number) { return "h" + std::to_string(number * kHosts / kNodes); }

void all_to_all(Who who) {
    alarm(200);  // longer than the harness gives a case
    Crowd crowd({.nodes = kNodes, .who = who}, host_of);
    const auto reports = crowd.connect();
    std::uint64_t us = 0, heap = 0, sent = 0, repeated = 0, rails = 0;
    for (const Report& r : reports) {
        us = std::max(us, r.connect_us);
        heap += r.heap_bytes;
        sent += r.sent;
        repeated += r.repeated;
        rails += r.rails;
    }
    constexpr std::uint64_t kEnds = kNodes * (kNodes - 1);
    printf(
        "%u processes, %.1f rails each to each: connected in %.2f s; %.1f datagrams per connection, %.1f %% of them "
        "repeated; "
        "per peer %.2f KiB of heap with the queue pairs' own, of which the connection %zu bytes; per process %.0f KiB "
        "for datagrams\n",
        kNodes, static_cast<double>(rails) / kEnds, static_cast<double>(us) / 1e6,
        2.0 * static_cast<double>(sent) / kEnds, 100.0 * static_cast<double>(repeated) / static_cast<double>(sent),
        static_cast<double>(heap) / kEnds / 1024,
        sizeof(Connection) + rails / kEnds * (sizeof(PathChoice) + sizeof(RailEnds)),
        static_cast<double>(reports[0].datagram_bytes) / 1024);
}

}  // namespace

CASE(everyone_connects_to_everyone) { all_to_all(Who::kFirst); }
CASE(everyone_asks_everyone_at_once) { all_to_all(Who::kBoth); }

// With few buffers and address handles most datagrams are lost, at the sender or at the receiver.
CASE(few_buffers_and_address_handles_suffice) {
    alarm(200);
    Crowd crowd({.nodes = 16, .who = Who::kBoth, .scarce = true},
                [](std::uint32_t number) { return "h" + std::to_string(number / 2); });
    std::uint64_t dropped = 0;
    for (const Report& r : crowd.connect()) dropped += r.dropped;
    CHECK(dropped > 0);
}
