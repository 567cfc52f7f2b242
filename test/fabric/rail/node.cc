// SPDX-License-Identifier: BSD-3-Clause
// A node does with path/ and rail/verbs what a transport does, and nothing more.
#include "node.h"

#include <malloc.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "coop/path/pairing.h"
#include "coop/rail/verbs/connector.h"
#include "coop/rail/verbs/hcas.h"
#include "coop/rail/verbs/rc.h"
#include "pattern.h"
#include "verbs_test.h"

namespace railtest {
namespace {

using namespace coop;
using path::Do;

constexpr std::size_t kMessageBytes = 1000;
constexpr std::size_t kSlotBytes = 1024;
constexpr std::uint64_t kNoNumber = UINT64_MAX;  // no node has this number

std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
}

template <class T>
T must(rail::Wanted<T> wanted) {
    if (!wanted) verbstest::fail(__FILE__, __LINE__, wanted.trouble().sentence);
    return std::move(*wanted);
}

std::uint64_t key_of(std::uint32_t from, std::uint32_t to, std::size_t rail) {
    return 1 + from * 1'000'000ull + to * 1000 + rail;
}

// Registered memory on one HCA, for one message to and one from each rail.
struct Messages {
    std::vector<unsigned char> bytes;
    rail::Mr mr;
    unsigned char* slot(std::size_t i) { return bytes.data() + i * kSlotBytes; }
    ibv_sge sge(std::size_t i) { return {reinterpret_cast<std::uintptr_t>(slot(i)), kMessageBytes, mr->lkey}; }
};

struct Peer {
    std::uint32_t number;
    path::PortList ports;
    path::Connection connection;
    std::vector<rail::RcQp> qps;
    std::vector<bool> heard;  // by rail: its message has arrived
};

class Node {
public:
    explicit Node(const Order& order) : order_(order) {
        std::vector<rail::Diagnostic> said;
        hcas_ = rail::open_hcas({}, said);
        for (const auto& [about, sentence] : said) fprintf(stderr, "node %u: %s\n", order.number, sentence.c_str());
        rail::ConnectorOptions options;
        if (order.scarce) options.receives = 4, options.sends = 2, options.address_handles = 2;
        connector_ = std::make_unique<rail::Connector>(must(rail::Connector::open(hcas_, options, said)));
        ports_ = {order.limits, path::by_preference(rail::ports_of(hcas_), {{}, order.local_rank})};
    }

    const path::PortList& ports() const { return ports_; }
    Report& report() { return report_; }

    void meet(const std::vector<path::PortList>& lists) {
        words_.assign(1 + lists.size() * path::kMaxConnectionRails, kNoNumber);
        words_[0] = order_.number;
        heap_before_ = mallinfo2().uordblks;
        std::mt19937 random(std::random_device{}());
        for (std::uint32_t i = 0; i < lists.size(); ++i) {
            if (i == order_.number) continue;
            path::Connection connection(order_.number, i, static_cast<std::uint32_t>(random()) | 1,
                                        path::choose_paths(ports_, lists[i]), {},
                                        reinterpret_cast<std::uint64_t>(&words_[0]));
            most_rails_ += connection.rails();
            peers_.emplace(i, Peer{i, lists[i], std::move(connection), {}, {}});
        }
        const std::size_t heap = mallinfo2().uordblks;
        make_queues();
        heap_before_ += mallinfo2().uordblks - heap;
    }

    void ask() {
        for (auto& [number, peer] : peers_)
            if (order_.who == Who::kBoth || order_.number < number) carry_out(peer, peer.connection.on_want(now_ns()));
    }

    void progress() {
        connector_->poll([this](std::span<const std::byte> bytes) { on_datagram(bytes); });
        for (auto& [number, peer] : peers_)
            if (const auto tick = peer.connection.next_tick(); tick && *tick <= now_ns())
                carry_out(peer, peer.connection.on_tick(now_ns()));
        for (std::size_t h = 0; h < hcas_.size(); ++h) poll_messages(h);
    }

