// SPDX-License-Identifier: BSD-3-Clause
//
// Peers: the ports that they have published, and whether a path leads there.
#include "procs.h"

#include <cstdlib>
#include <cstring>

#include "component.h"
#include "coop/base/architecture.h"
#include "diagnose.h"
#include "entry.h"
#include "extension.h"
#include "failover.h"
#include "module.h"
#include "registration.h"
#include "report.h"

namespace coop::ib {
namespace {

struct Card {
    std::uint16_t wire_version;
    std::uint16_t atomic_hca;      // the HCA that executes all atomic operations on its memory
    std::uint32_t max_send_bytes;  // size of the largest message that its receive buffers hold
    Architecture architecture;
    std::uint8_t failover;  // 1: the process continues without rails that have failed
    std::uint8_t reserved[3];
};
static_assert(sizeof(Card) == 16);

// Operations of different HCAs are not atomic with respect to each other. So the owner of memory names one HCA. It is
// the same for all processes of a node, because they may share that memory.
constexpr std::uint16_t kAtomicHca = 0;

// Reads the ports that a peer has published, and its card if the data are long enough. Returns nothing if the data
// cannot be used; `why` gives the reason if they are damaged.
std::optional<path::PortList> read_ports(const opal_process_name_t& name, Card& card, std::string& why) {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    int rc;
    OPAL_MODEX_RECV(rc, &mca_btl_coopib_component.btl_version, &name, &bytes, &size);
    if (rc != OPAL_SUCCESS || bytes == nullptr) return std::nullopt;
    const std::unique_ptr<std::uint8_t, decltype(&std::free)> owner(bytes, &std::free);
    if (size < sizeof card) return std::nullopt;
    std::memcpy(&card, bytes, sizeof card);
    if (card.wire_version != kWireVersion) return std::nullopt;
    auto unpacked = path::unpack(std::as_bytes(std::span(bytes + sizeof card, size - sizeof card)), kMostRkeys);
    if (const auto* wrong = std::get_if<std::string>(&unpacked)) {
        why = *wrong;
        return std::nullopt;
    }
    path::PortList list = std::move(std::get<path::PortList>(unpacked));
    list.survives = card.failover == 1;
    return list;
}

}  // namespace

std::optional<path::PortList> published_ports(std::uint64_t id) {
    Card card{};
    std::string why;
    return read_ports(name_of(id), card, why);
}

void publish_ports(Module& m) {
    const Card card{kWireVersion,
                    kAtomicHca,
                    static_cast<std::uint32_t>(m.base.btl_max_send_size),
                    Architecture::of(opal_local_arch),
                    static_cast<std::uint8_t>(m.given.failover),
                    {}};
    const std::vector<std::byte> list = path::pack(m.own);
    std::vector<std::byte> bytes(sizeof card + list.size());
    std::memcpy(bytes.data(), &card, sizeof card);
    std::memcpy(bytes.data() + sizeof card, list.data(), list.size());
    int rc;
    OPAL_MODEX_SEND(rc, OPAL_PMIX_GLOBAL, &mca_btl_coopib_component.btl_version, bytes.data(), bytes.size());
    static_cast<void>(rc);  // a peer that finds no ports uses another transport
}

std::uint64_t id_of(const opal_process_name_t& name) noexcept { return std::uint64_t{name.jobid} << 32 | name.vpid; }

opal_process_name_t name_of(std::uint64_t id) noexcept {
    opal_process_name_t name;
    name.jobid = static_cast<opal_jobid_t>(id >> 32);
    name.vpid = static_cast<opal_vpid_t>(id & 0xffffffff);
    return name;
}

Endpoint* find_endpoint(Module& m, opal_proc_t* proc) {
    const std::uint64_t id = id_of(proc->proc_name);
    if (const auto known = m.endpoints.find(id); known != m.endpoints.end()) return known->second.get();
    auto endpoint = std::make_unique<Endpoint>();
    endpoint->proc = proc;
    endpoint->id = id;
    Card card{};
    std::string damage;
    auto ports = read_ports(proc->proc_name, card, damage);
    const std::uint32_t architecture = card.architecture.word();
    if (architecture != 0 && architecture != opal_local_arch) architectures_differ(proc, architecture);
    if (card.wire_version != 0 && card.wire_version != kWireVersion) versions_differ(proc, card.wire_version);
    if (card.wire_version != 0 && card.max_send_bytes < m.base.btl_max_send_size)
        sizes_differ(proc, card.max_send_bytes);
    if (!damage.empty())
        opal_output(0, "btl/coopib: the ports that a peer has published cannot be used: %s", damage.c_str());
    if (!ports) return nullptr;
    endpoint->remote = std::move(*ports);
    endpoint->atomic_hca = card.atomic_hca;
    // A process has nobody to ask at the other end of a rail to itself.
    endpoint->survives = m.given.failover != 0 && endpoint->remote.survives && id != m.id;
    for (const path::PathChoice& path : path::choose_paths(m.own, endpoint->remote))
        endpoint->local_hcas = static_cast<HcaMask>(endpoint->local_hcas | 1u << m.own.ports[path.local_port].hca);
    if (endpoint->local_hcas == 0) {
        // A process reaches itself through other transports.
        if (const auto why = path::partition_trouble(m.own, endpoint->remote); why && proc != opal_proc_local_get())
            other_partition(proc, *why);
        return nullptr;
    }
    return (m.endpoints[id] = std::move(endpoint)).get();
}

int add_procs(mca_btl_base_module_t* btl, std::size_t count, opal_proc_t** procs, mca_btl_base_endpoint_t** endpoints,
              opal_bitmap_t* reachable) {
    Module& m = Module::of(btl);
    for (std::size_t i = 0; i < count; ++i) {
        // A process needs a channel to itself only for atomic operations (osc/rdma, osc/multirail): those of the processor are
        // not atomic with respect to those of an HCA.
        if (procs[i] == opal_proc_local_get() && (m.base.btl_flags & MCA_BTL_FLAGS_ATOMIC_FOPS) == 0) continue;
        Guard guard(m);
        endpoints[i] = find_endpoint(m, procs[i]);
        if (endpoints[i] != nullptr && reachable != nullptr) opal_bitmap_set_bit(reachable, static_cast<int>(i));
    }
    return OPAL_SUCCESS;
}

// Endpoints exist until finalize(), because messages from the peer may still be in flight.
int del_procs(mca_btl_base_module_t*, std::size_t, opal_proc_t**, mca_btl_base_endpoint_t**) { return OPAL_SUCCESS; }

int register_error(mca_btl_base_module_t* btl, mca_btl_base_module_error_cb_fn_t callback) {
    Module::of(btl).on_error = callback;
    return OPAL_SUCCESS;
}

int finalize(mca_btl_base_module_t* btl) {
    Module& m = Module::of(btl);
    withdraw_extension(m);
    if (m.given.report > 0) print_report(m);
    say_goodbye(m);
    // Queue pairs go before their completion and receive queues, and registrations before protection domains.
    m.connections.reset();
    m.endpoints.clear();
    m.migrations.reset();
    m.kept.forget();
    m.fragments.close();
    m.ops.close();
    close_registration(m);
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
