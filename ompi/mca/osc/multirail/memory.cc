// SPDX-License-Identifier: BSD-3-Clause
#include "memory.h"

#include <cstdlib>

#include "process.h"

namespace coop::osc {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMost = std::uint64_t{1} << 46;  // less than the address space; keeps sums from overflowing

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept {
    return (bytes + unit - 1) / unit * unit;
}

}  // namespace

SegmentPlan::SegmentPlan(const std::vector<Share>& shares, std::uint32_t leader, bool contiguous) {
    for (std::uint32_t rank = leader; rank < shares.size(); ++rank)
        if (shares[rank].leader == leader) members_.push_back(rank);
    bytes_ = round_up(sync_offset() + rma::NodeSync::bytes(static_cast<std::uint32_t>(members_.size())), kPage);
    for (const std::uint32_t rank : members_) {
        offsets_.push_back(bytes_);
        overflows_ = overflows_ || shares[rank].bytes > kMost || bytes_ > kMost;
        if (overflows_) return;
        // Parts of different processes share no page, so that each lies near the process that writes it first.
        bytes_ += contiguous ? shares[rank].bytes : round_up(shares[rank].bytes, kPage);
    }
}

bool WindowMemory::allocate(std::uint64_t bytes) noexcept {
    void* memory = nullptr;
    if (bytes > kMost || posix_memalign(&memory, bytes >= kPage ? kPage : 64, bytes > 0 ? bytes : 1) != 0) return false;
    own.reset(static_cast<std::byte*>(memory));
    return true;
}

void WindowMemory::register_with(mca_btl_base_module_t& btl, void* base, std::uint64_t bytes) noexcept {
    if (bytes == 0) return;
    if (!process.faults.hit(Fault::kRegister))
        handle = btl.btl_register_mem(&btl, MCA_BTL_ENDPOINT_ANY, base, bytes, MCA_BTL_REG_FLAG_ACCESS_ANY);
    if (handle) rdma = &btl;
    else process.count(Count::kRefusedRegistrations);
}

bool WindowMemory::make_control(mca_btl_base_module_t& btl) {
    control = std::make_unique<ControlWords>();
    if (!process.faults.hit(Fault::kRegister))
        control_handle = btl.btl_register_mem(&btl, MCA_BTL_ENDPOINT_ANY, control.get(), sizeof *control,
                                              MCA_BTL_REG_FLAG_ACCESS_ANY);
    if (control_handle) rdma = &btl;
    else process.count(Count::kRefusedRegistrations);
    return control_handle != nullptr;
}

void WindowMemory::deregister() noexcept {
    if (handle) rdma->btl_deregister_mem(rdma, handle);
    if (control_handle) rdma->btl_deregister_mem(rdma, control_handle);
    handle = control_handle = nullptr;
}

}  // namespace coop::osc
