// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/hcas.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "coop/rail/verbs/interface_list.h"

namespace coop::rail {
namespace {

constexpr std::uint32_t kSoftRoce = 0xffffff;  // vendor id of the kernel's rdma_rxe

std::uint32_t positive(int value) noexcept { return static_cast<std::uint32_t>(std::max(value, 0)); }

HcaCaps caps_of(const ibv_device_attr& attr, std::uint32_t most_reads) noexcept {
    HcaCaps caps;
    caps.max_rd_atomic = std::min(positive(attr.max_qp_init_rd_atom), most_reads);
    caps.max_dest_rd_atomic = std::min(positive(attr.max_qp_rd_atom), most_reads);
    caps.max_qp = positive(attr.max_qp);
    caps.max_qp_wr = positive(attr.max_qp_wr);
    caps.max_cqe = positive(attr.max_cqe);
    caps.max_sge = positive(attr.max_sge);
    caps.max_srq_wr = attr.max_srq > 0 ? positive(attr.max_srq_wr) : 0;
    caps.max_srq_sge = caps.max_srq_wr != 0 ? positive(attr.max_srq_sge) : 0;
    caps.max_mr_bytes = attr.max_mr_size;
    caps.atomics = attr.atomic_cap != IBV_ATOMIC_NONE;
    caps.global_atomics = attr.atomic_cap == IBV_ATOMIC_GLOB;
    caps.path_migration = (attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG) != 0;
    if (attr.vendor_id == kSoftRoce) caps.most_retries = 6;
    return caps;
}

bool makes_qp(ibv_pd* pd, ibv_cq* cq, std::uint32_t inline_bytes) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = inline_bytes};
    wanted.qp_type = IBV_QPT_RC;
    return static_cast<bool>(Qp(ibv_create_qp(pd, &wanted)));
}

// No device attribute reports the limit: returns the largest of want, want/2, … with which a queue pair can be
// created.
std::uint32_t probe_inline(ibv_pd* pd, std::uint32_t want) {
    const auto cq = make_cq(pd->context, 2);
    if (!cq) return 0;
    for (; want >= 16; want /= 2)
        if (makes_qp(pd, *cq, want)) return want;
    return 0;
}

// Selects ports by the include and exclude lists.
class Choice {
public:
    explicit Choice(const HcaOptions& options) : include_(options.include), exclude_(options.exclude) {}

    bool wants(const std::string& hca) {
        return !exclude_.names_all_of(hca) && (include_.empty() || include_.names_some_of(hca));
    }
    bool wants(const std::string& hca, std::uint8_t port) {
        const bool out = exclude_.names(hca, port);
        return (include_.empty() || include_.names(hca, port)) && !out;
    }
    void report_missing(std::vector<Diagnostic>& diagnostics) const {
        for (const auto& [list, what] : {std::pair(&include_, "include"), {&exclude_, "exclude"}})
            for (const std::string& entry : list->not_found())
                diagnostics.push_back({About::kInterfaces, "the list of HCAs to " + std::string(what) + " names '" +
                                                               entry + "', which this node does not have"});
    }

private:
    InterfaceList include_, exclude_;
};

Diagnostic diagnostic_of(const PortFlaw& flaw, const std::string& hca, std::uint8_t port) {
    const std::string number = std::to_string(port);
    if (flaw.about == About::kDevice) return {flaw.about, hca + " port " + number + " is not used: " + flaw.why};
    return {flaw.about, hca + ":" + number + ": " + flaw.why};
}

std::vector<path::PortRecord> usable_ports(ibv_context* device, const std::string& name, std::uint8_t count,
                                           const PortWishes& wishes, Choice& choice, std::uint32_t& max_message_bytes,
                                           std::vector<Diagnostic>& diagnostics) {
    std::vector<path::PortRecord> ports;
    for (std::uint8_t number = 1; number <= count; ++number) {
        if (!choice.wants(name, number)) continue;
        std::uint32_t bytes = 0;
        auto found = query_port(device, number, wishes, bytes);
        if (const auto* flaw = std::get_if<PortFlaw>(&found)) {
            diagnostics.push_back(diagnostic_of(*flaw, name, number));
            continue;
        }
        max_message_bytes = ports.empty() ? bytes : std::min(max_message_bytes, bytes);
        ports.push_back(std::get<path::PortRecord>(found));
    }
    return ports;
}

