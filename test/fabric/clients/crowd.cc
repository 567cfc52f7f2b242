// SPDX-License-Identifier: BSD-3-Clause
//
// crowd: many hosts with many queue pairs, all active at once.
//
//     crowd HOSTS QPS SHOW
//
// One process per host of the subnet opens all its HCAs and makes QPS reliable queue pairs, distributed over the HCAs.
// Queue pair i of host h is connected to the host i/2+1 after or before h: near and far neighbours. When all are
// connected, the shell command SHOW runs; then every queue pair sends one message and checks the one that it receives.
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::uint32_t kMessageBytes = 64;
constexpr std::uint8_t kPort = 1;

struct Address {
    std::uint32_t number;
    std::uint16_t lid;
};

// In memory shared by all: barriers are counted by increments, addresses are ordered by host and queue pair.
struct Common {
    std::atomic<int> arrived, failed;
};
Common* common;
Address* addresses;
int hosts, qps;

#define REQUIRE(condition)                                                      \
    do                                                                          \
        if (!(condition)) {                                                     \
            std::fprintf(stderr, "crowd: line %d: %s\n", __LINE__, #condition); \
            common->failed.store(1);                                            \
            _exit(1);                                                           \
        }                                                                       \
    while (false)

// Waits until all have arrived at barrier number `stop`, counted from 1. Each barrier has `hosts + 1` arrivals.
bool wait_for_all(int stop) {
    common->arrived.fetch_add(1);
    while (common->arrived.load() < stop * (hosts + 1)) {
        if (common->failed.load() != 0) return false;
        usleep(500);
    }
    return true;
}

struct Device {
    ibv_context* context;
    ibv_pd* pd;
    ibv_cq* cq;
    ibv_mr* mr;
    std::uint16_t lid;
    std::vector<char> memory;
};

char* place(Device& device, int qp, bool received) {
    return device.memory.data() + (2 * qp + (received ? 1 : 0)) * static_cast<int>(kMessageBytes);
}

void open(Device& device, ibv_device* from) {
    device.context = ibv_open_device(from);
    REQUIRE(device.context != nullptr);
    device.pd = ibv_alloc_pd(device.context);
    device.cq = ibv_create_cq(device.context, 2 * qps, nullptr, nullptr, 0);
    device.memory.resize(2ul * static_cast<unsigned>(qps) * kMessageBytes);
    device.mr = ibv_reg_mr(device.pd, device.memory.data(), device.memory.size(), IBV_ACCESS_LOCAL_WRITE);
    REQUIRE(device.pd != nullptr && device.cq != nullptr && device.mr != nullptr);
    ibv_port_attr port{};
    REQUIRE(ibv_query_port(device.context, kPort, &port) == 0 && port.state == IBV_PORT_ACTIVE);
    device.lid = port.lid;
}

ibv_qp* make_qp(Device& device) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = device.cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {16, 16, 1, 1, 0};
    init.sq_sig_all = 1;
    ibv_qp* qp = ibv_create_qp(device.pd, &init);
    REQUIRE(qp != nullptr);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = kPort;
    REQUIRE(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    return qp;
}

void connect(ibv_qp* qp, const Address& peer) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = peer.number;
    attr.ah_attr.dlid = peer.lid;
    attr.ah_attr.port_num = kPort;
    REQUIRE(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = 7;
    REQUIRE(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

// Queue pairs 2k and 2k + 1 of a host lead k + 1 hosts forward and back: 2k of one host is connected to 2k + 1 of the
// other.
int peer_host(int host, int qp) {
    return ((qp % 2 == 0 ? host + qp / 2 + 1 : host - qp / 2 - 1) % hosts + hosts) % hosts;
}
Address& address_of(int host, int qp) { return addresses[host * qps + qp]; }

std::string text_of(int host, int qp) {
    return "from queue pair " + std::to_string(qp) + " of host " + std::to_string(host);
}

void post(Device& device, ibv_qp* qp, int i, bool receive) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(place(device, i, receive)), kMessageBytes, device.mr->lkey};
    if (receive) {
        ibv_recv_wr request{}, *bad = nullptr;
        request.sg_list = &sge;
        request.num_sge = 1;
        REQUIRE(ibv_post_recv(qp, &request, &bad) == 0);
    } else {
        ibv_send_wr request{}, *bad = nullptr;
        request.sg_list = &sge;
        request.num_sge = 1;
        request.opcode = IBV_WR_SEND;
        REQUIRE(ibv_post_send(qp, &request, &bad) == 0);
    }
}

int be_host(int host) {
    setenv("COOP_FABRIC_HOST", ("h" + std::to_string(host)).c_str(), 1);
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    REQUIRE(list != nullptr && count > 0);
    std::vector<Device> devices(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) open(devices[static_cast<std::size_t>(i)], list[i]);
    const auto device_of = [&](int qp) -> Device& { return devices[static_cast<std::size_t>(qp / 2 % count)]; };

    std::vector<ibv_qp*> mine;
    for (int i = 0; i < qps; ++i) {
        mine.push_back(make_qp(device_of(i)));
        address_of(host, i) = {mine.back()->qp_num, device_of(i).lid};
        post(device_of(i), mine.back(), i, true);
    }
    if (!wait_for_all(1)) return 1;
    for (int i = 0; i < qps; ++i) connect(mine[static_cast<std::size_t>(i)], address_of(peer_host(host, i), i ^ 1));
    if (!wait_for_all(2) || !wait_for_all(3)) return 1;

    for (int i = 0; i < qps; ++i) {
        std::strcpy(place(device_of(i), i, false), text_of(host, i).c_str());
        post(device_of(i), mine[static_cast<std::size_t>(i)], i, false);
    }
    for (int left = 2 * qps; left > 0;) {
        REQUIRE(common->failed.load() == 0);
        for (Device& device : devices) {
            ibv_wc completion;
            const int n = ibv_poll_cq(device.cq, 1, &completion);
            REQUIRE(n >= 0 && (n == 0 || completion.status == IBV_WC_SUCCESS));
            left -= n;
        }
        if (left > 0) usleep(100);
    }
    for (int i = 0; i < qps; ++i) REQUIRE(text_of(peer_host(host, i), i ^ 1) == place(device_of(i), i, true));
    if (!wait_for_all(4)) return 1;

    for (ibv_qp* qp : mine) REQUIRE(ibv_destroy_qp(qp) == 0);
    for (Device& device : devices) {
        REQUIRE(ibv_destroy_cq(device.cq) == 0 && ibv_dereg_mr(device.mr) == 0 && ibv_dealloc_pd(device.pd) == 0);
        REQUIRE(ibv_close_device(device.context) == 0);
    }
    ibv_free_device_list(list);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4 || (hosts = std::atoi(argv[1])) < 2 || (qps = std::atoi(argv[2])) < 2 || qps % 2 != 0) {
        std::fprintf(stderr, "usage: crowd HOSTS QPS-PER-HOST SHOW\n");
        return 2;
    }
    const std::size_t bytes = sizeof(Common) +
                              static_cast<std::size_t>(hosts) * static_cast<std::size_t>(qps) * sizeof(Address);
    void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return std::perror("crowd: mmap"), 1;
    common = new (shared) Common{};
    addresses = reinterpret_cast<Address*>(common + 1);
    for (int host = 0; host < hosts; ++host)
        if (fork() == 0) std::exit(be_host(host));
    bool good = wait_for_all(1) && wait_for_all(2);
    if (good) good = std::system(argv[3]) == 0;
    if (!good) common->failed.store(1);
    good = good && wait_for_all(3) && wait_for_all(4);
    for (int status; wait(&status) > 0;) good &= status == 0;
    std::printf("crowd: %d hosts, %d queue pairs: %s\n", hosts, hosts * qps,
                good ? "a message on each, checked" : "FAILED");
    return good ? 0 : 1;
}
