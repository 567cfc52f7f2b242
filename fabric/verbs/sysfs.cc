// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/verbs/sysfs.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "fabric/engine/client.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/port_state.h"

namespace coop::fabric {
namespace {

constexpr std::string_view kClass = "/sys/class/infiniband", kNodes = "/dev/infiniband";

using Words = std::vector<std::string_view>;

Words split(std::string_view path) {
    Words words;
    while (!path.empty()) {
        const std::size_t end = std::min(path.find('/'), path.size());
        if (end > 0) words.push_back(path.substr(0, end));
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    return words;
}

[[gnu::format(printf, 1, 2)]] std::string format(const char* text, ...) {
    char line[128];
    va_list parts;
    va_start(parts, text);
    std::vsnprintf(line, sizeof line, text, parts);
    va_end(parts);
    return line;
}

bool to_number(std::string_view word, std::uint32_t& number) {
    const auto result = std::from_chars(word.data(), word.data() + word.size(), number);
    return result.ec == std::errc() && result.ptr == word.data() + word.size();
}

// Eight groups of four digits, without abbreviation.
std::string gid_text(const std::uint8_t (&gid)[16]) {
    std::string text;
    for (int i = 0; i < 16; i += 2) text += format(i == 0 ? "%02x%02x" : ":%02x%02x", gid[i], gid[i + 1]);
    return text;
}

std::string guid_text(std::uint64_t guid) {
    const auto part = [guid](int shift) { return static_cast<unsigned>(guid >> shift & 0xffff); };
    return format("%04x:%04x:%04x:%04x", part(48), part(32), part(16), part(0));
}

PathKind file(std::string& text, std::string content) {
    text = std::move(content) + "\n";
    return PathKind::file;
}

// As in 'perfquery' and the kernel, data is counted in words of four bytes.
PathKind find_counter(const PortCounters& counters, std::string_view name, std::string& text) {
    const struct {
        std::string_view name;
        const Shared<std::uint64_t>& value;
        unsigned unit;
    } known[] = {{"port_xmit_data", counters.sent_bytes, 4},      {"port_rcv_data", counters.received_bytes, 4},
                 {"port_xmit_packets", counters.sent_packets, 1}, {"port_rcv_packets", counters.received_packets, 1},
                 {"port_xmit_discards", counters.discards, 1},    {"symbol_error", counters.symbol_errors, 1},
                 {"link_downed", counters.link_downed, 1}};
    for (const auto& counter : known)
        if (counter.name == name)
            return file(text, format("%llu", static_cast<unsigned long long>(counter.value.load() / counter.unit)));
    return PathKind::none;
}

PathKind find_gid(const Port& port, std::string_view word, std::string& text) {
    std::uint32_t index = 0;
    if (!to_number(word, index) || index >= port.gid_count) return PathKind::none;
    return file(text, gid_text(port.gids[index]));
}

PathKind find_gid_type(const Port& port, std::string_view word, std::string& text) {
    std::uint32_t index = 0;
    if (!to_number(word, index) || index >= port.gid_count) return PathKind::none;
    return file(text, gid_type(port, index) == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
}

PathKind find_pkey(const Port& port, std::string_view word, std::string& text) {
    std::uint32_t index = 0;
    if (!to_number(word, index) || index >= port.pkey_count) return PathKind::none;
    return file(text, format("0x%04x", static_cast<unsigned>(port.pkeys[index])));
}

PathKind find_in_port(const Segment& subnet, const Port& port, const Words& words, std::string& text) {
    if (words.empty()) return PathKind::folder;
    const std::string_view name = words[0];
    if (words.size() == 2 && name == "gids") return find_gid(port, words[1], text);
    if (words.size() == 2 && name == "pkeys") return find_pkey(port, words[1], text);
    if (words.size() == 2 && name == "counters") return find_counter(port.counters, words[1], text);
    if (words.size() == 3 && name == "gid_attrs" && words[1] == "types") return find_gid_type(port, words[2], text);
    if (words.size() != 1) return PathKind::none;
    const ibv_port_attr attr = describe_port(subnet, port);
    if (name == "gids" || name == "gid_attrs" || name == "pkeys" || name == "counters") return PathKind::folder;
    if (name == "state") return file(text, attr.state == IBV_PORT_ACTIVE ? "4: ACTIVE" : "1: DOWN");
    if (name == "phys_state")
        return file(text, attr.phys_state == 5 ? "5: LinkUp" : attr.phys_state == 2 ? "2: Polling" : "3: Disabled");
    if (name == "lid") return file(text, format("0x%x", attr.lid));
    if (name == "lid_mask_count") return file(text, format("%u", attr.lmc));
    if (name == "sm_lid") return file(text, format("0x%x", attr.sm_lid));
    if (name == "sm_sl") return file(text, "0");
    if (name == "cap_mask") return file(text, format("0x%08x", attr.port_cap_flags));
    if (name == "link_layer") return file(text, is_ethernet(port) ? "Ethernet" : "InfiniBand");
    if (name == "rate") return file(text, link_speed(subnet.links()[port.link_out].rate.load()).text);
    return PathKind::none;
}

PathKind find_in_device(const Segment& subnet, const Hca& hca, const Words& words, std::string& text) {
    if (words.empty()) return PathKind::folder;
    const std::string_view name = words[0];
    if (name == "ports") {
        std::uint32_t number = 0;
        if (words.size() == 1) return PathKind::folder;
        if (!to_number(words[1], number) || number < 1 || number > hca.ports) return PathKind::none;
        return find_in_port(subnet, subnet.ports()[hca.first_port + number - 1], {words.begin() + 2, words.end()},
                            text);
    }
    if (words.size() != 1) return PathKind::none;
    if (name == "board_id") return file(text, kBoard);
    if (name == "fw_ver") return file(text, kFirmware);
    if (name == "hca_type") return file(text, "MT4099");
    if (name == "hw_rev") return file(text, "1");
    if (name == "node_type") return file(text, "1: CA");
    if (name == "node_guid" || name == "sys_image_guid") return file(text, guid_text(hca.guid));
    if (name == "node_desc") return file(text, format("%.63s %.15s", subnet.hosts()[hca.host].name, hca.name));
    return PathKind::none;
}

PathKind find_in_verbs(const VerbsDevice& device, const Words& words, std::string& text) {
    if (words.empty()) return PathKind::folder;
    if (words.size() != 1) return PathKind::none;
    if (words[0] == "ibdev") return file(text, device.name);
    if (words[0] == "abi_version") return file(text, "1");
    return PathKind::none;
}

PathKind find(const Segment& subnet, const Words& words, std::string& text) {
    const std::string_view root = words[0];
    if (words.size() == 1) return PathKind::folder;
    if (root == "infiniband_verbs" && words.size() == 2 && words[1] == "abi_version") return file(text, "6");
    for (const VerbsDevice* device : local_devices()) {
        const Words rest(words.begin() + 2, words.end());
        if (root == "infiniband" && words[1] == device->name)
            return find_in_device(subnet, subnet.hcas()[device->hca], rest, text);
        if (root == "infiniband_verbs" && words[1] == device->dev_name) return find_in_verbs(*device, rest, text);
        if (root == "dev" && words[1] == device->dev_name && rest.empty()) return PathKind::device;
    }
    return PathKind::none;
}

}  // namespace

bool may_be_faked(const char* path) {
    return path != nullptr && path[0] == '/' &&
           (std::strncmp(path, kClass.data(), kClass.size()) == 0 ||
            std::strncmp(path, kNodes.data(), kNodes.size()) == 0);
}

PathKind find_faked(const char* path, std::string& text) {
    if (!may_be_faked(path)) return PathKind::none;
    const bool in_sys = path[1] == 's';
    Words words = split(std::string_view(path).substr(in_sys ? std::strlen("/sys/class/") : std::strlen("/dev/")));
    if (words.empty() || (words[0] != "infiniband" && words[0] != "infiniband_verbs")) return PathKind::none;
    if (!in_sys) words[0] = "dev";
    if (local_devices().empty()) return PathKind::none;
    return find(Client::get()->subnet(), words, text);
}

}  // namespace coop::fabric
