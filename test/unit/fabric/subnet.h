// SPDX-License-Identifier: BSD-3-Clause
//
// A small subnet for unit tests: two hosts with one HCA of one port each, LMC 1,
// on one switch. This process plays both hosts. One subnet serves the whole
// program, because a process can join only once; each test begins with clean links.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "fabric/engine/client.h"
#include "fabric/engine/completion.h"
#include "fabric/engine/local_qp.h"
#include "fabric/engine/memory.h"

namespace coop::fabric {

const Segment& test_subnet();
Client& test_client();
void clean_links(const Segment& subnet);

struct TestCq {
    explicit TestCq(std::uint32_t depth = 64);
    ~TestCq();
    std::uint32_t index;
    // Drives the engine until there is a completion or `seconds` have passed. Returns the completion's status, or -1.
    int wait(Completion& completion, double seconds = 5);
    bool is_empty();
};

struct TestMemory {
    TestMemory(std::uint32_t hca, std::size_t bytes, std::uint32_t access = 0xf);
    ~TestMemory();
    std::vector<std::uint8_t> bytes;
    std::uint32_t index;
    std::uint32_t lkey() const;
    std::uint32_t rkey() const;
    std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(bytes.data()); }
    void fill(std::uint8_t seed);
};

// A reliable QP with its own CQ.
struct TestQp {
    explicit TestQp(std::uint32_t hca, std::uint32_t type = IBV_QPT_RC);
    ~TestQp();
    TestCq cq;
    std::uint32_t index;
    std::unique_ptr<LocalQp> qp;
    QueuePair& shared() const { return test_subnet().queue_pairs()[index]; }

    void connect(const TestQp& peer, std::uint8_t timeout = 1, std::uint8_t retries = 2, std::uint8_t rnr_retries = 1);
    void to_state(ibv_qp_state state);
    void post_receive(std::uint64_t id, const TestMemory& memory, std::uint32_t bytes);
    int post(ibv_wr_opcode opcode, std::uint64_t id, const TestMemory& from, std::uint32_t bytes,
             const TestMemory* to = nullptr, std::uint32_t flags = IBV_SEND_SIGNALED);
};

}  // namespace coop::fabric
