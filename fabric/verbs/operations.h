// SPDX-License-Identifier: BSD-3-Clause
//
// The functions in an open device's table. Each is defined in the file of its
// object.
#pragma once

#include "fabric/verbs/exports.h"

namespace coop::fabric {

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                    std::size_t bytes);
int query_port(ibv_context* context, std::uint8_t number, ibv_port_attr* attr, std::size_t bytes);
int query_rt_values(ibv_context* context, ibv_values_ex* values);

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr);
int poll_cq(ibv_cq* cq, int entries, ibv_wc* completions);
int req_notify_cq(ibv_cq* cq, int solicited_only);

int get_srq_num(ibv_srq* srq, std::uint32_t* number);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad);

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);
int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad);

}  // namespace coop::fabric
