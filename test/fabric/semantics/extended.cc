// SPDX-License-Identifier: BSD-3-Clause
// The newer interface of libibverbs: work requests built by calls (ibv_wr_post(3)) and extended completion queues
// (ibv_create_cq_ex(3)). Their semantics are those of the plain interface; they are not in IBTA.
#include <cstring>

#include "end.h"
#include "pattern.h"

using namespace verbstest;

namespace {

constexpr std::uint64_t kAllOps = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                                  IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                                  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

ibv_qp* create(const Node& node, ibv_qp_type type, std::uint64_t operations) {
    ibv_qp_init_attr_ex init{};
    init.send_cq = node.scq;
    init.recv_cq = node.rcq;
    init.cap = {64, 64, 2, 2, 32};
    init.qp_type = type;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = node.pd;
    init.send_ops_flags = operations;
    ibv_qp* qp = ibv_create_qp_ex(node.context, &init);
    if (qp == nullptr) {
        CHECK(errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL);
        skip("no ibv_wr_* calls");
    }
    return qp;
}

// A queue pair with these calls, connected to a plain one on the last device.
struct Built {
    Node a, b{on_last_device()};
    Qp qp{create(a, IBV_QPT_RC, kAllOps)};
    ibv_qp_ex* x = ibv_qp_to_qp_ex(qp);

    Built() {
        CHECK(x != nullptr);
        b.connect(address_of(a.context, qp), reversed({}));
        connect(a.context, qp, b.address());
    }
    void begin(std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) const {
        x->wr_id = id;
        x->wr_flags = flags;
    }
    void from(std::size_t at, std::size_t bytes) const {
        ibv_wr_set_sge(x, a.memory.mr()->lkey, a.memory.address(at), static_cast<std::uint32_t>(bytes));
    }
};

struct ExtendedCq {
    ibv_cq_ex* cq;
    ExtendedCq(ibv_context* context, std::uint64_t fields, std::uint32_t cqe = 64) {
        ibv_cq_init_attr_ex init{};
        init.cqe = cqe;
        init.wc_flags = fields;
        cq = ibv_create_cq_ex(context, &init);
        if (cq == nullptr) {
            CHECK(errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL);
            skip("no extended completion queues of this kind");
        }
    }
    ExtendedCq(const ExtendedCq&) = delete;
    ExtendedCq& operator=(const ExtendedCq&) = delete;
    ~ExtendedCq() { CHECK_OK(ibv_destroy_cq(*this)); }
    operator ibv_cq*() const { return ibv_cq_ex_to_cq(cq); }

    void start() const {
        ibv_poll_cq_attr attr{};
        CHECK(wait_until([&] {
            const int result = ibv_start_poll(cq, &attr);
            CHECK(result == 0 || result == ENOENT);
            return result == 0;
        }));
    }
};

// Two connected queue pairs: that of `a` has plain completion queues, `receiver` completes on an extended one.
struct Read {
    Node a, b{on_last_device()};
    ExtendedCq cq;
    Qp receiver{b.pd, cq, cq};
    explicit Read(std::uint64_t fields) : cq(b.context, fields) {
        connect(b.context, receiver, a.address(), reversed({}));
        a.connect(address_of(b.context, receiver));
    }
};

}  // namespace

// --- ibv_wr_* -------------------------------------------------------------------------------------------------------

CASE(built_requests_of_every_kind_do_what_posted_ones_do) {
    Built t;
    t.a.memory.fill(1, 0, 1000);
    for (std::uint64_t id = 1; id <= 3; ++id) t.b.qp.receive(id, t.b.memory.sge(id * 2048, 1000));
    ibv_wr_start(t.x);
    t.begin(1);
    ibv_wr_send(t.x);
    t.from(0, 1000);
    t.begin(2);
    ibv_wr_send_imm(t.x, __builtin_bswap32(22));
    t.from(0, 500);
    t.begin(3);
    ibv_wr_rdma_write(t.x, t.b.memory.mr()->rkey, t.b.memory.address(20000));
    t.from(0, 300);
    t.begin(4);
    ibv_wr_rdma_write_imm(t.x, t.b.memory.mr()->rkey, t.b.memory.address(30000), __builtin_bswap32(44));
    t.from(0, 200);
    t.begin(5);
    ibv_wr_rdma_read(t.x, t.b.memory.mr()->rkey, t.b.memory.address(20000));
    t.from(40000, 300);
    CHECK_OK(ibv_wr_complete(t.x));
    const ibv_wc_opcode opcodes[] = {IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ};
    for (std::uint64_t id = 1; id <= 5; ++id) CHECK_EQ(t.a.scq.expect(id).opcode, opcodes[id - 1]);
    CHECK_EQ(t.b.rcq.expect(1).byte_len, 1000);
    CHECK_EQ(t.b.rcq.expect(2).imm_data, __builtin_bswap32(22));
    CHECK_EQ(t.b.rcq.expect(3).imm_data, __builtin_bswap32(44));
    t.b.memory.check(1, 2048, 1000);
    t.b.memory.check(1, 4096, 500);
    t.b.memory.check(1, 20000, 300);
    t.b.memory.check(1, 30000, 200);
    t.a.memory.check(1, 40000, 300);
}

