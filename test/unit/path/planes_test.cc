// SPDX-License-Identifier: BSD-3-Clause
//
// path/planes.h: the parameter `pairing`.
#include "coop/path/planes.h"

#include <gtest/gtest.h>

#include "ports.h"

namespace coop::path {
namespace {

using test::ib_port;

Planes planes(std::string_view text) {
    const auto parsed = parse_planes(text);
    EXPECT_TRUE(std::holds_alternative<Planes>(parsed)) << text;
    return std::holds_alternative<Planes>(parsed) ? std::get<Planes>(parsed) : Planes{};
}

PortRecord port_of(std::uint8_t number) {
    PortRecord port = ib_port(2, 8);
    port.port = number;
    return port;
}

TEST(Site03Planes, by_rate_no_port_has_one) {
    EXPECT_EQ(planes("rate").of("mlx5_0", port_of(1)), 0);
    EXPECT_EQ(planes(" rate "), Planes{});
}

TEST(Site03Planes, by_position_each_place_on_the_node_is_one) {
    EXPECT_EQ(planes("position").of("mlx5_2", port_of(1)), 3);
    EXPECT_EQ(planes("position").of("mlx5_2", port_of(2)), 3);
}

TEST(Site03Planes, of_a_list_are_those_of_hcas_and_ports) {
    const Planes list = planes("mlx5_0=1, mlx5_1:2=0,mlx5_1=9999");
    EXPECT_EQ(list.of("mlx5_0", port_of(1)), 2);
    EXPECT_EQ(list.of("mlx5_0", port_of(2)), 2);
    EXPECT_EQ(list.of("mlx5_1", port_of(2)), 1) << "the port's plane goes before the HCA's";
    EXPECT_EQ(list.of("mlx5_1", port_of(1)), 10000);
    EXPECT_EQ(list.of("mlx5_2", port_of(1)), 0) << "not named";
}

TEST(Site03Planes, anything_else_is_refused_with_what_is_allowed) {
    for (const char* text : {"", "fast", "rate,position", "mlx5_0", "mlx5_0=", "=1", "mlx5_0=10000", "mlx5_0=-1",
                             "mlx5_0=1x", "mlx5_0:=1", "mlx5_0:0=1", "mlx5_0:256=1", "mlx5_0:x=1", "mlx5_0=1,",
                             ",mlx5_0=1", "mlx5_0=1,mlx5_0=2", "mlx5_0:1=1,mlx5_0:1=1", "a=1,,b=2"}) {
        const auto parsed = parse_planes(text);
        ASSERT_TRUE(std::holds_alternative<std::string>(parsed)) << text;
        EXPECT_EQ(std::get<std::string>(parsed),
                  "rate, position, or a list such as mlx5_0=1,mlx5_1:2=2: HCA or HCA:port, and the number of its "
                  "plane, 0..9999");
    }
}

}  // namespace
}  // namespace coop::path
