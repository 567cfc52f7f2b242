// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/connector.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "coop/rail/verbs/datagram_qp.h"

namespace coop::rail {

struct Connector::Parts {
    ConnectorCounts counts;
    std::vector<std::unique_ptr<DatagramQp>> qps;
};

namespace {

struct Pair {
    DatagramQp* from;
    const path::PortRecord* to;
};

// Other HCAs come before other ports of the same one.
bool earlier(const path::PortRecord& a, const path::PortRecord& b) noexcept {
    return std::pair(a.port, a.position) < std::pair(b.port, b.position);
}

// Returns all ways to the peer. The first ones have no port in common, so that a second attempt avoids both
// ports of the first. These are between HCAs at the same position on their nodes, as rails are
// (path/port_pairs.h).
std::vector<Pair> ways_to(std::span<const path::PortRecord> remote,
                          const std::vector<std::unique_ptr<DatagramQp>>& qps) {
    std::vector<const path::PortRecord*> ends;
    for (const path::PortRecord& port : remote)
        if (port.ud_qpn != 0) ends.push_back(&port);
    std::stable_sort(ends.begin(), ends.end(), [](const auto* a, const auto* b) { return earlier(*a, *b); });
    std::vector<path::PortRecord> starts;
    for (const auto& qp : qps) starts.push_back(qp->port());
    const path::Reach reach = path::reach_between(starts, remote);
    std::vector<Pair> ways;
    for (std::size_t shift = 0; shift < qps.size(); ++shift)
        for (std::size_t i = 0; i < ends.size(); ++i) {
            DatagramQp* from = qps[(i + shift) % qps.size()].get();
            if (reach_each_other(from->port(), *ends[i], reach)) ways.push_back({from, ends[i]});
        }
    return ways;
}

}  // namespace

Connector::Connector(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Connector::Connector(Connector&&) noexcept = default;
Connector& Connector::operator=(Connector&&) noexcept = default;
Connector::~Connector() = default;

Wanted<Connector> Connector::open(std::span<Hca> hcas, const ConnectorOptions& options,
                                  std::vector<Diagnostic>& diagnostics) {
    auto parts = std::make_unique<Parts>();
    for (Hca& hca : hcas)
        for (std::size_t port = 0; port < (options.every_port ? hca.ports().size() : 1); ++port) {
            auto qp = DatagramQp::make(hca, port, options, parts->counts);
            if (!qp) {
                diagnostics.push_back({About::kDevice, "no datagrams over " + qp.trouble().sentence});
                continue;
            }
            hca.set_connector(port, (*qp)->qpn(), options.qkey);
            parts->qps.push_back(std::move(*qp));
        }
    std::stable_sort(parts->qps.begin(), parts->qps.end(),
                     [](const auto& a, const auto& b) { return earlier(a->port(), b->port()); });
    if (parts->qps.empty()) return Trouble{ENODEV, "no HCA can send datagrams: processes cannot connect"};
    return Connector(std::move(parts));
}

Status Connector::send(std::span<const path::PortRecord> remote, std::span<const std::byte> datagram, const Way& way,
                       std::span<const path::PortRecord> now) {
    std::vector<Pair> pairs = ways_to(remote, parts_->qps);
    if (pairs.empty()) return Trouble{EHOSTUNREACH, "no local port for datagrams reaches such a port of the peer"};
    std::stable_partition(pairs.begin(), pairs.end(), [&](const Pair& pair) {
        return (way.avoid_local & set_of(pair.from->port())) == 0 && (way.avoid_remote & set_of(*pair.to)) == 0;
    });
    // A port may refuse, for example because it is down. Then the next one is tried.
    for (std::size_t i = 0;; ++i) {
        const Pair& pair = pairs[(way.attempt + i) % pairs.size()];
        const path::PortRecord& to = now.empty() ? *pair.to : now[static_cast<std::size_t>(pair.to - remote.data())];
        Status sent = pair.from->send(to, datagram);
        if (sent || i + 1 == pairs.size()) return sent;
    }
}

void Connector::on_moved(const path::PortRecord& port) noexcept {
    for (const auto& qp : parts_->qps)
        if (qp->port().hca == port.hca && qp->port().port == port.port) qp->on_moved(port);
}

int Connector::poll(const Arrival& arrival) {
    int arrived = 0;
    for (const auto& qp : parts_->qps) arrived += qp->poll(arrival);
    return arrived;
}

bool Connector::has_sent() const noexcept {
    return std::all_of(parts_->qps.begin(), parts_->qps.end(), [](const auto& qp) { return qp->is_idle(); });
}

std::vector<int> Connector::descriptors() const {
    std::vector<int> all;
    for (const auto& qp : parts_->qps) {
        if (qp->descriptor() < 0) return {};
        all.push_back(qp->descriptor());
    }
    return all;
}

void Connector::acknowledge(int descriptor) noexcept {
    for (const auto& qp : parts_->qps)
        if (qp->descriptor() == descriptor) qp->acknowledge();
}

void Connector::arm() noexcept {
    for (const auto& qp : parts_->qps) qp->arm();
}

const ConnectorCounts& Connector::counts() const noexcept { return parts_->counts; }

std::size_t Connector::memory_bytes() const noexcept {
    std::size_t bytes = 0;
    for (const auto& qp : parts_->qps) bytes += qp->memory_bytes();
    return bytes;
}

}  // namespace coop::rail
