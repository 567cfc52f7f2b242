// SPDX-License-Identifier: BSD-3-Clause
#include "coop/path/planes.h"

#include <algorithm>
#include <charconv>

namespace coop::path {
namespace {

constexpr const char* kAllowed =
    "rate, position, or a list such as mlx5_0=1,mlx5_1:2=2: HCA or HCA:port, and the number of its plane, 0..9999";
static_assert(kMaxPlane == 9999);

// Parses a whole number up to `most`.
std::optional<std::uint32_t> number(std::string_view text, std::uint32_t most) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > most) return std::nullopt;
    return value;
}

// "mlx5_1:2=2"
std::optional<Planes::Entry> parse_entry(std::string_view word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const auto plane = number(word.substr(equals + 1), kMaxPlane);
    const std::string_view name = word.substr(0, equals), hca = name.substr(0, name.find(':'));
    std::optional<std::uint32_t> port = 0;
    if (hca.size() != name.size()) port = number(name.substr(hca.size() + 1), UINT8_MAX);
    if (!plane || !port || hca.empty() || (hca.size() != name.size() && *port == 0)) return std::nullopt;
    return Planes::Entry{std::string(hca), static_cast<std::uint8_t>(*port), static_cast<std::uint16_t>(*plane)};
}

bool is_there_twice(const std::vector<Planes::Entry>& entries, const Planes::Entry& entry) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const auto& e) { return e.hca == entry.hca && e.port == entry.port; });
}

std::string_view without_blanks(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
}

}  // namespace

std::uint16_t Planes::of(std::string_view hca, const PortRecord& port) const {
    if (by_position) return static_cast<std::uint16_t>(port.position + 1);
    std::uint16_t plane = 0;
    for (const Entry& entry : entries) {
        if (entry.hca != hca || (entry.port != 0 && entry.port != port.port)) continue;
        plane = static_cast<std::uint16_t>(entry.plane + 1);
        if (entry.port != 0) break;  // an entry for a port takes precedence over one for the HCA
    }
    return plane;
}

std::variant<Planes, std::string> parse_planes(std::string_view text) {
    Planes planes;
    text = without_blanks(text);
    if (text == "rate") return planes;
    planes.by_position = text == "position";
    if (planes.by_position) return planes;
    for (bool more = true; more;) {
        const std::size_t comma = text.find(',');
        const auto entry = parse_entry(without_blanks(text.substr(0, comma)));
        if (!entry || is_there_twice(planes.entries, *entry)) return kAllowed;
        planes.entries.push_back(*entry);
        more = comma != std::string_view::npos;
        if (more) text.remove_prefix(comma + 1);
    }
    return planes;
}

}  // namespace coop::path
