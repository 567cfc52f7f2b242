// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/datagram_qp.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>

#include "coop/path/datagram.h"

namespace coop::rail {
namespace {

constexpr std::size_t kGrh = sizeof(ibv_grh);  // precedes each received datagram
constexpr std::size_t kPage = 4096;
constexpr std::size_t kMaxBytes = sizeof(path::DatagramHeader) + path::kMaxConnectionRails * sizeof(path::RailEntry);
constexpr std::size_t kSlotBytes = (kGrh + kMaxBytes + 63) / 64 * 64;
constexpr int kBatch = 16;  // completions per poll
// A datagram needs no answer, so its send completes at once, if the queue pair works.
constexpr auto kMute = std::chrono::milliseconds(500);

// Returns null if the device has no completion channels; then waiting for a datagram requires polling.
CompChannel make_nonblocking_channel(ibv_context* device) {
    auto channel = make_comp_channel(device);
    if (!channel) return {};
    const int fd = (*channel)->fd;
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0 ? std::move(*channel) : CompChannel();
}

}  // namespace

void DatagramQp::FreeMemory::operator()(std::byte* memory) const noexcept { std::free(memory); }

DatagramQp::DatagramQp(const Hca& hca, std::size_t port, const ConnectorOptions& options, ConnectorCounts& counts)
    : port_(hca.ports()[port]), now_(port_), options_(options), counts_(counts),
      handles_(hca.pd(), options.address_handles, options.address) {}

Wanted<std::unique_ptr<DatagramQp>> DatagramQp::make(const Hca& hca, std::size_t port, const ConnectorOptions& options,
                                                     ConnectorCounts& counts) {
    ConnectorOptions fitting = options;
    const std::uint32_t most = std::max(hca.caps().max_qp_wr, 1u);
    fitting.receives = std::clamp(options.receives, 1u, most);
    fitting.sends = std::clamp(options.sends, 1u, most);
    std::unique_ptr<DatagramQp> made(new DatagramQp(hca, port, fitting, counts));
    for (auto step : {&DatagramQp::make_memory, &DatagramQp::make_qp, &DatagramQp::to_rts})
        if (Status status = (made.get()->*step)(hca); !status) return status.trouble();
    return made;
}

Status DatagramQp::make_memory(const Hca& hca) {
    const std::size_t slots = options_.receives + options_.sends;
    bytes_ = (slots * kSlotBytes + kPage - 1) / kPage * kPage;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes_)));
    if (!memory_) return trouble(hca.context(), ENOMEM, "no memory for datagrams");
    std::memset(memory_.get(), 0, bytes_);
    auto mr = register_memory(hca.pd(), memory_.get(), bytes_, IBV_ACCESS_LOCAL_WRITE);
    if (!mr) return mr.trouble();
    mr_ = std::move(*mr);
    return Done{};
}

Status DatagramQp::make_qp(const Hca& hca) {
    channel_ = make_nonblocking_channel(hca.context());
    auto cq = make_cq(hca.context(), static_cast<int>(options_.receives + options_.sends), channel_);
    if (!cq) return cq.trouble();
    cq_ = std::move(*cq);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq_;
    wanted.cap.max_send_wr = options_.sends;
    wanted.cap.max_recv_wr = options_.receives;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    wanted.qp_type = IBV_QPT_UD;
    wanted.sq_sig_all = 1;
    qp_ = Qp(ibv_create_qp(hca.pd(), &wanted));
    if (!qp_) return trouble(hca.context(), errno, "cannot create a queue pair for datagrams");
    for (std::uint32_t i = 0; i < options_.sends; ++i) free_sends_.push_back(options_.receives + i);
    used_by_.resize(options_.sends);
    return Done{};
}

Status DatagramQp::to_rts(const Hca& hca) {
    if (const int error = bring_up(); error != 0)
        return trouble(hca.context(), error, "cannot bring up a queue pair for datagrams");
    return Done{};
}

int DatagramQp::bring_up() noexcept {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = port_.port;
    attr.pkey_index = port_.pkey_index;
    attr.qkey = options_.qkey;
    int error = ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    for (std::uint32_t slot = 0; slot < options_.receives && error == 0; ++slot) error = post_receive(slot);
    attr.qp_state = IBV_QPS_RTR;
    if (error == 0) error = ibv_modify_qp(qp_, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0;
    if (error == 0) error = ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return error;
}

std::byte* DatagramQp::slot_address(std::uint32_t slot) const noexcept { return memory_.get() + slot * kSlotBytes; }

int DatagramQp::post_receive(std::uint32_t slot) noexcept {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(slot_address(slot)), static_cast<std::uint32_t>(kSlotBytes),
                mr_->lkey};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = slot;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    return ibv_post_recv(qp_, &wr, &bad);
}

