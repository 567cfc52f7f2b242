// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/numa.h"

#include <sched.h>

#include <algorithm>
#include <numeric>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

namespace coop::node {
namespace {

constexpr std::size_t kMaxCpus = 1 << 16;  // more than Linux supports

struct Node {
    CpuSet cpus;
    std::vector<std::uint32_t> distances;  // to each node, in ascending order of node numbers
};
using Nodes = std::map<int, Node>;  // by node number

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
    Number value{};
    const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
    return value;
}

// Adds one element of a list such as "0-3,8": a range or a number.
void add_range(CpuSet& cpus, std::string_view word) {
    const std::size_t dash = word.find('-');
    const auto first = number<std::size_t>(word.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number<std::size_t>(word.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kMaxCpus) return;
    if (cpus.size() <= *last) cpus.resize(*last + 1);
    std::fill(cpus.begin() + static_cast<std::ptrdiff_t>(*first), cpus.begin() + static_cast<std::ptrdiff_t>(*last) + 1,
              true);
}

CpuSet parse_list(const std::string& text) {
    CpuSet cpus;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) add_range(cpus, word);
    return cpus;
}

std::vector<std::uint32_t> parse_row(const std::string& text) {
    std::vector<std::uint32_t> row;
    std::istringstream words(text);
    for (std::string word; words >> word;) row.push_back(number<std::uint32_t>(word).value_or(kUnknownDistance));
    return row;
}

Nodes read_nodes(const std::string& folder) {
    Nodes nodes;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with("node")) continue;
        if (const auto id = number<int>(std::string_view(name).substr(4)))
            nodes[*id] = {parse_list(first_line(entry.path() / "cpulist")),
                          parse_row(first_line(entry.path() / "distance"))};
    }
    return nodes;
}

bool have_one_in_common(const CpuSet& a, const CpuSet& b) {
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        if (a[i] && b[i]) return true;
    return false;
}

std::uint32_t distance(const Nodes& nodes, const CpuSet& cpus, int device_node) {
    const auto device = nodes.find(device_node);
    if (device == nodes.end()) return kUnknownDistance;  // also for -1: the device has no node
    const auto column = static_cast<std::size_t>(std::distance(nodes.begin(), device));
    std::uint32_t least = kUnknownDistance;
    for (const auto& [id, node] : nodes)
        if (have_one_in_common(node.cpus, cpus) && column < node.distances.size())
            least = std::min(least, node.distances[column]);
    return least;
}

}  // namespace

CpuSet cpus_of(std::int32_t pid) {
    // The kernel returns EINVAL for a mask smaller than its own.
    for (std::size_t count = 1024; count <= kMaxCpus; count *= 2) {
        std::vector<cpu_set_t> mask(count / CPU_SETSIZE);
        const std::size_t bytes = mask.size() * sizeof(cpu_set_t);
        if (sched_getaffinity(pid, bytes, mask.data()) != 0) {
            if (errno == EINVAL) continue;
            return {};
        }
        CpuSet cpus(count);
        for (std::size_t i = 0; i < count; ++i) cpus[i] = CPU_ISSET_S(i, bytes, mask.data());
        return cpus;
    }
    return {};
}

std::size_t count(const CpuSet& cpus) noexcept {
    return static_cast<std::size_t>(std::count(cpus.begin(), cpus.end(), true));
}

void add(CpuSet& cpus, const CpuSet& more) {
    if (cpus.size() < more.size()) cpus.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i)
        if (more[i]) cpus[i] = true;
}

std::vector<std::uint32_t> distances(std::span<const std::string> devices, const CpuSet& cpus,
                                     const std::string& nodes) {
    const Nodes known = read_nodes(nodes);
    std::vector<std::uint32_t> result;
    for (const std::string& device : devices)
        result.push_back(distance(known, cpus, number<int>(first_line(device + "/device/numa_node")).value_or(-1)));
    return result;
}

std::vector<std::size_t> nearest(std::span<const std::uint32_t> distances, std::size_t most) {
    std::vector<std::size_t> all(distances.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::stable_sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) { return distances[a] < distances[b]; });
    all.resize(std::min(all.size(), most));
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace coop::node
