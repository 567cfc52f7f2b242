// SPDX-License-Identifier: BSD-3-Clause
// The controlling side of node.h: sends orders and collects reports.
#include "node.h"
#include "verbs_test.h"

namespace railtest {

using coop::path::PortList;

void put_bytes(verbstest::Channel& channel, const std::vector<std::byte>& bytes) {
    channel.put(static_cast<std::uint32_t>(bytes.size()));
    for (std::byte b : bytes) channel.put(b);
}

std::vector<std::byte> get_bytes(verbstest::Channel& channel) {
    std::vector<std::byte> bytes(channel.get<std::uint32_t>());
    for (std::byte& b : bytes) b = channel.get<std::byte>();
    return bytes;
}

Crowd::Crowd(Order order, const std::function<std::string(std::uint32_t)>& host_of) {
    std::vector<std::string> hosts;
    for (std::uint32_t i = 0; i < order.nodes; ++i) {
        hosts.push_back(host_of(i));
        processes_.push_back(std::make_unique<verbstest::Process>("node", hosts[i].c_str()));
        order.number = i;
        order.local_rank = 0;
        for (std::uint32_t j = 0; j < i; ++j) order.local_rank += hosts[j] == hosts[i];
        processes_[i]->channel().put(order);
    }
    for (auto& process : processes_) {
        packed_.push_back(get_bytes(process->channel()));
        const auto unpacked = coop::path::unpack(packed_.back());
        if (const auto* wrong = std::get_if<std::string>(&unpacked)) verbstest::fail(__FILE__, __LINE__, *wrong);
        ports_.push_back(std::get<PortList>(unpacked));
    }
}

std::vector<Report> Crowd::connect() {
    const auto nodes = static_cast<std::uint32_t>(processes_.size());
    for (auto& process : processes_)
        for (const auto& bytes : packed_) put_bytes(process->channel(), bytes);
    for (auto& process : processes_) CHECK_EQ(process->channel().get<std::uint32_t>(), 1);
    for (auto& process : processes_) process->channel().put(std::uint32_t{1});
    std::vector<Report> reports;
    for (auto& process : processes_) {
        reports.push_back(process->channel().get<Report>());
        CHECK_EQ(reports.back().given_up, 0);
        CHECK_EQ(reports.back().wrong, 0);
        CHECK_EQ(reports.back().established, nodes - 1);
        CHECK_EQ(reports.back().messages, reports.back().rails);
    }
    for (auto& process : processes_) CHECK_EQ(process->finish(), 0);
    return reports;
}

}  // namespace railtest
