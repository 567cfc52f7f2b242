// SPDX-License-Identifier: BSD-3-Clause
#include "packet.h"

#include <cstring>

#include "async.h"
#include "diagnose.h"
#include "coop/base/tsan.h"
#include "ompi/mca/shim/pack.h"

namespace coop::pml {
namespace {

constexpr std::uint32_t kFlags = MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

void copy_into(mca_btl_base_descriptor_t& descriptor, const void* packet, std::size_t bytes) noexcept {
    std::memcpy(descriptor.des_segments->seg_addr.pval, packet, bytes);
}

// The completion of a packet that no request waits for.
void on_completion(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, mca_btl_base_descriptor_t* descriptor, int) {
    if (auto* const unsent = static_cast<Unsent*>(descriptor->des_cbdata)) unsent->end();
}

Sent refused(Counter why) noexcept {
    module.counters.count(why);
    return Sent::kRefused;
}

// Translates the result of btl_send. An error other than a shortage ends the job.
Sent judge(mca_bml_base_btl_t& btl, mca_btl_base_descriptor_t* descriptor, int rc) noexcept {
    if (rc >= 0) return Sent::kYes;
    mca_bml_base_free(&btl, descriptor);
    if (rc != OMPI_ERR_OUT_OF_RESOURCE && rc != OMPI_ERR_TEMP_OUT_OF_RESOURCE) transport_failed(btl, "send", rc);
    return refused(Counter::kRetrySendBusy);
}

// Returns the extension of the transport if the packet must interrupt its receiver and the transport can do that;
// otherwise null.
const BtlExtension* urgent_by(const mca_bml_base_btl_t& btl, wire::Kind kind) noexcept {
    return is_urgent(kind) ? extension_of(*btl.btl) : nullptr;
}

// Sends the packet with btl_sendi or send_urgent(), which copy it before they return. Returns false if the transport
// has no such function, or no room.
bool send_copied(mca_bml_base_btl_t& btl, const BtlExtension* urgent, const void* packet, std::size_t bytes,
                 mca_btl_base_tag_t tag) noexcept {
    static opal_convertor_t no_payload{};  // some transports look at its flags even so
    if (!btl.btl->btl_sendi || module.faults.hit(Fault::kSendi)) return false;
    if (urgent) return urgent->send_urgent(btl.btl, btl.btl_endpoint, packet, bytes, tag);
    return mca_bml_base_sendi(&btl, &no_payload, const_cast<void*>(packet), bytes, 0, MCA_BTL_NO_ORDER, kFlags, tag,
                              nullptr) == OMPI_SUCCESS;
}

}  // namespace

Sent send_control(mca_bml_base_btl_t& btl, wire::Kind kind, const void* header, std::size_t bytes,
                  const Peer* peer) noexcept {
    if (module.faults.hit(Fault::kBusy)) return refused(Counter::kRetrySendBusy);
    const BtlExtension* const urgent = urgent_by(btl, kind);
    unsigned char copy[kLongestControl];
    if (module.faults.armed()) [[unlikely]] {
        std::memcpy(copy, header, bytes);
        damage_if_told(kind, copy, bytes);
        header = copy;
    }
    if (send_copied(btl, urgent, header, bytes, tag_of(kind))) return Sent::kYes;

    mca_btl_base_descriptor_t* descriptor = nullptr;
    Unsent* const unsent = peer ? peer->begin_unsent() : nullptr;
    const std::uint32_t flags = kFlags | (unsent ? MCA_BTL_DES_SEND_ALWAYS_CALLBACK : 0);
    if (!module.faults.hit(Fault::kAlloc)) mca_bml_base_alloc(&btl, &descriptor, MCA_BTL_NO_ORDER, bytes, flags);
    if (!descriptor) {
        if (unsent) unsent->end();
        return refused(Counter::kRetryNoDescriptor);
    }
    copy_into(*descriptor, header, bytes);
    if (urgent) urgent->make_urgent(btl.btl, descriptor);
    descriptor->des_cbfunc = on_completion;
    descriptor->des_cbdata = unsent;
    const Sent sent = judge(btl, descriptor, mca_bml_base_send(&btl, descriptor, tag_of(kind)));
    if (sent == Sent::kRefused && unsent) unsent->end();
    return sent;
}

mca_btl_base_descriptor_t* begin_packet(mca_bml_base_btl_t& btl, opal_convertor_t& convertor, std::size_t room,
                                        std::size_t& payload, std::uint32_t flags) noexcept {
    mca_btl_base_descriptor_t* descriptor = nullptr;
    if (!module.faults.hit(Fault::kAlloc)) {
        flags |= MCA_BTL_DES_FLAGS_BTL_OWNERSHIP | MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
        if (payload > 0)
            mca_bml_base_prepare_src(&btl, &convertor, MCA_BTL_NO_ORDER, room, &payload, flags, &descriptor);
        else mca_bml_base_alloc(&btl, &descriptor, MCA_BTL_NO_ORDER, room, flags);
    }
    if (!descriptor) module.counters.count(Counter::kRetryNoDescriptor);
    return descriptor;
}

Sent finish_packet(mca_bml_base_btl_t& btl, mca_btl_base_descriptor_t* descriptor, wire::Kind kind,
                   mca_btl_base_completion_fn_t on_sent, void* context) noexcept {
    if (module.faults.hit(Fault::kBusy)) {
        mca_bml_base_free(&btl, descriptor);
        return refused(Counter::kRetrySendBusy);
    }
    descriptor->des_cbfunc = on_sent;
    descriptor->des_cbdata = context;
    if (const BtlExtension* urgent = urgent_by(btl, kind)) urgent->make_urgent(btl.btl, descriptor);
    tsan_release(descriptor);
    return judge(btl, descriptor, mca_bml_base_send(&btl, descriptor, tag_of(kind)));
}

bool send_packet(const Peer& peer, mca_bml_base_btl_t& btl, opal_convertor_t& convertor, wire::MatchWords header,
                 std::size_t bytes) noexcept {
    std::size_t none = 0;
    mca_btl_base_descriptor_t* descriptor = begin_packet(btl, convertor, sizeof header + bytes, none,
                                                         MCA_BTL_DES_FLAGS_PRIORITY);
    if (!descriptor) return false;
    damage_if_told(wire::Kind::kMatch, &header, sizeof header);
    copy_into(*descriptor, &header, sizeof header);
    auto* const payload = static_cast<std::byte*>(descriptor->des_segments->seg_addr.pval) + sizeof header;
    if (pack_next(convertor, payload, bytes) != bytes) {
        mca_bml_base_free(&btl, descriptor);
        return false;
    }
    Unsent* const unsent = peer.begin_unsent();
    if (finish_packet(btl, descriptor, wire::Kind::kMatch, on_completion, unsent) == Sent::kYes) return true;
    if (unsent) unsent->end();
    return false;
}

}  // namespace coop::pml