void open_hca(ibv_device* device, std::size_t position, const HcaOptions& options, Choice& choice,
              std::vector<Hca>& hcas, std::vector<Diagnostic>& diagnostics) {
    const std::string name = ibv_get_device_name(device);
    const auto not_used = [&](const std::string& why, int number) {
        diagnostics.push_back(
            {About::kDevice,
             name + " is not used: " + why + (number != 0 ? ": " + std::generic_category().message(number) : "")});
    };
    if (device->transport_type != IBV_TRANSPORT_IB && device->transport_type != IBV_TRANSPORT_UNKNOWN)
        return not_used("it is neither InfiniBand nor RoCE", 0);
    Context context(ibv_open_device(device));
    if (!context) return not_used("it cannot be opened", errno);
    ibv_device_attr attr{};
    if (const int error = ibv_query_device(context, &attr); error != 0) return not_used("it cannot be queried", error);
    HcaCaps caps = caps_of(attr, options.most_reads);
    auto ports = usable_ports(context, name, attr.phys_port_cnt, options.ports, choice, caps.max_message_bytes,
                              diagnostics);
    if (ports.empty()) return;
    Pd pd(ibv_alloc_pd(context));
    if (!pd) return not_used("it has no protection domain left", errno);
    caps.max_inline = probe_inline(pd, options.want_inline);
    for (path::PortRecord& port : ports) {
        port.hca = static_cast<std::uint8_t>(hcas.size());
        port.position = static_cast<std::uint16_t>(position);
        port.has_srq = caps.has_srq() ? 1 : 0;
        port.max_dest_rd_atomic = static_cast<std::uint8_t>(caps.max_dest_rd_atomic);
    }
    hcas.emplace_back(std::move(context), std::move(pd), caps, std::move(ports));
}

// Owns the device list; sorted by name as for hca_names().
class Devices {
public:
    Devices()
        : list_(ibv_get_device_list(&count_), ibv_free_device_list),
          by_name_(list_.get(), list_.get() + (list_ ? count_ : 0)) {
        std::stable_sort(by_name_.begin(), by_name_.end(), [](ibv_device* a, ibv_device* b) {
            return strverscmp(ibv_get_device_name(a), ibv_get_device_name(b)) < 0;
        });
    }
    const std::vector<ibv_device*>& by_name() const { return by_name_; }

private:
    int count_ = 0;
    std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list_;
    std::vector<ibv_device*> by_name_;
};

std::size_t port_count(const std::vector<Hca>& hcas) {
    std::size_t count = 0;
    for (const Hca& hca : hcas) count += hca.ports().size();
    return count;
}

}  // namespace

Hca::Hca(Context context, Pd pd, HcaCaps caps, std::vector<path::PortRecord> ports)
    : context_(std::move(context)), pd_(std::move(pd)), caps_(caps), ports_(std::move(ports)) {}

std::string Hca::name() const { return ibv_get_device_name(context_->device); }
std::string Hca::sysfs_folder() const { return context_->device->ibdev_path; }

void Hca::set_index(std::uint8_t index) noexcept {
    for (path::PortRecord& port : ports_) port.hca = index;
}

void Hca::set_connector(std::size_t index, std::uint32_t qpn, std::uint32_t qkey) noexcept {
    ports_[index].ud_qpn = qpn;
    ports_[index].ud_qkey = qkey;
}

std::vector<Hca> open_hcas(const HcaOptions& options, std::vector<Diagnostic>& diagnostics) {
    std::vector<Hca> hcas;
    if (!options.include.empty() && !options.exclude.empty()) {
        diagnostics.push_back({About::kInterfaces,
                               "there is a list of HCAs to include and one to exclude: only one of them may be given"});
        return hcas;
    }
    const Devices devices;
    Choice choice(options);
    for (std::size_t i = 0; i < devices.by_name().size(); ++i) {
        ibv_device* device = devices.by_name()[i];
        if (choice.wants(ibv_get_device_name(device))) open_hca(device, i, options, choice, hcas, diagnostics);
    }
    while (port_count(hcas) > path::kMaxPorts) {
        diagnostics.push_back({About::kDevice, hcas.back().name() + " is not used: there are more than " +
                                                   std::to_string(path::kMaxPorts) + " ports"});
        hcas.pop_back();
    }
    choice.report_missing(diagnostics);
    return hcas;
}

std::vector<std::string> hca_names() {
    const Devices devices;
    std::vector<std::string> names;
    for (ibv_device* device : devices.by_name()) names.emplace_back(ibv_get_device_name(device));
    return names;
}

std::vector<path::PortRecord> ports_of(std::span<const Hca> hcas) {
    std::vector<path::PortRecord> ports;
    for (const Hca& hca : hcas) ports.insert(ports.end(), hca.ports().begin(), hca.ports().end());
    return ports;
}

}  // namespace coop::rail
