// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of the BTL interface, which Open MPI calls.
#pragma once

#include "work.h"

namespace coop::ib {

int add_procs(mca_btl_base_module_t*, std::size_t, opal_proc_t**, mca_btl_base_endpoint_t**, opal_bitmap_t*);
int del_procs(mca_btl_base_module_t*, std::size_t, opal_proc_t**, mca_btl_base_endpoint_t**);
int finalize(mca_btl_base_module_t*);
int register_error(mca_btl_base_module_t*, mca_btl_base_module_error_cb_fn_t);

mca_btl_base_descriptor_t* alloc(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, std::uint8_t order,
                                 std::size_t bytes, std::uint32_t flags);
int give_back(mca_btl_base_module_t*, mca_btl_base_descriptor_t*);
mca_btl_base_descriptor_t* prepare_src(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, opal_convertor_t*,
                                       std::uint8_t order, std::size_t reserve, std::size_t* size, std::uint32_t flags);
int send_immediately(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, opal_convertor_t*, void* header,
                     std::size_t header_bytes, std::size_t payload_bytes, std::uint8_t order, std::uint32_t flags,
                     mca_btl_base_tag_t, mca_btl_base_descriptor_t**);
int send(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t*, mca_btl_base_tag_t);

using Handle = mca_btl_base_registration_handle_t;
int put(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void* local_address, std::uint64_t remote_address,
        Handle* local, Handle* remote, std::size_t bytes, int flags, int order, mca_btl_base_rdma_completion_fn_t,
        void* context, void* data);
int get(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void* local_address, std::uint64_t remote_address,
        Handle* local, Handle* remote, std::size_t bytes, int flags, int order, mca_btl_base_rdma_completion_fn_t,
        void* context, void* data);
int fetch_and(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void* local_address, std::uint64_t remote_address,
              Handle* local, Handle* remote, mca_btl_base_atomic_op_t, std::uint64_t operand, int flags, int order,
              mca_btl_base_rdma_completion_fn_t, void* context, void* data);
int compare_and_swap(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void* local_address,
                     std::uint64_t remote_address, Handle* local, Handle* remote, std::uint64_t compare,
                     std::uint64_t value, int flags, int order, mca_btl_base_rdma_completion_fn_t, void* context,
                     void* data);
int flush(mca_btl_base_module_t*, mca_btl_base_endpoint_t*);

Handle* register_memory(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void* base, std::size_t bytes,
                        std::uint32_t flags);
int deregister_memory(mca_btl_base_module_t*, Handle*);

}  // namespace coop::ib