    bool connected() const { return report_.established + report_.given_up == peers_.size(); }
    bool done() const { return connected() && report_.messages + report_.wrong >= report_.rails && sent_ == 0; }

    void finish_report() {
        report_.heap_bytes = mallinfo2().uordblks - heap_before_;
        report_.datagram_bytes = connector_->memory_bytes();
        report_.dropped = static_cast<std::uint32_t>(connector_->counts().dropped_here);
        for (const auto& [number, peer] : peers_) {
            report_.sent += peer.connection.counts().sent;
            report_.repeated += peer.connection.counts().repeated;
        }
    }

private:
    rail::Hca& hca_of(const Peer& peer, std::size_t rail) {
        return hcas_[ports_.ports[peer.connection.path(rail).local_port].hca];
    }
    std::size_t hca_number(const Peer& peer, std::size_t rail) const {
        return ports_.ports[peer.connection.path(rail).local_port].hca;
    }

    // Message slots: first those to send on all rails, then the same number to receive.
    void make_queues() {
        messages_.resize(hcas_.size());
        for (std::size_t h = 0; h < hcas_.size(); ++h) {
            const rail::Hca& hca = hcas_[h];
            messages_[h].bytes.resize(2 * most_rails_ * kSlotBytes);
            words_mr_.push_back(must(rail::register_memory(hca.pd(), words_.data(), words_.size() * sizeof words_[0],
                                                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)));
            messages_[h].mr = must(rail::register_memory(hca.pd(), messages_[h].bytes.data(), messages_[h].bytes.size(),
                                                         IBV_ACCESS_LOCAL_WRITE));
            cqs_.push_back(must(rail::make_cq(hca.context(), static_cast<int>(2 * most_rails_ + 1))));
            srqs_.emplace_back();
            if (!hca.caps().has_srq()) continue;
            const auto receives = std::min<std::size_t>(most_rails_, hca.caps().max_srq_wr);
            srqs_[h] = must(rail::make_srq(hca.pd(), static_cast<std::uint32_t>(receives), 1));
            for (std::size_t i = 0; i < receives; ++i) post_receive(h, nullptr, most_rails_ + i);
        }
    }

    void post_receive(std::size_t h, ibv_qp* qp, std::size_t slot) {
        ibv_sge sge = messages_[h].sge(slot);
        ibv_recv_wr wr{}, *bad = nullptr;
        wr.wr_id = slot;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        CHECK_OK(qp == nullptr ? ibv_post_srq_recv(srqs_[h], &wr, &bad) : ibv_post_recv(qp, &wr, &bad));
    }

    void on_datagram(std::span<const std::byte> bytes) {
        const auto decoded = path::decode(bytes);
        const auto* datagram = std::get_if<path::Datagram>(&decoded);
        const auto found = datagram ? peers_.find(static_cast<std::uint32_t>(datagram->sender)) : peers_.end();
        if (found == peers_.end()) return wrong("a datagram of nobody");
        carry_out(found->second, found->second.connection.on_datagram(*datagram, now_ns()));
    }

    void carry_out(Peer& peer, const path::Actions& actions) {
        for (const path::Action& action : actions) switch (action.what) {
            case Do::kMakeQueuePairs: make_queue_pairs(peer); break;
            case Do::kConnectQueuePairs: connect_queue_pairs(peer); break;
            case Do::kProbe: probe(peer); break;
            case Do::kLook: look(peer); break;
            case Do::kTellLate: break;
            case Do::kSend:
                (void)connector_->send(peer.ports.ports, encode(peer.connection.datagram(action.kind)),
                                       {peer.connection.attempt(), 0, 0});
                break;
            case Do::kEstablished: on_established(peer); break;
            case Do::kGiveUp:
                ++report_.given_up;
                wrong(path::describe(action.reason));
                break;
            }
    }

