// SPDX-License-Identifier: BSD-3-Clause
//
// Fragments: taken, filled, sent, given back.
#include <algorithm>
#include <cstring>

#include "coop/async/urgent.h"
#include "entry.h"

namespace coop::ib {
namespace {

constexpr std::size_t kMostImmediate = 512;

bool is_connected(const Endpoint& endpoint) { return endpoint.channel && endpoint.channel->state == ChannelState::kConnected; }

Fragment* take_fragment(Module& m, std::size_t bytes, std::uint32_t flags) {
    if (bytes > m.base.btl_max_send_size) return nullptr;
    Fragment* fragment;
    {
        Guard guard(m);
        fragment = m.fragments.take();
    }
    if (fragment == nullptr) return nullptr;
    fragment->segments[0].seg_addr.pval = fragment->data();
    fragment->segments[0].seg_len = bytes;
    fragment->base.des_segments = fragment->segments;
    fragment->base.des_segment_count = 1;
    fragment->base.des_flags = flags;
    fragment->base.des_cbfunc = nullptr;
    fragment->base.order = MCA_BTL_NO_ORDER;
    return fragment;
}

}  // namespace

mca_btl_base_descriptor_t* alloc(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, std::uint8_t, std::size_t bytes, std::uint32_t flags) {
    Fragment* fragment = take_fragment(Module::of(btl), bytes, flags);
    return fragment ? &fragment->base : nullptr;
}

int give_back(mca_btl_base_module_t* btl, mca_btl_base_descriptor_t* descriptor) {
    Module& m = Module::of(btl);
    Guard guard(m);
    m.fragments.give_back(Fragment::of(descriptor));
    return OPAL_SUCCESS;
}

mca_btl_base_descriptor_t* prepare_src(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, opal_convertor_t* convertor, std::uint8_t,
                                       std::size_t reserve, std::size_t* size, std::uint32_t flags) {
    Module& m = Module::of(btl);
    if (reserve > m.base.btl_max_send_size) return nullptr;
    const std::size_t wanted = std::min(*size, m.base.btl_max_send_size - reserve);
    Fragment* fragment = take_fragment(m, reserve + wanted, flags);
    if (fragment == nullptr) return nullptr;
    iovec where{fragment->data() + reserve, wanted};
    std::uint32_t count = 1;
    std::size_t packed = wanted;
    if (wanted > 0 && opal_convertor_pack(convertor, &where, &count, &packed) < 0) {
        give_back(btl, &fragment->base);
        return nullptr;
    }
    fragment->segments[0].seg_len = reserve + packed;
    *size = packed;
    return &fragment->base;
}

// What is short goes from the stack: no fragment, no copy but into the HCA, and the upper layer is done with it at once.
int send_immediately(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, opal_convertor_t* convertor, void* header, std::size_t header_bytes,
                     std::size_t payload_bytes, std::uint8_t order, std::uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t** descriptor) {
    Module& m = Module::of(btl);
    const std::size_t bytes = header_bytes + payload_bytes;
    alignas(Header) std::byte buffer[kMostImmediate];
    if (sizeof(Header) + bytes <= std::min(sizeof buffer, m.immediate_bytes) && is_connected(*endpoint)) {
        auto& own = *reinterpret_cast<Header*>(buffer);
        own = {0, static_cast<std::uint32_t>(bytes), tag, static_cast<std::uint8_t>(Kind::kMessage), 0, 0};
        std::memcpy(buffer + sizeof(Header), header, header_bytes);
        std::size_t packed = payload_bytes;
        iovec where{buffer + sizeof(Header) + header_bytes, payload_bytes};
        std::uint32_t count = 1;
        const bool whole = payload_bytes == 0 || (opal_convertor_pack(convertor, &where, &count, &packed) >= 0 && packed == payload_bytes);
        Guard guard(m);
        if (whole && post_inline(m, *endpoint, own, (flags & async::kUrgentFlag) != 0)) return OPAL_SUCCESS;
        // Not now: the upper layer packs again.
        if (payload_bytes != 0) {
            std::size_t start = 0;
            opal_convertor_set_position(convertor, &start);
        }
    }
    if (descriptor != nullptr) *descriptor = alloc(btl, endpoint, order, bytes, flags);
    return OPAL_ERR_RESOURCE_BUSY;
}

int send(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, mca_btl_base_descriptor_t* descriptor, mca_btl_base_tag_t tag) {
    Module& m = Module::of(btl);
    Fragment& fragment = Fragment::of(descriptor);
    fragment.header->tag = tag;
    fragment.header->kind = static_cast<std::uint8_t>(Kind::kMessage);
    fragment.header->bytes = static_cast<std::uint32_t>(fragment.segments[0].seg_len);
    fragment.header->reserved = 0;
    fragment.work.kind = WorkKind::kSend;
    fragment.work.endpoint = endpoint;
    Guard guard(m);
    if (is_connected(*endpoint)) {
        post_fragment(m, *endpoint, fragment);
    } else {
        endpoint->waiting.push_back(&fragment.work);
        connect(m, *endpoint);
    }
    return OPAL_SUCCESS;
}

}  // namespace coop::ib
