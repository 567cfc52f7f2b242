// SPDX-License-Identifier: BSD-3-Clause
#include "coop/rail/verbs/interface_list.h"

#include <algorithm>
#include <charconv>

namespace coop::rail {
namespace {

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

int port_number(std::string_view text) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole && value >= 1 && value <= UINT8_MAX ? static_cast<int>(value) : -1;
}

}  // namespace

InterfaceList::InterfaceList(std::string_view text) {
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view entry = trimmed(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
        if (entry.empty()) continue;
        const std::size_t colon = entry.find(':');
        const int port = colon == std::string_view::npos ? 0 : port_number(entry.substr(colon + 1));
        entries_.push_back({std::string(entry), std::string(entry.substr(0, colon)), port, false});
    }
}

bool InterfaceList::names_all_of(std::string_view hca) {
    bool any = false;
    for (Entry& e : entries_)
        if (e.hca == hca && e.port == 0) any = e.found = true;
    return any;
}

bool InterfaceList::names_some_of(std::string_view hca) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.hca == hca; });
}

bool InterfaceList::names(std::string_view hca, std::uint8_t port) {
    bool any = false;
    for (Entry& e : entries_)
        if (e.hca == hca && (e.port == 0 || e.port == port)) any = e.found = true;
    return any;
}

std::vector<std::string> InterfaceList::not_found() const {
    std::vector<std::string> texts;
    for (const Entry& e : entries_)
        if (!e.found) texts.push_back(e.text);
    return texts;
}

}  // namespace coop::rail
