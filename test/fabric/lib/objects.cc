// SPDX-License-Identifier: BSD-3-Clause
#include "objects.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "pattern.h"

namespace verbstest {

bool wait_until(const std::function<bool()>& holds, int ms) {
    const auto start = Clock::now();
    while (!holds()) {
        if (ms_since(start) > ms) return false;
        sched_yield();
    }
    return true;
}

namespace {

bool readable(int fd, int ms) {
    pollfd entry{fd, POLLIN, 0};
    for (;;) {
        const int n = ::poll(&entry, 1, ms);
        if (n < 0 && errno == EINTR) continue;
        CHECK(n >= 0);
        return n > 0;
    }
}

bool about_a_port(ibv_event_type type) {
    switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE: return true;
    default: return false;
    }
}

}  // namespace

// --- devices --------------------------------------------------------------------------------------------------------

int devices() {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    CHECK(list != nullptr);
    ibv_free_device_list(list);
    return count;
}

Context::Context(int index) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    CHECK(list != nullptr);
    if (index < 0) index += count;
    CHECK(index >= 0 && index < count);
    context_ = ibv_open_device(list[index]);
    CHECK(context_ != nullptr);
    ibv_free_device_list(list);
}

Context::~Context() { CHECK_OK(ibv_close_device(context_)); }

ibv_device_attr Context::device() const {
    ibv_device_attr attr{};
    CHECK_OK(ibv_query_device(context_, &attr));
    return attr;
}

ibv_port_attr Context::port(std::uint8_t number) const {
    ibv_port_attr attr{};
    CHECK_OK(ibv_query_port(context_, number, &attr));
    return attr;
}

ibv_gid Context::gid(std::uint8_t port, int index) const {
    ibv_gid gid{};
    CHECK_OK(ibv_query_gid(context_, port, index, &gid));
    return gid;
}

std::optional<Event> Context::next_event(int ms) const {
    if (!readable(context_->async_fd, ms)) return std::nullopt;
    ibv_async_event event{};
    CHECK_EQ(ibv_get_async_event(context_, &event), 0);
    Event copy{event.event_type, nullptr, 0};
    if (about_a_port(event.event_type)) copy.port = event.element.port_num;
    else if (event.event_type != IBV_EVENT_DEVICE_FATAL) copy.element = event.element.qp;
    ibv_ack_async_event(&event);
    return copy;
}

Event Context::wait_event(ibv_event_type type, int ms) const {
    const auto start = Clock::now();
    std::string others;
    for (;;) {
        const int left = ms - static_cast<int>(ms_since(start));
        const auto event = next_event(left < 0 ? 0 : left);
        if (!event)
            fail(__FILE__, __LINE__,
                 std::string("no event '") + ibv_event_type_str(type) + "' on " + name() +
                     (others.empty() ? "" : ", but" + others));
        if (event->type == type) return *event;
        others += std::string(" '") + ibv_event_type_str(event->type) + "'";
    }
}

bool Context::has_event(ibv_event_type type, int ms) const {
    const auto start = Clock::now();
    for (;;) {
        const int left = ms - static_cast<int>(ms_since(start));
        const auto event = next_event(left < 0 ? 0 : left);
        if (!event) return false;
        if (event->type == type) return true;
    }
}

void Context::forget_events() const {
    while (next_event(0)) {
    }
}

bool has_srq(const Context& context) { return context.device().max_srq > 0; }
bool has_apm(const Context& context) { return (context.device().device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG) != 0; }
bool has_atomics(const Context& context) { return context.device().atomic_cap != IBV_ATOMIC_NONE; }

// --- protection domains and memory ----------------------------------------------------------------------------------

Pd::Pd(ibv_context* context) : pd_(ibv_alloc_pd(context)) { CHECK(pd_ != nullptr); }
Pd::~Pd() { CHECK_OK(ibv_dealloc_pd(pd_)); }

Memory::Memory(ibv_pd* pd, std::size_t bytes, int access) : bytes_(bytes) {
    const std::size_t page = 4096;
    mapped_ = (bytes + 2 * kGuard + page - 1) / page * page;
    void* base = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED);
    base_ = static_cast<unsigned char*>(base);
    data_ = base_ + kGuard;
    std::memset(base_, kUntouched, mapped_);
    mr_ = ibv_reg_mr(pd, data_, bytes, static_cast<unsigned>(access));
    if (mr_ == nullptr)
        fail(__FILE__, __LINE__, "ibv_reg_mr of " + std::to_string(bytes) + " bytes: " + strerror(errno));
}

