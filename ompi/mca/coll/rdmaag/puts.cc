// SPDX-License-Identifier: BSD-3-Clause
//
// The long steps of a group: registered memory, puts and their notices.
#include <algorithm>
#include <cstring>

#include "diagnose.h"
#include "group.h"
#include "running.h"

namespace coop::ag {
namespace {

void set_parts(void* packet, std::uint32_t parts) noexcept {
    auto& notice = *static_cast<coll::Packet*>(packet);
    notice.parts = parts;
    coll::seal(notice);
}

}  // namespace

// The whole buffer is registered once per transport and call of the group, for all partners (section 3.4). Several
// rings are several calls.
const Group::Registered& Group::registered(Running& call, mca_bml_base_btl_t& btl) noexcept {
    for (const Registered& each : call.registered)
        if (each.btl == btl.btl) return each;
    Registered fresh{btl.btl, nullptr, true};
    if (btl.btl->btl_register_mem) {
        if (!process.faults.hit(Fault::kRegister)) {
            fresh.handle = btl.btl->btl_register_mem(btl.btl, MCA_BTL_ENDPOINT_ANY, call.job->memory,
                                                     call.job->blocks.bytes(), kAccess);
            process.count(Count::kRegistrations);
        }
        fresh.usable = fresh.handle != nullptr;
        if (!fresh.usable) process.count(Count::kRefusedRegistrations);
    }
    call.registered.push_back(fresh);
    return call.registered.back();
}

void Group::release_memory(Running& call) noexcept {
    for (const Registered& each : call.registered)
        if (each.handle) each.btl->btl_deregister_mem(each.btl, each.handle);
    call.registered.clear();
}

std::uint64_t Group::send_long(Running& call, std::uint32_t to, std::uint32_t step, std::uint64_t at,
                               const coll::Piece& piece, const coll::Announcement& there) noexcept {
    mca_bml_base_btl_t* const btl = there.writable ? mca_bml_base_btl_array_find(
                                                         &members_.endpoint(to).btl_rdma,
                                                         static_cast<mca_btl_base_module_t*>(there.transport))
                                                   : nullptr;
    if (btl && has_to_wait(*btl->btl)) return 0;
    const bool puts = btl && may_put(members_.endpoint(to), *btl) &&
                      there.handle_bytes == btl->btl->btl_registration_handle_size;
    if (!puts || process.faults.hit(Fault::kPut)) return send_data(call, to, step, at, piece);
    const Registered& memory = registered(call, *btl);
    const std::uint64_t limit = btl->btl->btl_put_limit, bytes = limit ? std::min(piece.bytes, limit) : piece.bytes;
    std::byte* const local = call.job->memory + piece.offset;
    const std::uint64_t remote = there.address + piece.offset;
    if (!memory.usable || !is_aligned(*btl->btl, reinterpret_cast<std::uintptr_t>(local), remote, bytes))
        return send_data(call, to, step, at, piece);
    if (process.faults.hit(Fault::kPutBusy)) return 0;

    Put& put = call.puts.emplace_back(call, *btl, to, step, at, coll::Piece{piece.offset, bytes});
    // Open MPI takes the handle without const.
    auto* handle = reinterpret_cast<mca_btl_base_registration_handle_t*>(
        const_cast<unsigned char*>(there.handle.data()));
    const int rc = start(put, *btl, bytes == piece.bytes, local, remote, memory.handle,
                         there.handle_bytes ? handle : nullptr);
    if (rc == OMPI_SUCCESS) {
        process.count(Count::kPuts);
        return bytes;
    }
    call.puts.pop_back();
    return is_shortage(rc) ? 0 : send_data(call, to, step, at, piece);
}

// A transport with an extension sends the notice itself, as a rider of each part of the put: then the receiver goes on
// although this process has not noticed the end of the put. That is possible for a whole piece only, because the
// receiver counts the parts by piece.
int Group::start(Put& put, mca_bml_base_btl_t& btl, bool to_the_end, void* local, std::uint64_t remote,
                 mca_btl_base_registration_handle_t* local_handle,
                 mca_btl_base_registration_handle_t* remote_handle) noexcept {
    const BtlExtension* const extension = extension_of(*btl.btl);
    if (!extension)
        return mca_bml_base_put(&btl, local, remote, local_handle, remote_handle, put.piece.bytes, 0, MCA_BTL_NO_ORDER,
                                on_put_done, &put);
    // The second piece of a step is the beginning of the memory.
    const bool first = put.at == 0, second = put.at > 0 && put.piece.offset == 0;
    coll::Packet notice = packet_of(put.call, coll::Kind::kLanded, put.step);
    notice.bytes = put.piece.bytes;
    notice.parts = 1;
    notice.at = second ? 1 : 0;
    coll::seal(notice);
    Rider rider{};
    static_assert(sizeof notice <= sizeof rider.packet);
    std::memcpy(rider.packet, &notice, sizeof notice);
    rider.bytes = sizeof notice;
    rider.tag = kTag;
    rider.set_parts = set_parts;
    RdmaOptions options;
    options.marker = sched::Marker::kCollective;
    options.rider = to_the_end && (first || second) ? &rider : nullptr;
    options.lane = put.call.job->lane;
    options.whole = options.lane != sched::kNoLane;
    const int rc = extension->put(btl.btl, btl.btl_endpoint, local, remote, local_handle, remote_handle,
                                  put.piece.bytes, options, on_put_done, &put);
    put.tells = rc == OMPI_SUCCESS && options.rider && rider.taken;
    return rc;
}

void Group::on_put_done(mca_btl_base_module_t*, mca_btl_base_endpoint_t*, void*, mca_btl_base_registration_handle_t*,
                        void*, void* put, int status) {
    const async::Polling turn(handler().get());
    Put& done = *static_cast<Put*>(put);
    const Following following(*done.call.group);
    done.state.store(status == OMPI_SUCCESS ? Put::kDone : Put::kFailed, std::memory_order_release);
}

// Sends the notice of a complete put, or the data of a failed one. Returns true if nothing is left to do.
bool Group::settle(Put& put) noexcept {
    switch (put.state.load(std::memory_order_acquire)) {
    case Put::kDone: return put.tells || send_notice(put.call, put.btl, put.step, put.piece.bytes);
    case Put::kFailed:
        // Its notice may have arrived, so the data cannot be sent again.
        if (put.tells) transport_failed(*put.btl.btl, "put", OMPI_ERROR);
        while (put.piece.bytes > 0) {
            const std::uint64_t taken = send_data(put.call, put.to, put.step, put.at, put.piece);
            if (taken == 0) return false;
            put.at += taken;
            put.piece.offset += taken;
            put.piece.bytes -= taken;
        }
        return true;
    default: return false;
    }
}

bool Group::settle(Running& call) noexcept {
    call.puts.remove_if([this](Put& put) { return settle(put); });
    return call.puts.empty() && call.under_way.load(std::memory_order_acquire) == 0;
}

}  // namespace coop::ag
