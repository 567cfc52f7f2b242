// SPDX-License-Identifier: BSD-3-Clause
//
// A list of HCAs and ports, as in btl_openib_if_include: "mlx5_0,mlx5_1:2" is all of mlx5_0 and port 2 of
// mlx5_1. Records which entries were found, so that mistyped ones can be reported.
//
// Threading: none. Errors: a malformed entry is never found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coop::rail {

class InterfaceList {
public:
    explicit InterfaceList(std::string_view text);

    bool empty() const noexcept { return entries_.empty(); }
    // Whether an entry names all ports of the HCA; at least one of its ports; or this port, explicitly or with
    // all ports.
    bool names_all_of(std::string_view hca);
    bool names_some_of(std::string_view hca) const;
    bool names(std::string_view hca, std::uint8_t port);
    std::vector<std::string> not_found() const;

private:
    struct Entry {
        std::string text, hca;
        int port;  // 0: all; -1: not a number
        bool found;
    };
    std::vector<Entry> entries_;
};

}  // namespace coop::rail