Memory::~Memory() {
    deregister();
    check_guards();
    munmap(base_, mapped_);
}

void Memory::deregister() {
    if (mr_ != nullptr) CHECK_OK(ibv_dereg_mr(mr_));
    mr_ = nullptr;
}

ibv_sge Memory::sge(std::size_t at, std::size_t bytes) const {
    return {address(at), static_cast<std::uint32_t>(length(at, bytes)), mr_->lkey};
}

void Memory::fill(std::uint64_t key, std::size_t at, std::size_t bytes) {
    pattern::fill(key, 0, data_ + at, length(at, bytes));
}

void Memory::check(std::uint64_t key, std::size_t at, std::size_t bytes) const {
    const std::size_t n = length(at, bytes), wrong = pattern::mismatch(key, 0, data_ + at, n);
    if (wrong != pattern::kNone)
        fail(__FILE__, __LINE__,
             "byte " + std::to_string(wrong) + " of " + std::to_string(n) + " of message " + std::to_string(key) +
                 " is " + std::to_string(data_[at + wrong]) + ", expected " +
                 std::to_string(pattern::byte(key, wrong)));
}

void Memory::check_untouched(std::size_t at, std::size_t bytes) const {
    const std::size_t n = length(at, bytes);
    for (std::size_t i = 0; i < n; ++i)
        if (data_[at + i] != kUntouched)
            fail(__FILE__, __LINE__, "byte " + std::to_string(at + i) + " was written, and should not have been");
}

void Memory::wipe() { std::memset(data_, kUntouched, bytes_); }

void Memory::check_guards() const {
    for (std::size_t i = 0; i < kGuard; ++i)
        if (base_[i] != kUntouched || data_[bytes_ + i] != kUntouched)
            fail(__FILE__, __LINE__, "a byte outside of the memory region was written");
}

std::uint64_t Memory::word(std::size_t at) const {
    return __atomic_load_n(reinterpret_cast<std::uint64_t*>(data_ + at), __ATOMIC_ACQUIRE);
}

void Memory::set_word(std::size_t at, std::uint64_t value) {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(data_ + at), value, __ATOMIC_RELEASE);
}

// --- completions ----------------------------------------------------------------------------------------------------

ChannelOfCompletions::ChannelOfCompletions(ibv_context* context) : channel_(ibv_create_comp_channel(context)) {
    CHECK(channel_ != nullptr);
}
ChannelOfCompletions::~ChannelOfCompletions() { CHECK_OK(ibv_destroy_comp_channel(channel_)); }

bool ChannelOfCompletions::readable(int ms) const { return verbstest::readable(channel_->fd, ms); }

ibv_cq* ChannelOfCompletions::next(int ms) const {
    if (!readable(ms)) return nullptr;
    ibv_cq* cq = nullptr;
    void* user = nullptr;
    CHECK_EQ(ibv_get_cq_event(channel_, &cq, &user), 0);
    CHECK(user == cq->cq_context);
    ibv_ack_cq_events(cq, 1);
    return cq;
}

Cq::Cq(ibv_context* context, int cqe, ibv_comp_channel* channel, void* user)
    : cq_(ibv_create_cq(context, cqe, user, channel, 0)) {
    CHECK(cq_ != nullptr);
    CHECK(cq_->cqe >= cqe);
}
Cq::~Cq() { CHECK_OK(ibv_destroy_cq(cq_)); }

std::optional<ibv_wc> Cq::poll(int ms) const {
    const auto start = Clock::now();
    for (;;) {
        ibv_wc wc{};
        const int n = ibv_poll_cq(cq_, 1, &wc);
        CHECK(n == 0 || n == 1);
        if (n == 1) return wc;
        if (ms_since(start) >= ms) return std::nullopt;
        sched_yield();
    }
}

ibv_wc Cq::wait() const {
    const auto wc = poll(kPatienceMs);
    if (!wc) fail(__FILE__, __LINE__, "no completion");
    return *wc;
}

