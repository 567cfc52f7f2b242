// SPDX-License-Identifier: BSD-3-Clause
#include "end.h"

#include <algorithm>
#include <cstdlib>

namespace verbstest {

// --- one side -------------------------------------------------------------------------------------------------------

ibv_ah_attr way_to(const Address& peer, const Path& path, std::uint8_t my_port) {
    ibv_ah_attr way{};
    way.port_num = my_port;
    way.src_path_bits = path.src_path_bits;
    way.dlid = static_cast<std::uint16_t>(peer.lid + path.dlid_offset);
    if (peer.global) way.dlid = 0;
    if (peer.global || peer.header) {
        way.is_global = 1;
        way.grh.dgid = peer.gid;
        way.grh.hop_limit = 64;
    }
    return way;
}

Node::Node(const Shape& wanted)
    : shape(wanted), context(wanted.device), pd(context), scq(context, wanted.cqe), rcq(context, wanted.cqe),
      memory(pd, wanted.bytes, wanted.access),
      srq(wanted.srq_wrs > 0 ? std::make_unique<Srq>(pd, wanted.srq_wrs) : nullptr),
      qp(pd, scq, rcq, wanted.qp, srq ? static_cast<ibv_srq*>(*srq) : nullptr) {}

Address Node::address() const {
    Address address = address_of(context, qp, shape.port);
    address.memory = memory.remote();
    address.bytes = memory.size();
    return address;
}

std::string Node::port_name() const {
    const char* host = getenv("COOP_FABRIC_HOST");
    return std::string(host == nullptr ? "h0" : host) + "/" + context.name() + "/" + std::to_string(shape.port);
}

// --- one queue pair -------------------------------------------------------------------------------------------------

Address address_of(const Context& context, const Qp& qp, std::uint8_t number) {
    const ibv_port_attr port = context.port(number);
    Address address;
    address.lid = port.lid;
    address.lmc = port.lmc;
    address.port = number;
    if (context.device().phys_port_cnt >= 2) address.lid_of_port_2 = context.port(2).lid;
    address.global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    address.header = !address.global && (port.flags & IBV_QPF_GRH_REQUIRED) != 0;
    address.gid = context.gid(number);
    address.qpn = qp.number();
    address.mtu = port.active_mtu;
    address.max_rd_atomic = context.device().max_qp_rd_atom;
    return address;
}

int to_init(const Qp& qp, const Path& path, std::uint8_t port) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = port;
    attr.pkey_index = path.pkey_index;
    attr.qp_access_flags = static_cast<unsigned>(path.access);
    attr.qkey = kQkey;
    return qp.modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                               (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int to_rtr(const Context& context, const Qp& qp, const Address& peer, const Path& path, std::uint8_t port) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    if (qp->qp_type == IBV_QPT_UD) return qp.modify(attr, IBV_QP_STATE);
    attr.ah_attr = way_to(peer, path, port);
    attr.path_mtu = std::min({path.mtu, peer.mtu, context.port(port).active_mtu});
    attr.dest_qp_num = peer.qpn;
    attr.rq_psn = path.peer_psn;
    attr.max_dest_rd_atomic = static_cast<std::uint8_t>(
        std::min(path.max_dest_rd_atomic, context.device().max_qp_rd_atom));
    attr.min_rnr_timer = path.min_rnr;
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (qp->qp_type == IBV_QPT_RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return qp.modify(attr, mask);
}

int to_rts(const Context& context, const Qp& qp, const Path& path) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = path.my_psn;
    attr.timeout = path.timeout;
    attr.retry_cnt = path.retry;
    attr.rnr_retry = path.rnr_retry;
    attr.max_rd_atomic = static_cast<std::uint8_t>(std::min(path.max_rd_atomic, context.device().max_qp_init_rd_atom));
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (qp->qp_type == IBV_QPT_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return qp.modify(attr, mask);
}

void connect(const Context& context, const Qp& qp, const Address& peer, const Path& path, std::uint8_t port) {
    CHECK_OK(to_init(qp, path, port));
    CHECK_OK(to_rtr(context, qp, peer, path, port));
    CHECK_OK(to_rts(context, qp, path));
}

// --- the other side, here -------------------------------------------------------------------------------------------

ibv_wc End::expect_receive(std::uint64_t id, ibv_wc_status status) {
    const auto wc = poll_receive(kPatienceMs);
    if (!wc) fail(__FILE__, __LINE__, "no completion of receive " + std::to_string(id));
    if (wc->wr_id != id || wc->status != status)
        fail(__FILE__, __LINE__,
             "receive " + std::to_string(wc->wr_id) + " completed: '" + ibv_wc_status_str(wc->status) + "', expected " +
                 std::to_string(id) + ": '" + ibv_wc_status_str(status) + "'");
    return *wc;
}

void End::expect_send(std::uint64_t id, ibv_wc_status status) {
    const auto wc = poll_send(kPatienceMs);
    CHECK(wc.has_value());
    CHECK_EQ(wc->status, status);
    CHECK_EQ(wc->wr_id, id);
}

void End::expect_event(ibv_event_type type) {
    if (!has_event(type, kPatienceMs))
        fail(__FILE__, __LINE__, std::string("no event '") + ibv_event_type_str(type) + "' at the other side");
}

int End::to(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return modify(attr, IBV_QP_STATE);
}

void End::wait_state(ibv_qp_state state) {
    if (!wait_until([&] { return query().qp_state == state; })) CHECK_EQ(query().qp_state, state);
}

namespace {

class Near : public End {
public:
    explicit Near(const Shape& shape) : node_(shape) {}

    Address address() override { return node_.address(); }
    std::string port_name() override { return node_.port_name(); }
    void connect(const Address& peer, const Path& path) override { node_.connect(peer, path); }
    int modify(const ibv_qp_attr& attr, int mask) override { return node_.qp.modify(attr, mask); }
    ibv_qp_attr query() override { return node_.qp.query(); }
    void receive(std::uint64_t id, std::size_t at, std::size_t bytes) override {
        if (node_.srq) node_.srq->receive(id, node_.memory.sge(at, bytes));
        else node_.qp.receive(id, node_.memory.sge(at, bytes));
    }
    void post_send(std::uint64_t id, std::size_t at, std::size_t bytes) override {
        node_.qp.post(send(id, node_.memory.sge(at, bytes)));
    }
    std::optional<ibv_wc> poll_receive(int ms) override { return node_.rcq.poll(ms); }
    std::optional<ibv_wc> poll_send(int ms) override { return node_.scq.poll(ms); }
    void fill(std::uint64_t key, std::size_t at, std::size_t bytes) override { node_.memory.fill(key, at, bytes); }
    void check(std::uint64_t key, std::size_t at, std::size_t bytes) override {
        node_.memory.check(key, at, bytes);
        node_.memory.check_guards();
    }
    void check_untouched(std::size_t at, std::size_t bytes) override {
        node_.memory.check_untouched(at, bytes);
        node_.memory.check_guards();
    }
    std::uint64_t word(std::size_t at) override { return node_.memory.word(at); }
    void set_word(std::size_t at, std::uint64_t value) override { node_.memory.set_word(at, value); }
    bool has_event(ibv_event_type type, int ms) override { return node_.context.has_event(type, ms); }

private:
    Node node_;
};

// --- the other side, elsewhere --------------------------------------------------------------------------------------

enum class Verb {
    address,
    port_name,
    connect,
    modify,
    query,
    receive,
    post_send,
    poll_receive,
    poll_send,
    fill,
    check,
    check_untouched,
    word,
    set_word,
    has_event
};

struct Call {
    Verb verb;
    std::uint64_t number, at, bytes;  // wr_id, key or value; where
    int ms, mask;
    ibv_qp_attr attr;
    Address peer;
    Path path;
};

struct Answer {
    std::uint64_t number = 0;
    bool have = false;
    int result = 0;
    ibv_wc wc{};
    ibv_qp_attr attr{};
    Address address;
    char text[64] = "";
};

void answer_completion(Answer& answer, const std::optional<ibv_wc>& wc) {
    answer.have = wc.has_value();
    if (wc) answer.wc = *wc;
}

Answer serve(Near& near, const Call& call) {
    Answer answer;
    switch (call.verb) {
    case Verb::address: answer.address = near.address(); break;
    case Verb::port_name: near.port_name().copy(answer.text, sizeof answer.text - 1); break;
    case Verb::connect: near.connect(call.peer, call.path); break;
    case Verb::modify: answer.result = near.modify(call.attr, call.mask); break;
    case Verb::query: answer.attr = near.query(); break;
    case Verb::receive: near.receive(call.number, call.at, call.bytes); break;
    case Verb::post_send: near.post_send(call.number, call.at, call.bytes); break;
    case Verb::poll_receive: answer_completion(answer, near.poll_receive(call.ms)); break;
    case Verb::poll_send: answer_completion(answer, near.poll_send(call.ms)); break;
    case Verb::fill: near.fill(call.number, call.at, call.bytes); break;
    case Verb::check: near.check(call.number, call.at, call.bytes); break;
    case Verb::check_untouched: near.check_untouched(call.at, call.bytes); break;
    case Verb::word: answer.number = near.word(call.at); break;
    case Verb::set_word: near.set_word(call.at, call.number); break;
    case Verb::has_event: answer.have = near.has_event(static_cast<ibv_event_type>(call.mask), call.ms); break;
    }
    return answer;
}

class Far : public End {
public:
    Far(const Shape& shape, const char* host) : process_("far_end", host) { process_.channel().put(shape); }
    ~Far() override {
        if (process_.pid() > 0) CHECK_EQ(process_.finish(), 0);  // its own checks, to the last
    }

    Process& process() { return process_; }
    Address address() override { return ask(Verb::address).address; }
    std::string port_name() override { return ask(Verb::port_name).text; }
    void connect(const Address& peer, const Path& path) override {
        Call call = make(Verb::connect);
        call.peer = peer;
        call.path = path;
        ask(call);
    }
    int modify(const ibv_qp_attr& attr, int mask) override {
        Call call = make(Verb::modify);
        call.attr = attr;
        call.mask = mask;
        return ask(call).result;
    }
    ibv_qp_attr query() override { return ask(Verb::query).attr; }
    void receive(std::uint64_t id, std::size_t at, std::size_t bytes) override { ask(Verb::receive, id, at, bytes); }
    void post_send(std::uint64_t id, std::size_t at, std::size_t bytes) override {
        ask(Verb::post_send, id, at, bytes);
    }
    std::optional<ibv_wc> poll_receive(int ms) override { return poll(Verb::poll_receive, ms); }
    std::optional<ibv_wc> poll_send(int ms) override { return poll(Verb::poll_send, ms); }
    void fill(std::uint64_t key, std::size_t at, std::size_t bytes) override { ask(Verb::fill, key, at, bytes); }
    void check(std::uint64_t key, std::size_t at, std::size_t bytes) override { ask(Verb::check, key, at, bytes); }
    void check_untouched(std::size_t at, std::size_t bytes) override { ask(Verb::check_untouched, 0, at, bytes); }
    std::uint64_t word(std::size_t at) override { return ask(Verb::word, 0, at).number; }
    void set_word(std::size_t at, std::uint64_t value) override { ask(Verb::set_word, value, at); }
    bool has_event(ibv_event_type type, int ms) override {
        Call call = make(Verb::has_event);
        call.mask = type;
        call.ms = ms;
        return ask(call).have;
    }

private:
    static Call make(Verb verb) {
        Call call{};
        call.verb = verb;
        return call;
    }
    Answer ask(const Call& call) {
        process_.channel().put(call);
        return process_.channel().get<Answer>();
    }
    Answer ask(Verb verb, std::uint64_t number = 0, std::size_t at = 0, std::size_t bytes = 0) {
        Call call = make(verb);
        call.number = number;
        call.at = at;
        call.bytes = bytes;
        return ask(call);
    }
    std::optional<ibv_wc> poll(Verb verb, int ms) {
        Call call = make(verb);
        call.ms = ms;
        const Answer answer = ask(call);
        return answer.have ? std::optional<ibv_wc>(answer.wc) : std::nullopt;
    }

    Process process_;
};

ROLE(far_end) {
    Near near(channel.get<Shape>());
    for (Call call; channel.try_get(call);) channel.put(serve(near, call));
    return 0;
}

}  // namespace

std::unique_ptr<End> make_near(const Shape& shape) { return std::make_unique<Near>(shape); }
std::unique_ptr<End> make_far(const Shape& shape, const char* host) { return std::make_unique<Far>(shape, host); }

void kill_far(End& far_end) { dynamic_cast<Far&>(far_end).process().kill(); }

Shape on_last_device(Shape shape) {
    if (shape.device == 0) shape.device = -1;
    return shape;
}

Path reversed(Path path) {
    std::swap(path.my_psn, path.peer_psn);
    return path;
}

namespace {

Path limited(Path path, const Address& peer) {
    path.max_rd_atomic = std::min(path.max_rd_atomic, peer.max_rd_atomic);
    return path;
}

}  // namespace

std::unique_ptr<End> make_end(const Shape& shape) { return far() ? make_far(shape) : make_near(on_last_device(shape)); }

Pair::Pair(const Options& options) : a(options.a), b(make_end(options.b)), at_a(a.address()), at_b(b->address()) {
    b->connect(at_a, reversed(options.from_b));
    a.connect(at_b, limited(options.from_a, at_b));
}

Two::Two(const Pair::Options& options) : a(options.a), b(on_last_device(options.b)) {
    b.connect(a.address(), reversed(options.from_b));
    a.connect(b.address(), limited(options.from_a, b.address()));
}

void Pair::exchange(std::uint64_t key, std::size_t bytes, std::size_t at) {
    a.memory.fill(key, at, bytes);
    b->receive(key, at, bytes);
    a.qp.post(send(key, a.memory.sge(at, bytes)));
    a.scq.expect(key);
    const ibv_wc wc = b->expect_receive(key);
    CHECK_EQ(wc.byte_len, bytes);
    b->check(key, at, bytes);
}

}  // namespace verbstest
