// SPDX-License-Identifier: BSD-3-Clause
//
// Peers: what they have told of their ports, and whether a path leads there.
#include <cstdlib>
#include <cstring>

#include "component.h"
#include "entry.h"

namespace coop::ib {
namespace {

struct Card {
    std::uint16_t wire_version;
    std::uint16_t reserved;
    std::uint32_t max_send_bytes;  // what its receive buffers hold
};
static_assert(sizeof(Card) == 8);

bool read_card(Module& m, opal_proc_t* proc, path::PortList& list) {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    int rc;
    OPAL_MODEX_RECV(rc, &mca_btl_coopib_component.btl_version, &proc->proc_name, &bytes, &size);
    if (rc != OPAL_SUCCESS || bytes == nullptr) return false;
    const std::unique_ptr<std::uint8_t, decltype(&std::free)> owner(bytes, &std::free);
    Card card;
    if (size < sizeof card) return false;
    std::memcpy(&card, bytes, sizeof card);
    if (card.wire_version != kWireVersion) versions_differ(proc, card.wire_version);
    if (card.max_send_bytes < m.base.btl_max_send_size) sizes_differ(proc, card.max_send_bytes);
    auto unpacked = path::unpack(std::as_bytes(std::span(bytes + sizeof card, size - sizeof card)));
    if (const auto* wrong = std::get_if<std::string>(&unpacked)) {
        opal_output(0, "btl/coopib: what a peer tells of its ports is not used: %s", wrong->c_str());
        return false;
    }
    list = std::move(std::get<path::PortList>(unpacked));
    return true;
}

}  // namespace

void publish_ports(Module& m) {
    const Card card{kWireVersion, 0, static_cast<std::uint32_t>(m.base.btl_max_send_size)};
    const std::vector<std::byte> list = path::pack(m.own);
    std::vector<std::byte> bytes(sizeof card + list.size());
    std::memcpy(bytes.data(), &card, sizeof card);
    std::memcpy(bytes.data() + sizeof card, list.data(), list.size());
    int rc;
    OPAL_MODEX_SEND(rc, OPAL_PMIX_GLOBAL, &mca_btl_coopib_component.btl_version, bytes.data(), bytes.size());
    static_cast<void>(rc);  // a peer that finds nothing goes by another transport
}

std::uint64_t id_of(const opal_process_name_t& name) noexcept { return std::uint64_t{name.jobid} << 32 | name.vpid; }

Endpoint* find_endpoint(Module& m, opal_proc_t* proc) {
    const std::uint64_t id = id_of(proc->proc_name);
    if (const auto known = m.endpoints.find(id); known != m.endpoints.end()) return known->second.get();
    auto endpoint = std::make_unique<Endpoint>();
    endpoint->proc = proc;
    endpoint->id = id;
    if (!read_card(m, proc, endpoint->remote)) return nullptr;
    for (const path::PathChoice& path : path::choose_paths(m.own, endpoint->remote))
        endpoint->local_hcas = static_cast<HcaMask>(endpoint->local_hcas | 1u << m.own.ports[path.local_port].hca);
    if (endpoint->local_hcas == 0) return nullptr;
    return (m.endpoints[id] = std::move(endpoint)).get();
}

int add_procs(mca_btl_base_module_t* btl, std::size_t count, opal_proc_t** procs, mca_btl_base_endpoint_t** endpoints, opal_bitmap_t* reachable) {
    Module& m = Module::of(btl);
    for (std::size_t i = 0; i < count; ++i) {
        // To itself a process needs a channel for atomic operations: those of an HCA know nothing of the processor's (osc/rdma).
        if (procs[i] == opal_proc_local_get() && (m.base.btl_flags & MCA_BTL_FLAGS_ATOMIC_FOPS) == 0) continue;
        Guard guard(m);
        endpoints[i] = find_endpoint(m, procs[i]);
        if (endpoints[i] != nullptr && reachable != nullptr) opal_bitmap_set_bit(reachable, static_cast<int>(i));
    }
    return OPAL_SUCCESS;
}

// Endpoints stay until the module goes: the peer may still have something under way to us.
int del_procs(mca_btl_base_module_t*, std::size_t, opal_proc_t**, mca_btl_base_endpoint_t**) { return OPAL_SUCCESS; }

int register_error(mca_btl_base_module_t* btl, mca_btl_base_module_error_cb_fn_t callback) {
    Module::of(btl).on_error = callback;
    return OPAL_SUCCESS;
}

int finalize(mca_btl_base_module_t* btl) {
    Module& m = Module::of(btl);
    withdraw_loopback();
    if (m.given.report > 0) print_report(m);
    // Queue pairs before what they complete to and receive from; registrations before protection domains.
    m.endpoints.clear();
    m.fragments.close();
    m.ops.close();
    close_registration(m);
    m.connector.reset();
    for (HcaUse& use : m.uses) {
        use.srq.reset();
        use.receives.clear();
    }
    m.uses.clear();
    m.interrupts.reset();
    m.hcas.clear();
    return OPAL_SUCCESS;
}

}  // namespace coop::ib