ibv_wc Cq::expect(std::uint64_t wr_id, ibv_wc_status status) const {
    const ibv_wc wc = wait();
    if (wc.status != status || wc.wr_id != wr_id)
        fail(__FILE__, __LINE__,
             "work request " + std::to_string(wc.wr_id) + " completed: '" + ibv_wc_status_str(wc.status) +
                 "', expected " + std::to_string(wr_id) + ": '" + ibv_wc_status_str(status) + "'");
    return wc;
}

void Cq::expect_none(int ms) const {
    const auto wc = poll(ms);
    if (wc)
        fail(__FILE__, __LINE__,
             "work request " + std::to_string(wc->wr_id) + " completed: '" + ibv_wc_status_str(wc->status) +
                 "', expected no completion");
}

void Cq::arm(bool solicited_only) const { CHECK_OK(ibv_req_notify_cq(cq_, solicited_only)); }

// --- work requests --------------------------------------------------------------------------------------------------

namespace {

Wr request(ibv_wr_opcode opcode, std::uint64_t id, ibv_sge sge) {
    Wr wr;
    wr.id = id;
    wr.opcode = opcode;
    wr.list = {sge};
    return wr;
}

Wr rdma(ibv_wr_opcode opcode, std::uint64_t id, ibv_sge sge, Remote remote) {
    Wr wr = request(opcode, id, sge);
    wr.remote = remote;
    return wr;
}

bool atomic(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

ibv_send_wr raw(const Wr& wr) {
    ibv_send_wr out{};
    out.wr_id = wr.id;
    out.sg_list = wr.list.empty() ? nullptr : const_cast<ibv_sge*>(wr.list.data());
    out.num_sge = static_cast<int>(wr.list.size());
    out.opcode = wr.opcode;
    out.send_flags = wr.flags;
    out.imm_data = htonl(wr.imm);
    if (wr.ah != nullptr) {
        out.wr.ud = {wr.ah, wr.qpn, wr.qkey};
    } else if (atomic(wr.opcode)) {
        out.wr.atomic = {wr.remote.address, wr.operand, wr.swap, wr.remote.rkey};
    } else {
        out.wr.rdma = {wr.remote.address, wr.remote.rkey};
    }
    return out;
}

}  // namespace

Wr send(std::uint64_t id, ibv_sge from) { return request(IBV_WR_SEND, id, from); }
Wr send_imm(std::uint64_t id, ibv_sge from, std::uint32_t imm) {
    Wr wr = request(IBV_WR_SEND_WITH_IMM, id, from);
    wr.imm = imm;
    return wr;
}
Wr write(std::uint64_t id, ibv_sge from, Remote to) { return rdma(IBV_WR_RDMA_WRITE, id, from, to); }
Wr write_imm(std::uint64_t id, ibv_sge from, Remote to, std::uint32_t imm) {
    Wr wr = rdma(IBV_WR_RDMA_WRITE_WITH_IMM, id, from, to);
    wr.imm = imm;
    return wr;
}
Wr read(std::uint64_t id, ibv_sge to, Remote from) { return rdma(IBV_WR_RDMA_READ, id, to, from); }
Wr fetch_add(std::uint64_t id, ibv_sge old, Remote at, std::uint64_t add) {
    Wr wr = rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, id, old, at);
    wr.operand = add;
    return wr;
}
Wr compare_swap(std::uint64_t id, ibv_sge old, Remote at, std::uint64_t compare, std::uint64_t swap) {
    Wr wr = rdma(IBV_WR_ATOMIC_CMP_AND_SWP, id, old, at);
    wr.operand = compare;
    wr.swap = swap;
    return wr;
}

// --- queue pairs ----------------------------------------------------------------------------------------------------

Qp::Qp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq, const QpShape& shape, ibv_srq* srq) {
    ibv_qp_init_attr init{};
    init.send_cq = send_cq;
    init.recv_cq = recv_cq;
    init.srq = srq;
    init.qp_type = shape.type;
    init.sq_sig_all = shape.sig_all;
    init.cap = {shape.send_wrs, srq == nullptr ? shape.recv_wrs : 0, shape.sges, srq == nullptr ? shape.sges : 0,
                shape.inline_bytes};
    qp_ = ibv_create_qp(pd, &init);
    if (qp_ == nullptr) fail(__FILE__, __LINE__, std::string("ibv_create_qp: ") + strerror(errno));
    cap_ = init.cap;
}