CASE(built_atomics_do_what_posted_ones_do) {
    Built t;
    if (!has_atomics(t.a.context)) skip("no atomics");
    t.b.memory.set_word(0, 10);
    ibv_wr_start(t.x);
    t.begin(1);
    ibv_wr_atomic_fetch_add(t.x, t.b.memory.mr()->rkey, t.b.memory.address(), 5);
    t.from(0, 8);
    t.begin(2);
    ibv_wr_atomic_cmp_swp(t.x, t.b.memory.mr()->rkey, t.b.memory.address(), 15, 99);
    t.from(8, 8);
    CHECK_OK(ibv_wr_complete(t.x));
    t.a.scq.expect(1);
    t.a.scq.expect(2);
    CHECK_EQ(t.a.memory.word(0), 10);
    CHECK_EQ(t.a.memory.word(8), 15);
    CHECK_EQ(t.b.memory.word(0), 99);
}

CASE(built_request_takes_lists_and_inline_data) {
    Built t;
    Memory& memory = t.a.memory;
    memory.fill(1, 0, 100);
    const ibv_sge list[] = {memory.sge(0, 40), memory.sge(40, 60)};
    char text[] = "twelve bytes", more[] = "and more";
    const ibv_data_buf parts[] = {{text, 12}, {more, 8}};
    ibv_wr_start(t.x);
    t.begin(1);
    ibv_wr_rdma_write(t.x, t.b.memory.mr()->rkey, t.b.memory.address());
    ibv_wr_set_sge_list(t.x, 2, list);
    t.begin(2);
    ibv_wr_rdma_write(t.x, t.b.memory.mr()->rkey, t.b.memory.address(1000));
    ibv_wr_set_inline_data(t.x, text, 12);
    t.begin(3);
    ibv_wr_rdma_write(t.x, t.b.memory.mr()->rkey, t.b.memory.address(2000));
    ibv_wr_set_inline_data_list(t.x, 2, parts);
    CHECK_OK(ibv_wr_complete(t.x));
    std::memset(text, 0, sizeof text);
    std::memset(more, 0, sizeof more);
    for (std::uint64_t id = 1; id <= 3; ++id) t.a.scq.expect(id);
    t.b.memory.check(1, 0, 100);
    CHECK_EQ(std::memcmp(t.b.memory.data() + 1000, "twelve bytes", 12), 0);
    CHECK_EQ(std::memcmp(t.b.memory.data() + 2000, "twelve bytesand more", 20), 0);
    t.b.memory.check_untouched(1012, 900);
}

CASE(aborted_requests_are_not_posted) {
    Built t;
    t.a.memory.fill(1, 0, 64);
    ibv_wr_start(t.x);
    t.begin(1);
    ibv_wr_rdma_write(t.x, t.b.memory.mr()->rkey, t.b.memory.address());
    t.from(0, 64);
    ibv_wr_abort(t.x);
    t.a.scq.expect_none();
    t.b.memory.check_untouched();
    ibv_wr_start(t.x);
    t.begin(2);
    ibv_wr_rdma_write(t.x, t.b.memory.mr()->rkey, t.b.memory.address());
    t.from(0, 64);
    CHECK_OK(ibv_wr_complete(t.x));
    t.a.scq.expect(2);
    t.b.memory.check(1, 0, 64);
}

