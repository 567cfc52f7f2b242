// SPDX-License-Identifier: BSD-3-Clause
#include "upcalls.h"

#include "coop/extension/tags.h"
#include "entry.h"
#include "module.h"

namespace coop::ib {
namespace {

// The range of tags reserved for the PML, coll/rdmaag and osc/multirail.
bool expects_handler(const Header& header) noexcept {
    return (header.tag >= MCA_BTL_TAG_PML && header.tag < MCA_BTL_TAG_OSC_RDMA) || header.tag == kAllgatherTag ||
           header.tag == kOneSidedTag;
}
bool expects_handler(const Fragment& fragment) noexcept { return expects_handler(*fragment.header); }
bool expects_handler(const RdmaOp& op) noexcept { return op.marker != sched::Marker::kNone; }

// Whether the caller is the handler in its turn, and the upper layer does not expect it.
template <class Call>
bool has_to_wait(const Module& m, const Call& call) noexcept {
    return m.handler.is_handler() && !expects_handler(call);
}

void call(Module& m, RdmaOp& op) {
    if (op.callback != nullptr)
        op.callback(&m.base, op.endpoint, op.local_address, op.local_handle, op.context, op.data, OPAL_SUCCESS);
    Guard guard(m);
    if (expects_handler(op) && !op.has_riders) m.handler.under_way(-1);
    op.endpoint->operations.end(op.begun);
    m.ops.give_back(op);
}

void call(Module& m, Fragment& fragment) {
    const std::uint32_t flags = fragment.base.des_flags;
    if (fragment.base.des_cbfunc != nullptr)
        fragment.base.des_cbfunc(&m.base, fragment.work.endpoint, &fragment.base, OPAL_SUCCESS);
    if ((flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) != 0) give_back(&m.base, &fragment.base);
}

void call(Module& m, const Header& header, std::byte* payload) {
    mca_btl_base_segment_t segment{};
    segment.seg_addr.pval = payload;
    segment.seg_len = header.bytes;
    mca_btl_base_descriptor_t descriptor{};
    descriptor.des_segments = &segment;
    descriptor.des_segment_count = 1;
    const mca_btl_active_message_callback_t& trigger = mca_btl_base_active_message_trigger[header.tag];
    trigger.cbfunc(&m.base, header.tag, &descriptor, trigger.cbdata);
}

}  // namespace

void complete(Module& m, RdmaOp& op) { has_to_wait(m, op) ? m.kept.keep(m, op) : call(m, op); }

// Control messages have no callback, so they never have to wait.
void complete(Module& m, Fragment& fragment) {
    if (fragment.base.des_cbfunc != nullptr && has_to_wait(m, fragment)) return m.kept.keep(m, fragment);
    call(m, fragment);
}

void hand_up(Module& m, const Header& header, std::byte* payload) {
    has_to_wait(m, header) ? m.kept.keep(m, header, payload) : call(m, header, payload);
}

void KeptCalls::count(const Module& m) noexcept {
    any_ = true;
    m.handler.leaves_callback();
}

void KeptCalls::keep(const Module& m, RdmaOp& op) {
    ops_.push_back(&op);
    count(m);
}

void KeptCalls::keep(const Module& m, Fragment& fragment) {
    fragments_.push_back(&fragment.work);
    count(m);
}

void KeptCalls::keep(const Module& m, const Header& header, const std::byte* payload) {
    messages_.push_back({header, {payload, payload + header.bytes}});
    count(m);
}

// A callback may call progress(), and so this function, which then makes the remaining calls.
int KeptCalls::make(Module& m) {
    const auto next = [&](auto& list) {
        Guard guard(m);
        return list.pop_front();
    };
    int calls = 0;
    for (; RdmaOp* op = next(ops_); ++calls) call(m, *op);
    for (; Work* work = next(fragments_); ++calls) call(m, Fragment::of(*work));
    for (; !messages_.empty(); ++calls) {
        Message message = std::move(messages_.front());
        messages_.pop_front();
        call(m, message.header, message.payload.data());
    }
    Guard guard(m);
    any_ = !ops_.empty() || !fragments_.empty() || !messages_.empty();
    return calls;
}

void KeptCalls::forget() noexcept {
    while (ops_.pop_front() != nullptr) {
    }
    while (fragments_.pop_front() != nullptr) {
    }
    messages_.clear();
    any_ = false;
}

}  // namespace coop::ib