Qp::~Qp() {
    if (qp_ != nullptr) CHECK_OK(ibv_destroy_qp(qp_));
}

int Qp::to(ibv_qp_state state) const {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return modify(attr, IBV_QP_STATE);
}

ibv_qp_attr Qp::query(ibv_qp_init_attr* init) const {
    ibv_qp_attr attr{};
    ibv_qp_init_attr unused{};
    constexpr int kMask = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                          IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                          IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_ALT_PATH |
                          IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MIG_STATE |
                          IBV_QP_CAP | IBV_QP_DEST_QPN;
    CHECK_OK(ibv_query_qp(qp_, &attr, kMask, init == nullptr ? &unused : init));
    return attr;
}

void Qp::wait_state(ibv_qp_state wanted) const {
    if (!wait_until([&] { return state() == wanted; })) CHECK_EQ(state(), wanted);
}

int Qp::try_post(const Wr& wr) const {
    ibv_send_wr one = raw(wr);
    ibv_send_wr* bad = nullptr;
    const int result = ibv_post_send(qp_, &one, &bad);
    if (result != 0) CHECK(bad == &one);
    return result;
}

void Qp::post(const Wr& wr) const { CHECK_OK(try_post(wr)); }

int Qp::try_post(const std::vector<Wr>& wrs, std::size_t* bad) const {
    std::vector<ibv_send_wr> list;
    for (const Wr& wr : wrs) list.push_back(raw(wr));
    for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i].next = &list[i + 1];
    ibv_send_wr* refused = nullptr;
    const int result = ibv_post_send(qp_, list.data(), &refused);
    if (result != 0) {
        CHECK(refused != nullptr);
        if (bad != nullptr) *bad = static_cast<std::size_t>(refused - list.data());
    }
    return result;
}

void Qp::post(const std::vector<Wr>& wrs) const { CHECK_OK(try_post(wrs)); }

int Qp::try_receive(std::uint64_t id, const std::vector<ibv_sge>& list) const {
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = const_cast<ibv_sge*>(list.data());
    wr.num_sge = static_cast<int>(list.size());
    ibv_recv_wr* bad = nullptr;
    const int result = ibv_post_recv(qp_, &wr, &bad);
    if (result != 0) CHECK(bad == &wr);
    return result;
}

void Qp::receive(std::uint64_t id, const std::vector<ibv_sge>& list) const { CHECK_OK(try_receive(id, list)); }

// --- shared receive queues and address handles ----------------------------------------------------------------------

Srq::Srq(ibv_pd* pd, std::uint32_t wrs, std::uint32_t sges, void* user) {
    ibv_srq_init_attr init{};
    init.srq_context = user;
    init.attr.max_wr = wrs;
    init.attr.max_sge = sges;
    srq_ = ibv_create_srq(pd, &init);
    if (srq_ == nullptr) fail(__FILE__, __LINE__, std::string("ibv_create_srq: ") + strerror(errno));
    granted_ = init.attr;
    CHECK(granted_.max_wr >= wrs);
    CHECK(granted_.max_sge >= sges);
}

Srq::~Srq() { CHECK_OK(ibv_destroy_srq(srq_)); }

int Srq::try_receive(std::uint64_t id, const std::vector<ibv_sge>& list) const {
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = const_cast<ibv_sge*>(list.data());
    wr.num_sge = static_cast<int>(list.size());
    ibv_recv_wr* bad = nullptr;
    const int result = ibv_post_srq_recv(srq_, &wr, &bad);
    if (result != 0) CHECK(bad == &wr);
    return result;
}

void Srq::receive(std::uint64_t id, ibv_sge to) const { CHECK_OK(try_receive(id, {to})); }

ibv_srq_attr Srq::query() const {
    ibv_srq_attr attr{};
    CHECK_OK(ibv_query_srq(srq_, &attr));
    return attr;
}

Ah::Ah(ibv_pd* pd, ibv_ah_attr attr) : ah_(ibv_create_ah(pd, &attr)) { CHECK(ah_ != nullptr); }
Ah::Ah(ibv_ah* ah) : ah_(ah) { CHECK(ah_ != nullptr); }
Ah::~Ah() { CHECK_OK(ibv_destroy_ah(ah_)); }

}  // namespace verbstest
