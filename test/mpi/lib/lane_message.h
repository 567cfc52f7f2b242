// SPDX-License-Identifier: BSD-3-Clause
// For tests of the lane of pml/coop: the arguments of a program, messages whose data is checked, and the memory of the lane.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "mpi_test.h"

using Bytes = std::vector<unsigned char>;

inline int as_int(std::size_t n) { return static_cast<int>(n); }
inline bool refused() { return !mpitest::settings().arguments.empty(); }
inline bool told(const char* word) { return refused() && mpitest::settings().arguments[0] == word; }

inline std::uint64_t key_of(int from, int to, int i) {
    return pattern::key(
        {static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to), static_cast<std::uint64_t>(i)});
}

struct Message {
    Bytes data;
    std::uint64_t key;
    Message(std::size_t bytes, std::uint64_t of) : data(bytes + 8, 0x5a), key(of) {}
    std::size_t bytes() const { return data.size() - 8; }
    void fill() { pattern::fill(key, 0, data.data(), bytes()); }
    void check() const {
        CHECK_PATTERN(key, data.data(), bytes());
        CHECK_UNTOUCHED(0x5a, data.data() + bytes(), 8);
    }
};

// How much memory of lanes this process has touched, in KiB.
inline std::size_t lane_kib() {
    std::ifstream maps("/proc/self/smaps");
    std::string line;
    bool is_lane = false;
    std::size_t kib = 0;
    while (std::getline(maps, line)) {
        if (line.find('-') < line.find(' ')) is_lane = line.find("/memfd:") != std::string::npos;
        else if (is_lane && line.compare(0, 4, "Rss:") == 0) kib += std::stoul(line.substr(4));
    }
    return kib;
}
