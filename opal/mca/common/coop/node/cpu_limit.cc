// SPDX-License-Identifier: BSD-3-Clause
#include "coop/node/cpu_limit.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

namespace coop::node {
namespace {

// Removes and returns the part of `text` before `end`; also removes `end`.
std::string_view take_until(std::string_view& text, char end) noexcept {
    const std::size_t at = text.find(end);
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    return part;
}

bool has_word(std::string_view list, std::string_view word) noexcept {
    while (!list.empty())
        if (take_until(list, ',') == word) return true;
    return false;
}

std::optional<double> number(std::string_view text) noexcept {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    long long value = 0;
    const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
    return static_cast<double>(value);
}

// Decodes the octal escapes of mountinfo, such as "\040" for a space.
std::string without_escapes(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned code = 0;
        if (text[i] == '\\' && i + 3 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr == text.data() + i + 4) {
            plain += static_cast<char>(code);
            i += 3;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

// A mounted cgroup hierarchy that has the cpu controller, or may have it (version 2).
struct Mount {
    std::string root, point;  // the group `root` is mounted at the folder `point`
    bool unified;
};

// "30 23 0:26 ROOT POINT rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct"
std::optional<Mount> mount_of(std::string_view line) {
    for (int i = 0; i < 3; ++i) take_until(line, ' ');
    const std::string_view root = take_until(line, ' '), point = take_until(line, ' ');
    while (!line.empty() && take_until(line, ' ') != "-") {
    }
    const std::string_view type = take_until(line, ' ');
    take_until(line, ' ');
    if (type != "cgroup2" && !(type == "cgroup" && has_word(line, "cpu"))) return std::nullopt;
    return Mount{without_escapes(root), without_escapes(point), type == "cgroup2"};
}

std::vector<Mount> mounts_of(std::string_view mountinfo) {
    std::vector<Mount> mounts;
    while (!mountinfo.empty())
        if (auto mount = mount_of(take_until(mountinfo, '\n'))) mounts.push_back(*std::move(mount));
    return mounts;
}

// Returns a group's path relative to the mount point; "" for a group outside of the mounted hierarchy, as seen
// from inside a container.
std::string_view below(const Mount& mount, std::string_view group) noexcept {
    if (group.find("/..") != std::string_view::npos) return "";
    if (mount.root != "/") {
        if (!group.starts_with(mount.root)) return "";
        group.remove_prefix(mount.root.size());
        if (!group.empty() && group[0] != '/') return "";
    }
    return group == "/" ? "" : group;
}

void add_up_to_the_mount(std::vector<CpuGroup>& groups, const Mount& mount, std::string_view group) {
    for (std::string path(below(mount, group));; path.resize(path.rfind('/'))) {
        groups.push_back({mount.point + path, mount.unified});
        if (path.find('/') == std::string::npos) return;
    }
}

std::string read(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

double limit_in(const CpuGroup& group, const std::string& root) {
    const std::string folder = root + group.folder;
    return group.unified ? limit_of(read(folder + "/cpu.max"))
                         : limit_of(read(folder + "/cpu.cfs_quota_us"), read(folder + "/cpu.cfs_period_us"));
}

}  // namespace

std::vector<CpuGroup> cpu_groups(std::string_view cgroup, std::string_view mountinfo) {
    const std::vector<Mount> mounts = mounts_of(mountinfo);
    std::vector<CpuGroup> groups;
    while (!cgroup.empty()) {
        std::string_view line = take_until(cgroup, '\n');  // "4:cpu,cpuacct:/path", "0::/path"
        const std::string_view hierarchy = take_until(line, ':'), controllers = take_until(line, ':');
        const bool unified = hierarchy == "0";
        if (!unified && !has_word(controllers, "cpu")) continue;
        const auto mount = std::find_if(mounts.begin(), mounts.end(),
                                        [=](const Mount& m) { return m.unified == unified; });
        if (mount != mounts.end()) add_up_to_the_mount(groups, *mount, line);
    }
    return groups;
}

double limit_of(std::string_view cpu_max) noexcept {
    const std::string_view quota = take_until(cpu_max, ' ');
    return limit_of(quota, cpu_max);
}

double limit_of(std::string_view quota_us, std::string_view period_us) noexcept {
    const auto quota = number(quota_us), period = number(period_us);
    return quota && period && *quota > 0 && *period > 0 ? *quota / *period : kNoLimit;
}

double cpu_limit(const std::string& root) {
    double least = kNoLimit;
    for (const CpuGroup& group : cpu_groups(read(root + "/proc/self/cgroup"), read(root + "/proc/self/mountinfo")))
        least = std::min(least, limit_in(group, root));
    return least;
}

}  // namespace coop::node
