// SPDX-License-Identifier: BSD-3-Clause
//
// node/cpu_limit.h: the limits of a process's control groups, from texts in Linux's formats, and from a tree of such
// files.
#include "coop/node/cpu_limit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sched.h>
#include <unistd.h>

namespace coop::node {
namespace {

using Groups = std::vector<CpuGroup>;

constexpr char kVersion1[] =
    "25 1 0:22 / / rw - ext4 /dev/vda rw\n"
    "30 25 0:26 / /sys/fs/cgroup/cpuset rw,nosuid shared:8 - cgroup cgroup rw,cpuset\n"
    "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid,nodev shared:9 - cgroup cgroup rw,cpu,cpuacct\n";
constexpr char kVersion2[] =
    "25 1 0:22 / / rw - ext4 /dev/vda rw\n"
    "42 25 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

// --- the groups ----------------------------------------------------------------------

TEST(Site14Groups, of_version_2_are_the_process_s_and_those_above_it) {
    EXPECT_EQ(cpu_groups("0::/user.slice/job_7/step\n", kVersion2),
              (Groups{{"/sys/fs/cgroup/user.slice/job_7/step", true},
                      {"/sys/fs/cgroup/user.slice/job_7", true},
                      {"/sys/fs/cgroup/user.slice", true},
                      {"/sys/fs/cgroup", true}}));
    EXPECT_EQ(cpu_groups("0::/\n", kVersion2), (Groups{{"/sys/fs/cgroup", true}}));
}

TEST(Site14Groups, of_version_1_are_those_of_the_cpu_controller) {
    EXPECT_EQ(cpu_groups("5:cpuset:/other\n4:cpu,cpuacct:/slurm/job\n1:name=systemd:/x\n", kVersion1),
              (Groups{{"/sys/fs/cgroup/cpu,cpuacct/slurm/job", false},
                      {"/sys/fs/cgroup/cpu,cpuacct/slurm", false},
                      {"/sys/fs/cgroup/cpu,cpuacct", false}}));
    EXPECT_EQ(cpu_groups("5:cpuset:/other\n4:cpuacct:/x\n", kVersion1), Groups{})
        << "cpuset and cpuacct are other controllers";
}

TEST(Site14Groups, of_both_versions_at_once_are_both) {
    const std::string both = std::string(kVersion1) +
                             "42 25 0:30 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw\n";
    EXPECT_EQ(cpu_groups("1:cpu:/a\n0::/\n", both), (Groups{{"/sys/fs/cgroup/cpu,cpuacct/a", false},
                                                            {"/sys/fs/cgroup/cpu,cpuacct", false},
                                                            {"/sys/fs/cgroup/unified", true}}));
}

// A container sees a part of the tree at the mount point, and its group under the name that it has outside.
TEST(Site14Groups, of_a_container_are_below_what_is_mounted_there) {
    const char* const mounted = "31 25 0:27 /docker/4f2a /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
    EXPECT_EQ(cpu_groups("4:cpu:/docker/4f2a\n", mounted), (Groups{{"/sys/fs/cgroup/cpu", false}}));
    EXPECT_EQ(cpu_groups("4:cpu:/docker/4f2a/inner\n", mounted),
              (Groups{{"/sys/fs/cgroup/cpu/inner", false}, {"/sys/fs/cgroup/cpu", false}}));
    EXPECT_EQ(cpu_groups("4:cpu:/docker/4f2abc\n", mounted), (Groups{{"/sys/fs/cgroup/cpu", false}}))
        << "another one, not below it";
    EXPECT_EQ(cpu_groups("4:cpu:/\n", mounted), (Groups{{"/sys/fs/cgroup/cpu", false}}));
    EXPECT_EQ(cpu_groups("0::/../../other\n", kVersion2), (Groups{{"/sys/fs/cgroup", true}}))
        << "outside of the name space";
}

TEST(Site14Groups, paths_with_spaces_are_understood) {
    EXPECT_EQ(cpu_groups("0::/a b\n", "42 25 0:30 / /sys/fs/my\\040groups rw - cgroup2 none rw\n"),
              (Groups{{"/sys/fs/my groups/a b", true}, {"/sys/fs/my groups", true}}));
}

TEST(Site14Groups, there_are_none_in_malformed_texts) {
    for (const char* text : {"", "\n", "::", "4:cpu", "0", "garbage", "4:cpu:/x\n0::/y"})
        EXPECT_EQ(cpu_groups(text, ""), Groups{}) << text;
    for (const char* text :
         {"", "\n\n", "- cgroup2", "1 2 3", "1 2 3 4 5 6", "1 2 3 / /x - ", "1 2 3 / /x rw - cgroup"})
        EXPECT_EQ(cpu_groups("4:cpu:/x\n", text), Groups{}) << text;
}

// --- a limit ---------------------------------------------------------------------------

TEST(Site14Limit, of_version_2_is_quota_and_period_in_one_line) {
    EXPECT_EQ(limit_of("150000 100000\n"), 1.5);
    EXPECT_EQ(limit_of("25000 100000\n"), 0.25);
    EXPECT_EQ(limit_of("max 100000\n"), kNoLimit);
    for (const char* text : {"", "\n", "max", "100000", "0 100000", "-5 100000", "100000 0", "x y", "100000 100000 7"})
        EXPECT_EQ(limit_of(text), kNoLimit) << text;
}

TEST(Site14Limit, of_version_1_is_quota_and_period_in_two_files) {
    EXPECT_EQ(limit_of("400000\n", "100000\n"), 4);
    EXPECT_EQ(limit_of("-1\n", "100000\n"), kNoLimit);
    EXPECT_EQ(limit_of("400000\n", ""), kNoLimit);
    EXPECT_EQ(limit_of("", ""), kNoLimit);
}

struct Tree : ::testing::Test {
    void SetUp() override {
        char name[] = "/tmp/coop-cpu-limit.XXXXXX";
        ASSERT_TRUE(mkdtemp(name));
        root = name;
    }
    void TearDown() override { std::filesystem::remove_all(root); }
    void write(const std::string& file, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(root + file).parent_path());
        std::ofstream(root + file) << text;
    }
    std::string root;
};
struct Site14Tree : Tree {};

TEST_F(Site14Tree, the_least_limit_on_the_way_up_holds) {
    write("/proc/self/cgroup", "0::/slice/job/step\n");
    write("/proc/self/mountinfo", kVersion2);
    EXPECT_EQ(cpu_limit(root), kNoLimit);
    write("/sys/fs/cgroup/slice/cpu.max", "800000 100000\n");
    EXPECT_EQ(cpu_limit(root), 8);
    write("/sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
    EXPECT_EQ(cpu_limit(root), 8);
    write("/sys/fs/cgroup/slice/job/step/cpu.max", "50000 25000\n");
    EXPECT_EQ(cpu_limit(root), 2);
    write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    EXPECT_EQ(cpu_limit(root), 1);
}

TEST_F(Site14Tree, files_of_version_1_are_read_too) {
    write("/proc/self/cgroup", "4:cpu,cpuacct:/job\n");
    write("/proc/self/mountinfo", kVersion1);
    write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
    write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(cpu_limit(root), 3);
}

TEST_F(Site14Tree, without_any_such_file_there_is_no_limit) { EXPECT_EQ(cpu_limit(root), kNoLimit); }

TEST(Site14Limit, of_this_process_is_positive) { EXPECT_GT(cpu_limit(), 0); }

// --- crowded -----------------------------------------------------------------------------

TEST(Site14Crowded, is_more_processes_than_cpus_or_than_time_on_them) {
    EXPECT_FALSE(is_crowded(4, 4, kNoLimit));
    EXPECT_TRUE(is_crowded(5, 4, kNoLimit));
    EXPECT_FALSE(is_crowded(4, 64, 4));
    EXPECT_TRUE(is_crowded(4, 64, 3.9));
    EXPECT_FALSE(is_crowded(1, 1, 1));
    EXPECT_TRUE(is_crowded(1, 1, 0.5));
}

TEST(Site14Cpus, of_a_process_are_those_that_it_may_run_on) {
    const CpuSet mine = own_cpus();
    ASSERT_GT(count(mine), 0u);
    EXPECT_EQ(cpus_of(static_cast<std::int32_t>(getpid())), mine);
    EXPECT_EQ(count(cpus_of(-1)), 0u) << "no such process";
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t i = 0; i < mine.size(); ++i)
        if (mine[i] && CPU_COUNT(&one) == 0) CPU_SET(i, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(count(own_cpus()), 1u);
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Site14Cpus, of_several_processes_are_counted_once) {
    CpuSet all{true, false, true};
    add(all, {false, false, true, true});
    EXPECT_EQ(count(all), 3u);
    add(all, {});
    EXPECT_EQ(count(all), 3u);
    EXPECT_EQ(count({}), 0u);
}

}  // namespace
}  // namespace coop::node
