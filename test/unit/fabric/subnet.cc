// SPDX-License-Identifier: BSD-3-Clause
#include "test/unit/fabric/subnet.h"

#include "fabric/shm/receive_ring.h"

#include <cstdlib>
#include <cstring>

#include "fabric/shm/process.h"
#include "fabric/topo/generate.h"
#include "fabric/topo/install.h"

namespace coop::fabric {
namespace {

struct Owner {
    Segment segment;
    std::string name = "unit-" + std::to_string(getpid());
    Owner() {
        Sizes sizes;
        sizes.lmc = 1;
        Topology topology;
        const Flaw flaw = generate(sizes, topology);
        EXPECT_FALSE(flaw) << flaw.text;
        const Error error = install(topology, {}, name, false, segment);
        EXPECT_FALSE(error) << error.text;
        setenv("COOP_FABRIC", name.c_str(), 1);
        unsetenv("COOP_FABRIC_HOST");
    }
    ~Owner() { Segment::remove(name); }
};

ibv_qp_attr at_state(ibv_qp_state state) {
    ibv_qp_attr attribute{};
    attribute.qp_state = state;
    return attribute;
}

}  // namespace

// Always through the client's mapping, because ThreadSanitizer identifies memory by its address.
const Segment& test_subnet() { return test_client().subnet(); }

Client& test_client() {
    static Owner owner;
    return *Client::get();
}

void clean_links(const Segment& subnet) {
    const auto mend = [](auto& element) { element.down = 0, element.outage.cut_ns = 0, element.outage.back_ns = 0; };
    for (Link& link : subnet.links()) {
        mend(link);
        link.rate = link.background = 0;
        link.latency_ns = 0;
        link.loss = 0;
        link.busy_until_ns = 0;
    }
    for (Lid& lid : subnet.lids()) mend(lid);
    for (Port& port : subnet.ports()) mend(port);
    for (Hca& hca : subnet.hcas()) mend(hca);
    subnet.header().last_change_ns = 0;
}

TestCq::TestCq(std::uint32_t depth) {
    const Segment& subnet = test_client().subnet();
    index = subnet.claim<CompletionQueue>(kCompletionQueues);
    CompletionQueue& cq = subnet.completion_queues()[index];
    cq.process = test_client().process();
    cq.context = 0;
    cq.notify_fd = -1;
    cq.lock.create();
    cq.capacity = 64;
    cq.depth = depth;
    cq.ring = subnet.allocate(cq.capacity * sizeof(Completion));
    cq.put = cq.taken = cq.last_solicited = cq.notified = cq.armed = cq.overflowed = 0;
}

TestCq::~TestCq() {
    const Segment& subnet = test_subnet();
    CompletionQueue& cq = subnet.completion_queues()[index];
    subnet.free(cq.ring, cq.capacity * sizeof(Completion));
    subnet.release(cq);
}

int TestCq::wait(Completion& completion, double seconds) {
    const std::int64_t end = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
    while (now_ns() < end) {
        test_client().progress();
        if (take_completion(test_subnet(), index, completion)) return static_cast<int>(completion.status);
    }
    return -1;
}

bool TestCq::is_empty() {
    test_client().progress();
    const CompletionQueue& cq = test_subnet().completion_queues()[index];
    return cq.put == cq.taken;
}

TestMemory::TestMemory(std::uint32_t hca, std::size_t size, std::uint32_t access) : bytes(size) {
    const Segment& subnet = test_client().subnet();
    index = subnet.claim<MemoryRegion>(kMemoryRegions);
    MemoryRegion& region = subnet.memory_regions()[index];
    region.process = test_client().process();
    region.pd = 1;
    region.hca = hca;
    region.access = access;
    region.tag += 2;
    region.address = region.iova = address();
    region.bytes = size;
    region.stale = 0;
}

TestMemory::~TestMemory() { test_subnet().release(test_subnet().memory_regions()[index]); }
std::uint32_t TestMemory::lkey() const { return lkey_of(index, test_subnet().memory_regions()[index]); }
std::uint32_t TestMemory::rkey() const { return rkey_of(index, test_subnet().memory_regions()[index]); }
void TestMemory::fill(std::uint8_t seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(seed + i * 7 + i / 251);
}

TestQp::TestQp(std::uint32_t hca, std::uint32_t type) {
    Client& client = test_client();
    const Segment& subnet = client.subnet();
    index = subnet.claim<QueuePair>(kQueuePairs);
    QueuePair& q = shared();
    q.lock.create();
    q.type = type;
    q.process = client.process();
    q.context = 0;
    q.hca = hca;
    q.pd = 1;
    q.send_cq = q.receive_cq = cq.index;
    q.srq = kNone;
    q.mute = Mute::no;
    q.duplicates = 0;
    q.receives.capacity = q.receives.depth = 16;
    q.receives.max_sges = 1;
    q.receives.ring = subnet.allocate(ring_bytes(q.receives));
    q.receives.put = q.receives.taken = 0;
    q.number = make_qp_number(index, q.used);
    q.state = IBV_QPS_RESET;
    qp = std::make_unique<LocalQp>(client, index, SendCapacity{16, kMaxSges, 64, false});
}

TestQp::~TestQp() {
    qp.reset();
    const Segment& subnet = test_subnet();
    Guard guard(shared().lock);
    free_ring(subnet, shared().receives);
    subnet.release(shared());
}

void TestQp::connect(const TestQp& peer, std::uint8_t timeout, std::uint8_t retries, std::uint8_t rnr_retries) {
    const auto port_of = [](const TestQp& q) { return test_subnet().hcas()[q.shared().hca].first_port; };
    ibv_qp_attr a = at_state(IBV_QPS_INIT);
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    qp->modify(a, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX);
    a.qp_state = IBV_QPS_RTR;
    a.ah_attr.port_num = 1;
    a.ah_attr.dlid = static_cast<std::uint16_t>(test_subnet().ports()[port_of(peer)].lid);
    a.dest_qp_num = peer.shared().number;
    a.rq_psn = 100;
    a.path_mtu = IBV_MTU_1024;
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 1;
    qp->modify(a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a.qp_state = IBV_QPS_RTS;
    a.sq_psn = 100;
    a.timeout = timeout;
    a.retry_cnt = retries;
    a.rnr_retry = rnr_retries;
    a.max_rd_atomic = 4;
    qp->modify(a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_MAX_QP_RD_ATOMIC);
}

void TestQp::to_state(ibv_qp_state state) { qp->modify(at_state(state), IBV_QP_STATE); }

void TestQp::post_receive(std::uint64_t id, const TestMemory& memory, std::uint32_t size) {
    ReceiveRing& ring = shared().receives;
    ReceiveRequest& request = receive_at(test_subnet(), ring, ring.put);
    request.wr_id = id;
    request.sges = 1;
    request.sge[0] = {memory.address(), size, memory.lkey()};
    ring.put.fetch_add(1);
}

int TestQp::post(ibv_wr_opcode opcode, std::uint64_t id, const TestMemory& from, std::uint32_t size,
                 const TestMemory* to, std::uint32_t flags) {
    qp->begin();
    SendWork* work = qp->slot();
    int result = ENOMEM;
    if (work != nullptr) {
        work->wr_id = id;
        work->opcode = opcode;
        work->flags = flags;
        work->imm = 0;
        work->rkey = to == nullptr ? 0 : to->rkey();
        work->remote_address = to == nullptr ? 0 : to->address();
        work->sges = 1;
        work->sge[0] = {from.address(), size, from.lkey()};
        result = qp->add(*work);
    }
    qp->end();
    return result;
}

}  // namespace coop::fabric
