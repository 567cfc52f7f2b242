// SPDX-License-Identifier: BSD-3-Clause
//
// Implements coop/extension/btl_extension.h, which documents each function.
//
// Threading: one thread calls publish and withdraw, with no lock held.
#pragma once

#include "coop/extension/btl_extension.h"
#include "module.h"

namespace coop::ib {

void publish_extension(const Module& m);  // call it when the module is ready
void withdraw_extension(const Module& m) noexcept;

// rdma.cc
int put_with(mca_btl_base_module_t*, Endpoint*, void* local_address, std::uint64_t remote_address,
             mca_btl_base_registration_handle_t* local, mca_btl_base_registration_handle_t* remote, std::size_t bytes,
             const RdmaOptions&, mca_btl_base_rdma_completion_fn_t, void* data);
int get_with(mca_btl_base_module_t*, Endpoint*, void* local_address, std::uint64_t remote_address,
             mca_btl_base_registration_handle_t* local, mca_btl_base_registration_handle_t* remote, std::size_t bytes,
             const RdmaOptions&, mca_btl_base_rdma_completion_fn_t, void* data);
int transfer_pieces(mca_btl_base_module_t*, Endpoint*, bool puts, const RdmaPiece* pieces, std::size_t count,
                    mca_btl_base_registration_handle_t* local, mca_btl_base_registration_handle_t* remote,
                    mca_btl_base_rdma_completion_fn_t, void* data);
bool needs_read_behind(mca_btl_base_module_t*, Endpoint*, std::uint64_t since);
bool read_behind(mca_btl_base_module_t*, Endpoint*, void* local_address, std::uint64_t remote_address,
                 mca_btl_base_registration_handle_t* local, mca_btl_base_registration_handle_t* remote,
                 std::uint64_t& since, mca_btl_base_rdma_completion_fn_t, void* data);

// send.cc
bool send_urgent(mca_btl_base_module_t*, Endpoint*, const void* packet, std::size_t bytes, mca_btl_base_tag_t);
void make_urgent(mca_btl_base_module_t*, mca_btl_base_descriptor_t*);
bool send_contiguous(mca_btl_base_module_t*, Endpoint*, const void* header, std::size_t header_bytes,
                     const void* payload, std::size_t payload_bytes, mca_btl_base_tag_t);
bool send_long(mca_btl_base_module_t*, Endpoint*, const void* header, std::size_t header_bytes, const void* payload,
               std::size_t payload_bytes, mca_btl_base_tag_t);

// loopback.cc
LoopbackWay loopback_way(mca_btl_base_module_t*, Endpoint*);
std::uint32_t hca_operations(mca_btl_base_module_t*, Endpoint*);
void share_hca_loads(mca_btl_base_module_t*, rndv::HcaLoads*);

// interrupts.cc
bool serve(mca_btl_base_module_t*, async::Handler*);

// write_order.cc
bool lands_in_order(mca_btl_base_module_t*, Endpoint*);

// signal.cc
bool signal(mca_btl_base_module_t*, Endpoint*, RailSignal&);
// atomics.cc
bool reaches_atomics(mca_btl_base_module_t*, Endpoint*);
bool atomics_wait(mca_btl_base_module_t*, Endpoint*);
bool atomics_keep_order(mca_btl_base_module_t*, Endpoint*);

}  // namespace coop::ib