    void make_queue_pairs(Peer& peer) {
        std::vector<path::OwnEnd> ends;
        for (std::size_t r = 0; r < peer.connection.rails(); ++r) {
            const std::size_t h = hca_number(peer, r);
            peer.qps.push_back(must(rail::make_rc_qp(hcas_[h], ports_.ports[peer.connection.path(r).local_port],
                                                     cqs_[h], cqs_[h], srqs_[h], {.sends = 2, .receives = 1})));
            ends.push_back({peer.qps[r].qpn(), words_mr_[h]->rkey});
            rail_of_[{h, ends[r].qpn}] = {&peer, r};
            if (!srqs_[h]) post_receive(h, peer.qps[r].qp, most_rails_ + receives_++);
            ++report_.queue_pairs;
        }
        carry_out(peer, peer.connection.on_qps_ready(ends, now_ns()));
    }

    // Where the peer's word that was read over rail `r` lands.
    std::uint64_t& landing(const Peer& peer, std::size_t r) {
        return words_[1 + peer.number * path::kMaxConnectionRails + r];
    }

    void probe(Peer& peer) {
        for (std::size_t r = 0; r < peer.connection.rails(); ++r) {
            if (!(peer.connection.live() >> r & 1)) continue;
            ibv_sge sge{reinterpret_cast<std::uintptr_t>(&landing(peer, r)), sizeof(std::uint64_t),
                        words_mr_[hca_number(peer, r)]->lkey};
            ibv_send_wr wr{}, *bad = nullptr;
            wr.sg_list = &sge;
            wr.num_sge = 1;
            wr.opcode = IBV_WR_RDMA_READ;
            wr.wr.rdma.remote_addr = peer.connection.peer_word();
            wr.wr.rdma.rkey = peer.connection.rail(r).remote_rkey;
            CHECK_OK(ibv_post_send(peer.qps[r].qp, &wr, &bad));
        }
    }

    void look(Peer& peer) {
        path::RailMask answered = 0;
        for (std::size_t r = 0; r < peer.connection.rails(); ++r)
            if (__atomic_load_n(&landing(peer, r), __ATOMIC_ACQUIRE) == peer.number) answered |= path::RailMask{1} << r;
        carry_out(peer, peer.connection.on_probed(answered, 0, now_ns()));
    }

    void connect_queue_pairs(Peer& peer) {
        path::RailMask failed = 0;
        for (std::size_t r = 0; r < peer.connection.rails(); ++r) {
            const auto& way = peer.connection.path(r);
            const auto status = rail::connect_rc_qp(hca_of(peer, r), peer.qps[r].qp, ports_.ports[way.local_port],
                                                    peer.ports.ports[way.remote_port], way, peer.connection.rail(r));
            if (status) continue;
            wrong(status.trouble().sentence);
            failed |= path::RailMask{1} << r;
        }
        carry_out(peer, peer.connection.on_connected(failed, now_ns()));
    }

    void on_established(Peer& peer) {
        ++report_.established;
        peer.heard.resize(peer.connection.rails());
        for (std::size_t r = 0; r < peer.connection.rails(); ++r) {
            if (!(peer.connection.live() >> r & 1)) continue;
            ++report_.rails;
            check_path(peer, r);
            send_message(peer, r);
        }
    }

    // The queue pair's attributes must be those of the rail's path.
    void check_path(Peer& peer, std::size_t r) {
        const auto& way = peer.connection.path(r);
        ibv_qp_attr attr{};
        ibv_qp_init_attr init{};
        CHECK_OK(ibv_query_qp(peer.qps[r].qp, &attr, IBV_QP_STATE | IBV_QP_AV, &init));
        const path::PortRecord &local = ports_.ports[way.local_port], &remote = peer.ports.ports[way.remote_port];
        if (attr.qp_state != IBV_QPS_RTS) wrong("a rail is not in RTS");
        if (attr.ah_attr.port_num != local.port) wrong("a rail is on another port");
        if (local.link_layer == path::LinkLayer::kEthernet) return;
        if (attr.ah_attr.dlid != remote.lid + way.remote_bits || attr.ah_attr.src_path_bits != way.local_bits)
            wrong("a rail has other LIDs");
    }