Status DatagramQp::send(const path::PortRecord& remote, std::span<const std::byte> datagram) {
    const std::size_t most = std::min<std::size_t>(kMaxBytes, path::mtu_bytes(std::min(port_.mtu, remote.mtu)));
    if (datagram.size() > most)
        return trouble(qp_->context, EMSGSIZE, "a datagram of " + std::to_string(datagram.size()) + " bytes");
    AddressHandles::Handle* handle = free_sends_.empty() ? nullptr : handles_.find_or_make(now_, remote);
    if (handle == nullptr) {
        ++counts_.dropped_here;
        return trouble(qp_->context, EAGAIN, "no buffer or address handle for a datagram");
    }
    const std::uint32_t slot = free_sends_.back();
    std::memcpy(slot_address(slot), datagram.data(), datagram.size());
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(slot_address(slot)), static_cast<std::uint32_t>(datagram.size()),
                mr_->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = slot;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SOLICITED;  // wakes a sleeping receiver, whereas completions of its own sends do not
    wr.wr.ud.ah = handle->ah;
    wr.wr.ud.remote_qpn = remote.ud_qpn;
    wr.wr.ud.remote_qkey = remote.ud_qkey;
    if (const int error = ibv_post_send(qp_, &wr, &bad); error != 0)
        return trouble(qp_->context, error, "cannot send a datagram");
    if (is_idle()) ended_ = std::chrono::steady_clock::now();
    free_sends_.pop_back();
    used_by_[slot - options_.receives] = handle;
    ++handle->in_flight;
    ++counts_.sent;
    return Done{};
}

int DatagramQp::poll(const Connector::Arrival& arrival) {
    ibv_wc wcs[kBatch];
    int arrived = 0, n = kBatch;
    // Drain the queue: arrivals may follow any number of sends, and an armed queue reports only later
    // completions.
    while (n == kBatch) {
        n = ibv_poll_cq(cq_, kBatch, wcs);
        for (int i = 0; i < n; ++i) {
            if (wcs[i].wr_id >= options_.receives) {
                on_sent(wcs[i]);
            } else if (wcs[i].status == IBV_WC_SUCCESS) {
                on_arrival(wcs[i], arrival);
                ++arrived;
            } else {
                in_error_ = true;
            }
        }
    }
    if (in_error_ && is_idle()) begin_again();
    if (!is_idle()) stop_if_mute();
    return arrived;
}

void DatagramQp::acknowledge() noexcept {
    ibv_cq* cq;
    void* user;
    while (ibv_get_cq_event(channel_, &cq, &user) == 0) ibv_ack_cq_events(cq, 1);
}

void DatagramQp::arm() noexcept {
    if (channel_) ibv_req_notify_cq(cq_, 1);
}

void DatagramQp::on_arrival(const ibv_wc& wc, const Connector::Arrival& arrival) {
    const auto slot = static_cast<std::uint32_t>(wc.wr_id);
    const std::size_t bytes = std::clamp<std::size_t>(wc.byte_len, kGrh, kSlotBytes) - kGrh;
    ++counts_.received;
    arrival({slot_address(slot) + kGrh, bytes});
    (void)post_receive(slot);
}

void DatagramQp::on_sent(const ibv_wc& wc) {
    const auto slot = static_cast<std::uint32_t>(wc.wr_id);
    free_sends_.push_back(slot);
    --used_by_[slot - options_.receives]->in_flight;
    ended_ = std::chrono::steady_clock::now();
    if (wc.status == IBV_WC_SUCCESS) return;
    ++counts_.failed;
    recover();
}

// In the error state all sends and receives come back, and then the queue pair begins again.
void DatagramQp::stop_if_mute() noexcept {
    const auto now = std::chrono::steady_clock::now();
    if (now - ended_ < kMute) return;
    ended_ = now;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    (void)ibv_modify_qp(qp_, &attr, IBV_QP_STATE);
}

// Completions that are still to come do not matter: all slots are posted again, and flushed ones are ignored.
void DatagramQp::begin_again() noexcept {
    const auto now = std::chrono::steady_clock::now();
    if (now < again_) return;
    again_ = now + std::chrono::milliseconds(50);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    if (ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init) != 0) return;
    in_error_ = attr.qp_state != IBV_QPS_RTS;
    if (!in_error_) return;
    attr = {};
    attr.qp_state = IBV_QPS_RESET;
    if (ibv_modify_qp(qp_, &attr, IBV_QP_STATE) != 0 || bring_up() != 0) return;
    in_error_ = false;
    ++counts_.recovered;
}

void DatagramQp::recover() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    if (ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init) != 0 || attr.qp_state != IBV_QPS_SQE) return;
    attr = {};
    attr.cur_qp_state = IBV_QPS_SQE;
    attr.qp_state = IBV_QPS_RTS;
    if (ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == 0) ++counts_.recovered;
}

}  // namespace coop::rail
