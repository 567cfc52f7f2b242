// SPDX-License-Identifier: BSD-3-Clause
//
// The table of functions through which our other components use this transport.
#include "extension.h"

#include "coop/extension/registry.h"
#include "entry.h"

namespace coop::ib {
namespace {

std::size_t awaited_packet_max(const mca_btl_base_module_t* btl) {
    return reinterpret_cast<const Module*>(btl)->awaited_packet_max;
}

std::size_t long_packet_max(const mca_btl_base_module_t* btl) {
    return reinterpret_cast<const Module*>(btl)->long_packet_max;
}

constexpr BtlExtension kTable{
    .put = put_with,
    .get = get_with,
    .send_urgent = send_urgent,
    .make_urgent = make_urgent,
    .awaited_packet_max = awaited_packet_max,
    .loopback_way = loopback_way,
    .hca_operations = hca_operations,
    .share_hca_loads = share_hca_loads,
    .serve = serve,
    .lands_in_order = lands_in_order,
    .transfer_pieces = transfer_pieces,
    .signal = signal,
    .reaches_atomics = reaches_atomics,
    .atomics_wait = atomics_wait,
    .atomics_keep_order = atomics_keep_order,
    .needs_read_behind = needs_read_behind,
    .read_behind = read_behind,
    .send_contiguous = send_contiguous,
    .long_packet_max = long_packet_max,
    .send_long = send_long,
};

}  // namespace

void publish_extension(const Module& m) { coop::publish_extension(&m.base, kTable.head); }

void withdraw_extension(const Module& m) noexcept { coop::withdraw_extension(&m.base); }

}  // namespace coop::ib
