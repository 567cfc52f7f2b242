// SPDX-License-Identifier: BSD-3-Clause
//
// Allocates, fills, sends and frees fragments.
#include <algorithm>
#include <cstring>
#include <new>

#include "connect.h"
#include "entry.h"
#include "extension.h"
#include "failover.h"
#include "message.h"
#include "module.h"

namespace coop::ib {
namespace {

constexpr std::uint32_t kMostImmediate = 512;

void describe(Fragment& fragment, std::size_t bytes, std::uint32_t flags) {
    fragment.segments[0].seg_addr.pval = fragment.data();
    fragment.segments[0].seg_len = bytes;
    fragment.base.des_segments = fragment.segments;
    fragment.base.des_segment_count = 1;
    fragment.base.des_flags = flags;
    fragment.base.des_cbfunc = nullptr;
    fragment.base.order = MCA_BTL_NO_ORDER;
}

Fragment* take_fragment(Module& m, std::size_t bytes, std::uint32_t flags) {
    if (bytes > m.base.btl_max_send_size) return nullptr;
    Fragment* fragment;
    {
        Guard guard(m);
        fragment = m.fragments.take();
    }
    if (fragment != nullptr) describe(*fragment, bytes, flags);
    return fragment;
}

// A message that the upper layer sends without a descriptor.
struct Immediate {
    opal_convertor_t* convertor;  // null: `payload` is contiguous
    const void* payload;
    const void* header;  // the upper layer's
    std::size_t header_bytes, payload_bytes;
    mca_btl_base_tag_t tag;
    bool urgent;

    std::size_t bytes() const { return header_bytes + payload_bytes; }
    Header own_header() const { return header_of(Kind::kMessage, bytes(), tag); }