    void send_message(Peer& peer, std::size_t r) {
        const std::size_t h = hca_number(peer, r), slot = sends_++;
        pattern::fill(key_of(order_.number, peer.number, r), 0, messages_[h].slot(slot), kMessageBytes);
        ibv_sge sge = messages_[h].sge(slot);
        ibv_send_wr wr{}, *bad = nullptr;
        wr.wr_id = slot;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        wr.send_flags = IBV_SEND_SIGNALED;
        CHECK_OK(ibv_post_send(peer.qps[r].qp, &wr, &bad));
        ++sent_;
    }

    void poll_messages(std::size_t h) {
        ibv_wc wc[8];
        const int n = ibv_poll_cq(cqs_[h], 8, wc);
        for (int i = 0; i < n; ++i) {
            if (wc[i].status != IBV_WC_SUCCESS) wrong(ibv_wc_status_str(wc[i].status));
            else if (wc[i].wr_id >= most_rails_) on_message(h, wc[i]);
            if (wc[i].wr_id < most_rails_) --sent_;
        }
    }

    void on_message(std::size_t h, const ibv_wc& wc) {
        const auto [peer, r] = rail_of_.at({h, wc.qp_num});
        if (peer->heard.size() <= r) peer->heard.resize(peer->connection.rails());
        const bool right = !peer->heard[r] && wc.byte_len == kMessageBytes &&
                           pattern::mismatch(key_of(peer->number, order_.number, r), 0, messages_[h].slot(wc.wr_id),
                                             kMessageBytes) == pattern::kNone;
        peer->heard[r] = true;
        if (right) ++report_.messages;
        else wrong("a message is not the one of its rail");
        if (srqs_[h]) post_receive(h, nullptr, wc.wr_id);
    }

    void wrong(const std::string& what) {
        ++report_.wrong;
        fprintf(stderr, "node %u: %s\n", order_.number, what.c_str());
    }

    Order order_;
    Report report_;
    std::vector<rail::Hca> hcas_;
    std::unique_ptr<rail::Connector> connector_;
    path::PortList ports_;
    std::size_t most_rails_ = 0, sends_ = 0, receives_ = 0, sent_ = 0, heap_before_ = 0;
    std::vector<std::uint64_t> words_;  // ours, then those read from peers
    std::vector<Messages> messages_;    // by HCA, as are the next three
    std::vector<rail::Mr> words_mr_;
    std::vector<rail::Cq> cqs_;
    std::vector<rail::Srq> srqs_;
    std::map<std::uint32_t, Peer> peers_;
    std::map<std::pair<std::size_t, std::uint32_t>, std::pair<Peer*, std::size_t>> rail_of_;  // by HCA and QP number
};

}  // namespace

ROLE(node) {
    const auto order = channel.get<Order>();
    Node self(order);
    put_bytes(channel, pack(self.ports()));
    std::vector<path::PortList> lists;
    for (std::uint32_t i = 0; i < order.nodes; ++i)
        lists.push_back(std::get<path::PortList>(path::unpack(get_bytes(channel))));
    self.meet(lists);
    const std::uint64_t start = now_ns();
    self.ask();
    channel.put(std::uint32_t{1});
    (void)channel.get<std::uint32_t>();
    if (order.lazy_ms != 0 && order.number % 2 == 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(order.lazy_ms));

    while (!self.done()) {
        self.progress();
        if (self.connected() && self.report().connect_us == 0) self.report().connect_us = (now_ns() - start) / 1000;
        sched_yield();
    }
    self.finish_report();
    channel.put(self.report());
    std::atomic<bool> over = false;
    std::thread listener([&] {
        std::uint32_t word;
        (void)channel.try_get(word);
        over = true;
    });
    while (!over) {
        self.progress();
        sched_yield();
    }
    listener.join();
    return self.report().wrong == 0 ? 0 : 1;
}

}  // namespace railtest
