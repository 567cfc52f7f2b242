// SPDX-License-Identifier: BSD-3-Clause
#include "params.h"

namespace coop::osc {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;

constexpr ParamRow kParams[] = {
    {.name = "priority",
     .type = ParamType::kInt,
     .default_value = kDefaultPriority,
     .min = 0,
     .max = 1000,
     .help = "Priority among the one-sided components. 0: osc/multirail is not used. It is used for windows if this is "
             "larger than the priority of the other components that can serve the window (osc/rdma: 101, osc/sm: 100, "
             "osc/ucx: 60, osc/pt2pt: 10), or if --mca osc names it alone.",
     .level = 2},
    {.name = "frame_bytes",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 32 * kKiB,
     .min = kKiB,
     .max = kMiB,
     .help = "Size of a frame, in which operations that travel as messages to one target are collected. It is sent "
             "when it is full and at the next synchronization. A frame is never longer than the longest packet that "
             "all transports of the window can carry.",
     .level = 5},
    {.name = "open_frames",
     .type = ParamType::kInt,
     .default_value = 256,
     .min = 1,
     .max = 1 << 20,
     .help =
         "Most targets of a window for which operations are collected at the same time. For a further one, the frame "
         "that has been used least recently is sent.",
     .level = 6},
    {.name = "direct_min",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 4 * kKiB,
     .min = 1,
     .max = 1024 * kMiB * kKiB,
     .help = "From this length on, a put or get of one block at the origin is executed by RDMA, if the transport has "
             "RDMA and the memory of the target is registered. If it has several blocks at the target, their average "
             "counts. Shorter ones are collected as messages, or go through staging memory where HCAs execute the "
             "epoch.",
     .level = 5},
    {.name = "rendezvous_min",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 128 * kKiB,
     .min = 1,
     .max = 1024 * kMiB * kKiB,
     .help = "From this length on, a contiguous put or get of one block that the target has to execute travels as a "
             "message of the PML, which moves long blocks faster than frames: inside of a node, for example, both "
             "processes copy. MPI_Rput and dynamic windows use frames.",
     .level = 5},
    {.name = "shared_memory",
     .type = ParamType::kInt,
     .default_value = 1,
     .min = 0,
     .max = 1,
     .help = "1: the processes of a node share the memory of windows of MPI_Win_allocate. 0: they share only that of "
             "MPI_Win_allocate_shared. 0 in one process applies to all.",
     .level = 5},
    {.name = "cma",
     .type = ParamType::kInt,
     .default_value = 1,
     .min = 0,
     .max = 1,
     .help = "Whether a process reads and writes the memory of other processes of its node by system calls (CMA) where "
             "it is not shared: in windows made by MPI_Win_create and MPI_Win_create_dynamic. It is tried for each "
             "window, and messages are used where the kernel does not permit it. 0: messages. 0 in one process, or 0 "
             "for osc_multirail_shared_memory, applies to all.",
     .level = 5},
    {.name = "cma_min",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 16 * kKiB,
     .min = 1,
     .max = 1024 * kMiB * kKiB,
     .help =
         "In active epochs, a put or get whose blocks have at least this length on average is copied by CMA. Shorter "
         "ones are messages, which are collected: a system call takes longer than a short message. In passive "
         "epochs, CMA is used for all lengths, since it does not need the target.",
     .level = 5},
    {.name = "hca_control",
     .type = ParamType::kInt,
     .default_value = 1,
     .min = 0,
     .max = 1,
     .help =
         "1: HCAs execute the locks, transfers and accumulates of passive epochs, so that they end even while the "
         "target computes without calling MPI. This needs RDMA and 64-bit atomic operations to all processes of the "
         "window, and registered memory. 0: the target executes locks, accumulates and short transfers when it "
         "calls MPI. 0 in one process applies to all.",
     .level = 5},
    {.name = "target_helps",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 1,
     .help =
         "1: in passive epochs, puts and gets of many short blocks, and short ones that follow each other closely, are "
         "messages that the target executes. That is many times faster if the targets call MPI often or have the "
         "asynchronous handler (pml_coop_async); a target that does neither delays them. 0: HCAs execute each block "
         "by itself, and the target does nothing.",
     .level = 4},
    {.name = "signals",
     .type = ParamType::kInt,
     .default_value = 1,
     .min = 0,
     .max = 2,
     .help = "1: MPI_Win_complete sends a signal behind the RDMA writes on each rail that has carried some, and the "
             "target counts "
             "them. So it learns of the end of an epoch before the writes are acknowledged, and sees what all HCAs "
             "have written. "
             "0: the origin waits for the acknowledgements, and then tells the target. 2: fences of up to 8 processes "
             "end by "
             "signals, too, and need a barrier only behind short operations. This pays where the latency of the "
             "network is what "
             "limits, not the processors. A smaller value in one process applies to the fences of all.",
     .level = 5},
    {.name = "read_behind",
     .type = ParamType::kInt,
     .default_value = 1,
     .min = 0,
     .max = 1,
     .help =
         "1: where a target has several HCAs, a flush, an unlock or a fence reads a byte behind "
         "the RDMA writes on each rail that has carried some, so that what one HCA has written is visible to those who "
         "read through another one. Epochs that end by signals need no such reads. 0: these calls wait for the "
         "acknowledgements of the writes alone, which saves a short read for each rail.",
     .level = 5},
    {.name = "report",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 2,
     .help =
         "1: each process prints how many operations on a window took which way, and why, when the window is freed "
         "(for the first 32 windows), and the sums at the end of the job. 2: also tables by way, length and reason.",
     .level = 3},
    {.name = "fault",
     .type = ParamType::kString,
     .help =
         "For tests: makes chosen operations fail. Rules name:n (every n-th call) or name@k (the k-th call), "
         "separated by commas. Names: busy, alloc, sendi, register, put, put_busy, get, get_busy, and corrupt_match "
         "(frames), corrupt_fin (replies), to which =byte may be appended.",
     .level = 9},
};

constexpr ParamPlace<Config> kPlaces[] = {
    {&Config::priority, nullptr},     {&Config::frame_bytes, nullptr},    {&Config::open_frames, nullptr},
    {&Config::direct_min, nullptr},   {&Config::rendezvous_min, nullptr}, {&Config::shared_memory, nullptr},
    {&Config::cma, nullptr},          {&Config::cma_min, nullptr},        {&Config::hca_control, nullptr},
    {&Config::target_helps, nullptr}, {&Config::signals, nullptr},        {&Config::read_behind, nullptr},
    {&Config::report, nullptr},       {nullptr, &Config::fault},
};
constexpr ParamTable<Config> kTable(kParams, kPlaces);
static_assert(kTable.is_valid());

}  // namespace

const ParamTable<Config>& param_table() noexcept { return kTable; }

std::optional<ParamError> check(Config& config) { return kTable.check(config); }

}  // namespace coop::osc
