// SPDX-License-Identifier: BSD-3-Clause
//
// Port records for the tests of path/.
#pragma once

#include <cstdint>

#include "coop/path/port.h"

namespace coop::path::test {

inline PortRecord ib_port(std::uint8_t hca, std::uint16_t lid, std::uint8_t lmc = 0, std::uint8_t subnet = 0) {
    PortRecord port;
    port.hca = hca;
    port.position = hca;
    port.lid = lid;
    port.lmc = lmc;
    port.max_dest_rd_atomic = 16;
    port.has_srq = 1;
    port.rate_mbytes_per_s = 12500;
    port.ud_qpn = 100u + hca;
    port.ud_qkey = 7;
    port.gid = {0xfe,
                0x80,
                0,
                0,
                0,
                0,
                0,
                subnet,
                0,
                0,
                0,
                0,
                0,
                0,
                static_cast<std::uint8_t>(lid >> 8),
                static_cast<std::uint8_t>(lid)};
    return port;
}

inline PortRecord roce_port(std::uint8_t hca, const Gid& gid, std::uint8_t version = 2) {
    PortRecord port = ib_port(hca, 0);
    port.link_layer = LinkLayer::kEthernet;
    port.roce = version;
    port.gid = gid;
    return port;
}

inline Gid ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}

}  // namespace coop::path::test
