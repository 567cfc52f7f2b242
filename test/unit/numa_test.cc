// SPDX-License-Identifier: BSD-3-Clause
//
// node/numa.h, with machines described by files in a folder.
#include "coop/node/numa.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace coop::node {
namespace {

CpuSet cpus(std::initializer_list<std::size_t> numbers) {
    CpuSet set(64);
    for (std::size_t i : numbers) set[i] = true;
    return set;
}

using Distances = std::vector<std::uint32_t>;

class Numa : public testing::Test {
protected:
    Numa() : root_(testing::TempDir() + "numa." + std::to_string(getpid())) {}
    ~Numa() override { std::filesystem::remove_all(root_); }

    void write(const std::string& file, const std::string& text) {
        const std::filesystem::path path = root_ + "/" + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << '\n';
    }
    void node(const std::string& number, const std::string& list, const std::string& row) {
        write("nodes/node" + number + "/cpulist", list);
        write("nodes/node" + number + "/distance", row);
    }
    void device(const std::string& name, const std::string& node) { write(name + "/device/numa_node", node); }

    Distances measure(std::initializer_list<const char*> names, const CpuSet& own) {
        std::vector<std::string> devices;
        for (const char* name : names) devices.push_back(root_ + "/" + name);
        return distances(devices, own, root_ + "/nodes");
    }

    std::string root_;
};

TEST_F(Numa, a_bound_process_is_nearer_to_the_device_of_its_node) {
    node("0", "0-1,4-5", "10 21");
    node("1", "2-3,6-7", "21 10");
    device("a", "0");
    device("b", "1");
    EXPECT_EQ(measure({"a", "b"}, cpus({5})), (Distances{10, 21}));
    EXPECT_EQ(measure({"a", "b"}, cpus({2, 6})), (Distances{21, 10}));
}

TEST_F(Numa, a_process_on_all_nodes_is_equally_near_to_all_devices) {
    node("0", "0-1", "10 21");
    node("1", "2-3", "21 10");
    device("a", "0");
    device("b", "1");
    EXPECT_EQ(measure({"a", "b"}, cpus({0, 1, 2, 3})), (Distances{10, 10}));
}

TEST_F(Numa, nodes_may_have_gaps_in_their_numbers_and_more_than_one_digit) {
    node("2", "0", "10 16 32");
    node("8", "1", "16 10 32");
    node("11", "2", "32 32 10");
    device("a", "8");
    device("b", "11");
    EXPECT_EQ(measure({"a", "b"}, cpus({0})), (Distances{16, 32}));
    EXPECT_EQ(measure({"b", "a"}, cpus({2})), (Distances{10, 32}));
}

TEST_F(Numa, a_device_without_a_node_has_no_distance) {
    node("0", "0-1", "10");
    device("a", "-1");
    device("b", "7");
    EXPECT_EQ(measure({"a", "b", "not_there"}, cpus({0})),
              (Distances{kUnknownDistance, kUnknownDistance, kUnknownDistance}));
}

TEST_F(Numa, a_machine_with_missing_or_malformed_files_has_no_distances) {
    device("a", "0");
    EXPECT_EQ(measure({"a"}, cpus({0})), Distances{kUnknownDistance});
    node("0", "0-,x,3-1,99999999999", "ten");
    EXPECT_EQ(measure({"a"}, cpus({0})), Distances{kUnknownDistance});
    node("0", "0", "ten");
    EXPECT_EQ(measure({"a"}, cpus({0})), Distances{kUnknownDistance});
    node("0", "0", "");
    EXPECT_EQ(measure({"a"}, cpus({0})), Distances{kUnknownDistance});
    EXPECT_EQ(measure({"a"}, {}), Distances{kUnknownDistance});
}

TEST(Site23Nearest, keeps_the_near_devices_in_their_order) {
    const std::uint32_t distances[] = {21, 10, 21, 10, 255, 10};
    EXPECT_EQ(nearest(distances, 4), (std::vector<std::size_t>{0, 1, 3, 5}));
    EXPECT_EQ(nearest(distances, 2), (std::vector<std::size_t>{1, 3}));
    EXPECT_EQ(nearest(distances, 9).size(), 6u);
    EXPECT_TRUE(nearest({}, 3).empty());
}

TEST(OwnCpus, has_the_one_we_run_on_and_no_more_than_the_affinity) {
    const CpuSet own = own_cpus();
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    std::size_t set = 0;
    for (std::size_t i = 0; i < own.size(); ++i) set += own[i];
    EXPECT_EQ(set, static_cast<std::size_t>(CPU_COUNT(&mask)));
    EXPECT_TRUE(own[static_cast<std::size_t>(sched_getcpu())]);
}

}  // namespace
}  // namespace coop::node
