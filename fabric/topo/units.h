// SPDX-License-Identifier: BSD-3-Clause
//
// Quantities on the command line and in files: rates (250MB/s, 10Gbit/s), times
// (1.5us), pairs of times (90us,0.3us), probabilities (0.01, 1%), whole numbers,
// P_Keys. The parsers read the output of each …_text() back as the same value.
//
// Errors: nullopt. The k…Words describe the accepted form, for the message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/shm/segment.h"

namespace coop::fabric {

inline constexpr const char* kRateWords = "a rate such as 250MB/s, 2GB/s or 10Gbit/s, or 'unlimited'";
inline constexpr const char* kLoadWords = "a rate such as 250MB/s, or 'none'";
inline constexpr const char* kTimeWords = "a time such as 800ns, 1.5us, 20ms or 2s";
inline constexpr const char* kRegisterCostWords = "BASE,PER_PAGE: two times such as 90us,0.3us, each at most 1s";
inline constexpr const char* kLossWords = "a probability: 0..1, or 0%..100%";
inline constexpr const char* kPkeyWords =
    "P_Keys such as 0xffff,0x8001: 16 bits each, the upper bit set for full members, 0 for an empty entry";
inline constexpr const char* kSizeWords = "a number of bytes such as 4096, 64KiB or 1GiB";

std::optional<std::uint64_t> parse_rate(std::string_view text);  // bytes/s; 0: unlimited
std::optional<std::uint64_t> parse_load(std::string_view text);  // bytes/s; 0: none
std::optional<std::int64_t> parse_time_ns(std::string_view text);
std::optional<RegisterCost> parse_register_cost(std::string_view text);  // BASE,PER_PAGE
std::optional<std::uint32_t> parse_loss(std::string_view text);          // in units of 2^-32; 0xffffffff is certain
std::optional<std::uint64_t> parse_size_bytes(std::string_view text);
std::optional<std::uint64_t> parse_number(std::string_view text);  // decimal, or hexadecimal after 0x

// Separated by commas; 0 is an empty entry, and 0x8000 is not a key.
std::optional<std::vector<std::uint16_t>> parse_pkeys(std::string_view text);

std::string rate_text(std::uint64_t bytes_per_s);
std::string load_text(std::uint64_t bytes_per_s);
std::string time_text(std::int64_t ns);
std::string register_cost_text(const RegisterCost& cost);
std::string loss_text(std::uint32_t loss);
std::string hex_text(std::uint64_t value);
std::string pkeys_text(const std::vector<std::uint16_t>& keys);

// "--lmc: '9' is not a whole number in 0..7".
Error bad_value(std::string_view name, std::string_view value, std::string_view wanted);

// Parses a whole number; the error names the permitted range.
Error parse_in_range(std::string_view name, std::string_view text, std::uint64_t min, std::uint64_t max,
                     std::uint64_t& value);

// 'required' or 'optional'.
Error parse_grh(std::string_view name, std::string_view text, bool& required);

// One of 256, 512, … 4096.
Error parse_mtu(std::string_view name, std::string_view text, std::uint32_t& mtu_bytes);

}  // namespace coop::fabric