// ibv_wr_post(3): all or nothing.
CASE(too_many_built_requests_are_refused_whole) {
    Built t;
    ibv_qp_init_attr init{};
    t.qp.query(&init);
    ibv_wr_start(t.x);
    for (std::uint32_t i = 0; i <= init.cap.max_send_wr; ++i) {
        t.begin(i);
        ibv_wr_rdma_write(t.x, t.b.memory.mr()->rkey, t.b.memory.address());
        t.from(0, 8);
    }
    CHECK_ERROR(ibv_wr_complete(t.x), ENOMEM);
    t.a.scq.expect_none();
    t.b.memory.check_untouched();
}

// A completed request keeps its place in the queue until its completion has been polled.
CASE(built_requests_need_places_of_polled_completions) {
    Built t;
    ibv_qp_init_attr init{};
    t.qp.query(&init);
    const std::uint32_t places = init.cap.max_send_wr;
    for (std::uint32_t i = 0; i < places; ++i) t.qp.post(write(i, t.a.memory.sge(0, 8), t.b.memory.remote()));
    t.a.scq.expect(0);
    const auto build = [&t](std::uint64_t id) {
        t.begin(id);
        ibv_wr_rdma_write(t.x, t.b.memory.mr()->rkey, t.b.memory.address());
        t.from(0, 8);
    };
    ibv_wr_start(t.x);
    build(places);
    build(places + 1);
    CHECK_ERROR(ibv_wr_complete(t.x), ENOMEM);
    ibv_wr_start(t.x);
    build(places);
    CHECK_OK(ibv_wr_complete(t.x));
    for (std::uint32_t i = 1; i <= places; ++i) t.a.scq.expect(i);
}

CASE(built_and_posted_requests_share_the_queue_in_order) {
    Built t;
    for (std::uint64_t id = 0; id < 10; ++id) {
        if (id % 2 == 0) {
            t.qp.post(write(id, t.a.memory.sge(0, 8), t.b.memory.remote()));
            continue;
        }
        ibv_wr_start(t.x);
        t.begin(id);
        ibv_wr_rdma_write(t.x, t.b.memory.mr()->rkey, t.b.memory.address());
        t.from(0, 8);
        CHECK_OK(ibv_wr_complete(t.x));
    }
    for (std::uint64_t id = 0; id < 10; ++id) t.a.scq.expect(id);
}

CASE(built_datagram_goes_to_its_address) {
    Shape shape;
    shape.qp.type = IBV_QPT_UD;
    Node a(shape), b(on_last_device(shape));
    const Qp qp(create(a, IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM));
    ibv_qp_ex* x = ibv_qp_to_qp_ex(qp);
    connect(a.context, qp, {});
    b.connect({});
    const Ah ah(a.pd, way_to(b.address(), {}, 1));
    a.memory.fill(1, 0, 64);
    b.qp.receive(1, b.memory.sge(0, 256));
    ibv_wr_start(x);
    x->wr_id = 1;
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(x);
    ibv_wr_set_ud_addr(x, ah, b.qp.number(), kQkey);
    ibv_wr_set_sge(x, a.memory.mr()->lkey, a.memory.address(), 64);
    CHECK_OK(ibv_wr_complete(x));
    a.scq.expect(1);
    CHECK_EQ(b.rcq.expect(1).src_qp, qp.number());
    b.memory.check(1, sizeof(ibv_grh), 64);
}

// --- extended completion queues -------------------------------------------------------------------------------------

CASE(extended_cq_is_read_field_by_field) {
    Read r(IBV_WC_STANDARD_FLAGS);
    for (std::uint64_t id = 1; id <= 3; ++id) {
        r.receiver.receive(id, r.b.memory.sge(id * 1024, 100));
        r.a.qp.post(send_imm(id, r.a.memory.sge(0, 10 * id), static_cast<std::uint32_t>(id)));
        r.a.scq.expect(id);
    }
    r.cq.start();
    for (std::uint64_t id = 1; id <= 3; ++id) {
        if (id > 1) {
            int result;
            CHECK(wait_until([&] { return (result = ibv_next_poll(r.cq.cq)) == 0; }));
        }
        CHECK_EQ(r.cq.cq->wr_id, id);
        CHECK_EQ(r.cq.cq->status, IBV_WC_SUCCESS);
        CHECK_EQ(ibv_wc_read_opcode(r.cq.cq), IBV_WC_RECV);
        CHECK_EQ(ibv_wc_read_byte_len(r.cq.cq), 10 * id);
        CHECK_EQ(ibv_wc_read_imm_data(r.cq.cq), __builtin_bswap32(static_cast<std::uint32_t>(id)));
        CHECK((ibv_wc_read_wc_flags(r.cq.cq) & IBV_WC_WITH_IMM) != 0);
        CHECK_EQ(ibv_wc_read_qp_num(r.cq.cq), r.receiver.number());
        CHECK_EQ(ibv_wc_read_sl(r.cq.cq), 0);
        CHECK_EQ(ibv_wc_read_dlid_path_bits(r.cq.cq), 0);
    }
    CHECK_EQ(ibv_next_poll(r.cq.cq), ENOENT);
    ibv_end_poll(r.cq.cq);
    ibv_poll_cq_attr attr{};
    CHECK_EQ(ibv_start_poll(r.cq.cq, &attr), ENOENT);
    attr.comp_mask = 1u << 31;
    CHECK_EQ(ibv_start_poll(r.cq.cq, &attr), EINVAL);
}