    // Returns false if the convertor does not provide the whole payload.
    bool pack(std::byte* to) const {
        std::memcpy(to, header, header_bytes);
        if (payload_bytes == 0) return true;
        if (convertor == nullptr) {
            std::memcpy(to + header_bytes, payload, payload_bytes);
            return true;
        }
        iovec where{to + header_bytes, payload_bytes};
        std::uint32_t count = 1;
        std::size_t packed = payload_bytes;
        return opal_convertor_pack(convertor, &where, &count, &packed) >= 0 && packed == payload_bytes;
    }
    // Sets the convertor back to the start, because the upper layer will pack again.
    void rewind() const {
        std::size_t start = 0;
        if (payload_bytes != 0 && convertor != nullptr) opal_convertor_set_position(convertor, &start);
    }
};

bool send_from_stack(Module& m, Endpoint& endpoint, const Immediate& message) {
    alignas(std::uint64_t) std::byte buffer[sched::written(kMostImmediate)];
    auto& header = *new (buffer) Header(message.own_header());
    if (message.pack(buffer + sizeof(Header))) {
        Guard guard(m);
        if (send_inline(endpoint, header, message.urgent)) return true;
    }
    message.rewind();
    return false;
}

void post_message(Endpoint& endpoint, Fragment& fragment) {
    fragment.work.kind = WorkKind::kSend;
    fragment.work.endpoint = &endpoint;
    post_fragment(endpoint, fragment);
}

bool send_copy(Module& m, Endpoint& endpoint, const Immediate& message) {
    Fragment* fragment = take_fragment(m, message.bytes(), MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    if (fragment == nullptr) return false;
    fragment->urgent = message.urgent;
    *fragment->header = message.own_header();
    const bool whole = message.pack(fragment->data());
    Guard guard(m);
    if (whole) {
        post_message(endpoint, *fragment);
        return true;
    }
    m.fragments.give_back(*fragment);
    message.rewind();
    return false;
}

// Whether the peer's ring has room now for this message, which is too long for a receive buffer. `length`: with our header.
// Never with failover, which repeats messages by ordinary sends.
bool takes_long(const Channel& channel, std::uint32_t length) {
    return !channel.repairs && channel.may_send() && ring_has_room(channel, length);
}

// Sends a short message from the stack, a longer one from a fragment. The upper layer can reuse its buffers at once.
bool send_without_descriptor(Module& m, Endpoint& endpoint, const Immediate& message) {
    if (!endpoint.connected.load(std::memory_order_acquire)) return false;
    const bool is_short = sizeof(Header) + message.bytes() <= std::min<std::size_t>(kMostImmediate, m.immediate_bytes);
    return is_short ? send_from_stack(m, endpoint, message) : send_copy(m, endpoint, message);
}

}  // namespace

mca_btl_base_descriptor_t* alloc(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*, std::uint8_t, std::size_t bytes,
                                 std::uint32_t flags) {
    Fragment* fragment = take_fragment(Module::of(btl), bytes, flags);
    return fragment ? &fragment->base : nullptr;
}

int give_back(mca_btl_base_module_t* btl, mca_btl_base_descriptor_t* descriptor) {
    Module& m = Module::of(btl);
    Guard guard(m);
    m.fragments.give_back(Fragment::of(descriptor));
    return OPAL_SUCCESS;
}

mca_btl_base_descriptor_t* prepare_src(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t*,
                                       opal_convertor_t* convertor, std::uint8_t, std::size_t reserve,
                                       std::size_t* size, std::uint32_t flags) {
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

int send_immediately(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, opal_convertor_t* convertor,
                     void* header, std::size_t header_bytes, std::size_t payload_bytes, std::uint8_t order,
                     std::uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t** descriptor) {
    const Immediate message{convertor, nullptr, header, header_bytes, payload_bytes, tag, false};
    if (send_without_descriptor(Module::of(btl), *endpoint, message)) return OPAL_SUCCESS;
    if (descriptor != nullptr) *descriptor = alloc(btl, endpoint, order, message.bytes(), flags);
    return OPAL_ERR_RESOURCE_BUSY;
}

bool send_urgent(mca_btl_base_module_t* btl, Endpoint* endpoint, const void* packet, std::size_t bytes,
                 mca_btl_base_tag_t tag) {
    return send_without_descriptor(Module::of(btl), *endpoint, {nullptr, nullptr, packet, bytes, 0, tag, true});
}

bool send_contiguous(mca_btl_base_module_t* btl, Endpoint* endpoint, const void* header, std::size_t header_bytes,
                     const void* payload, std::size_t payload_bytes, mca_btl_base_tag_t tag) {
    return send_without_descriptor(Module::of(btl), *endpoint,
                                   {nullptr, payload, header, header_bytes, payload_bytes, tag, false});
}

bool send_long(mca_btl_base_module_t* btl, Endpoint* endpoint, const void* header, std::size_t header_bytes,
               const void* payload, std::size_t payload_bytes, mca_btl_base_tag_t tag) {
    Module& m = Module::of(btl);
    if (!endpoint->connected.load(std::memory_order_acquire)) return false;
    const Immediate message{nullptr, payload, header, header_bytes, payload_bytes, tag, false};
    const auto length = static_cast<std::uint32_t>(sizeof(Header) + message.bytes());
    Fragment* fragment;
    {
        Guard guard(m);
        fragment = takes_long(*endpoint->channel, length) ? m.fragments.take_long() : nullptr;
    }
    if (fragment == nullptr) return false;
    describe(*fragment, message.bytes(), MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    *fragment->header = message.own_header();
    message.pack(fragment->data());
    Guard guard(m);
    const bool has_room = takes_long(*endpoint->channel, length);  // another thread may have taken it meanwhile
    if (has_room) post_message(*endpoint, *fragment);
    else m.fragments.give_back(*fragment);
    return has_room;
}

void make_urgent(mca_btl_base_module_t*, mca_btl_base_descriptor_t* descriptor) {
    Fragment::of(descriptor).urgent = true;
}

int send(mca_btl_base_module_t* btl, mca_btl_base_endpoint_t* endpoint, mca_btl_base_descriptor_t* descriptor,
         mca_btl_base_tag_t tag) {
    Module& m = Module::of(btl);
    Fragment& fragment = Fragment::of(descriptor);
    *fragment.header = header_of(Kind::kMessage, fragment.segments[0].seg_len, tag);
    Guard guard(m);
    if (fragment.held) [[unlikely]]
        forget_held(m, fragment);
    fragment.sealed = fragment.landed = false;
    fragment.work.kind = WorkKind::kSend;
    fragment.work.endpoint = endpoint;
    if (endpoint->connected.load(std::memory_order_acquire)) {
        post_fragment(*endpoint, fragment);
    } else {
        endpoint->waiting.push_back(&fragment.work);
        connect(m, *endpoint);
    }
    return OPAL_SUCCESS;
}

}  // namespace coop::ib
