// SPDX-License-Identifier: BSD-3-Clause
//
// The queue pair of a rail as the core sees it (coop/rail/rail.h), over verbs.
//
// Threading: as verbs. Ownership: it owns the queue pair. Errors: an errno, or false.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <utility>

#include "coop/extension/btl_extension.h"
#include "coop/rail/rail.h"
#include "coop/rail/verbs/objects.h"

namespace coop::ib {

// The work requests of a list but the last one. There is one of these for all lists, because a list is posted before the
// next one is built.
struct RequestChain {
    ibv_send_wr wrs[kMostPieces - 1];
    ibv_sge sges[kMostPieces - 1];
};

// A work request with one scatter/gather entry, or the last one of a list. post() removes the entry if it is empty.
struct Request {
    Request() noexcept {
        wr.sg_list = &sge;
        wr.num_sge = 1;
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    ibv_send_wr wr{};
    ibv_sge sge{};
    ibv_send_wr* first = &wr;  // of a list: the first request, in a RequestChain
};

class QueuePair {
public:
    using Request = ib::Request;

    QueuePair() = default;
    explicit QueuePair(rail::Qp qp) noexcept : qp_(std::move(qp)), number_(qp_->qp_num) {}

    int post(Request& request, void* id, bool completes) noexcept {
        request.wr.wr_id = reinterpret_cast<std::uint64_t>(id);
        if (completes) request.wr.send_flags |= IBV_SEND_SIGNALED;
        if (request.sge.length == 0) request.wr.num_sge = 0;
        ibv_send_wr* bad;
        return ibv_post_send(qp_, request.first, &bad);
    }
    int post_empty_write(void* id) noexcept {
        Request request;
        request.wr.opcode = IBV_WR_RDMA_WRITE;
        return post(request, id, true);
    }
    int post_receive(ibv_recv_wr& request) noexcept {
        ibv_recv_wr* bad;
        return ibv_post_recv(qp_, &request, &bad);
    }
    bool stop() noexcept {
        if (qp_.get() == nullptr) return true;
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_ERR;
        return ibv_modify_qp(qp_, &attr, IBV_QP_STATE) == 0;
    }
    bool works() const noexcept {
        ibv_qp_attr attr{};
        ibv_qp_init_attr init{};
        return ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_RTS;
    }
    void destroy() noexcept {
        qp_.reset();
        number_ = 0;
    }
    std::uint32_t number() const noexcept { return number_; }  // 0, which no other one has, after destroy()
    ibv_qp* get() const noexcept { return qp_; }

private:
    rail::Qp qp_;               // null after destroy()
    std::uint32_t number_ = 0;  // a later queue pair may get the same one after destroy()
};
static_assert(rail::QueuePair<QueuePair>);

}  // namespace coop::ib