CASE(extended_cq_can_be_polled_the_plain_way) {
    Read r(IBV_WC_STANDARD_FLAGS);
    r.receiver.receive(1, r.b.memory.sge(0, 64));
    r.a.qp.post(send(1, r.a.memory.sge(0, 64)));
    r.a.scq.expect(1);
    ibv_wc wc{};
    CHECK(wait_until([&] { return ibv_poll_cq(r.cq, 1, &wc) == 1; }));
    CHECK_EQ(wc.wr_id, 1);
    CHECK_EQ(wc.byte_len, 64);
}

CASE(extended_cq_reports_errors) {
    Read r(IBV_WC_STANDARD_FLAGS);
    r.receiver.receive(1, r.b.memory.sge(0, 10));
    r.receiver.receive(2, r.b.memory.sge(0, 10));
    r.a.qp.post(send(1, r.a.memory.sge(0, 64)));
    r.a.scq.expect(1, IBV_WC_REM_INV_REQ_ERR);
    r.cq.start();
    CHECK_EQ(r.cq.cq->wr_id, 1);
    CHECK_EQ(r.cq.cq->status, IBV_WC_LOC_LEN_ERR);
    (void)ibv_wc_read_vendor_err(r.cq.cq);
    int result;
    CHECK(wait_until([&] { return (result = ibv_next_poll(r.cq.cq)) == 0; }));
    CHECK_EQ(r.cq.cq->wr_id, 2);
    CHECK_EQ(r.cq.cq->status, IBV_WC_WR_FLUSH_ERR);
    ibv_end_poll(r.cq.cq);
}

CASE(completion_time_stamps_grow) {
    Read r(IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
    std::uint64_t last = 0;
    for (std::uint64_t id = 1; id <= 5; ++id) {
        r.receiver.receive(id, r.b.memory.sge(0, 64));
        r.a.qp.post(send(id, r.a.memory.sge(0, 64)));
        r.a.scq.expect(id);
        r.cq.start();
        const std::uint64_t now = ibv_wc_read_completion_ts(r.cq.cq);
        CHECK(now != 0);
        CHECK(now >= last);
        last = now;
        ibv_end_poll(r.cq.cq);
    }
    ibv_values_ex values{};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    if (ibv_query_rt_values_ex(r.b.context, &values) == 0) CHECK((values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0);
}

CASE(wallclock_time_stamps_are_of_now) {
    Read r(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
    timespec before{}, after{};
    clock_gettime(CLOCK_REALTIME, &before);
    r.receiver.receive(1, r.b.memory.sge(0, 64));
    r.a.qp.post(send(1, r.a.memory.sge(0, 64)));
    r.a.scq.expect(1);
    r.cq.start();
    const std::uint64_t at = ibv_wc_read_completion_wallclock_ns(r.cq.cq);
    ibv_end_poll(r.cq.cq);
    clock_gettime(CLOCK_REALTIME, &after);
    const auto ns = [](const timespec& t) {
        return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
    };
    CHECK(at >= ns(before) && at <= ns(after));
}

CASE(unknown_fields_of_an_extended_cq_are_refused) {
    const Context context;
    ibv_cq_init_attr_ex init{};
    init.cqe = 16;
    init.wc_flags = std::uint64_t{1} << 40;
    errno = 0;
    CHECK(ibv_create_cq_ex(context, &init) == nullptr);
    CHECK(errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS);
}
