// SPDX-License-Identifier: BSD-3-Clause
#include "params.h"

#include "coop/coll/buffers.h"

namespace coop::ag {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;

constexpr const char* kAlgorithms[] = {"auto", "doubling", "bruck", "ring", "neighbour", "node"};
constexpr const char* kRows[] = {"auto", "am", "buffer"};

constexpr ParamRow kParams[] = {
    {.name = "priority",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 100,
     .help = "Priority among the collective components. 0: coll/rdmaag is not used. It is used for MPI_Allgather, "
             "MPI_Allgatherv and their non-blocking forms if this is larger than the priority of the other components "
             "(coll/tuned: 30), for example "
             "40.",
     .level = 2},
    {.name = "short_max",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 32 * kKiB,
     .min = 64,
     .max = coll::kMaxSlotBytes,
     .help = "Longest step of recursive doubling and of Bruck's algorithm that is copied through a buffer of its "
             "receiver; a longer step is written to the receive buffer of MPI_Allgather. Where not all processes "
             "have collective buffers (row), a step must fit the eager limit of the transports, too. A communicator "
             "takes eight such buffers to receive and eight to send, for each step. (M_T of the paper)",
     .level = 5},
    {.name = "ring_min",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 64 * kKiB,
     .min = 0,
     .max = 1024 * kMiB * kKiB,
     .help = "From this length of a block on (for MPI_Allgatherv: the mean), automatic choice takes the ring: among "
             "more than 32 processes, and among any number that is not a power of two.",
     .level = 5},
    {.name = "algorithm",
     .type = ParamType::kChoice,
     .choices = kAlgorithms,
     .help =
         "Algorithm. auto: shared memory if processes share nodes (coll_rdmaag_node), otherwise by the number of "
         "processes and the length of the result. node: shared memory. An algorithm that does not fit the processes "
         "(doubling: a power of two, neighbour: even, node: on shared nodes) is replaced by the automatic choice, but "
         "without shared memory.",
     .level = 5},
    {.name = "report",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 2,
     .help = "1: at the end of the job each process prints how many calls went by which algorithm, and how many were "
             "left to another component, with the reason. 2: also a table of its calls by algorithm, length of a block "
             "and reason, and the times of the trials (coll_rdmaag_tune).",
     .level = 3},
    {.name = "fault",
     .type = ParamType::kString,
     .help = "For tests: makes chosen operations fail. Rules name:n (every n-th call) or name@k (the k-th call), "
             "separated by commas. Names: busy, alloc, sendi, register, get, put, put_busy, slow (a "
             "trial counts as an hour longer), and corrupt_match (short "
             "packets), corrupt_rts (announcements), corrupt_frag (data), corrupt_fin (notices), to which =byte may be "
             "appended. corrupt_match also damages the tails of collective buffers, corrupt_rts the offers of such "
             "buffers.",
     .level = 9},
    {.name = "row",
     .type = ParamType::kChoice,
     .choices = kRows,
     .help = "How short steps travel. am: as active messages. buffer: by RDMA writes into collective buffers of the "
             "receiver, where its transport promises that the last bytes of a write land last, otherwise as active "
             "messages. auto: like buffer, but steps of up to 128 bytes are active messages. am in one process applies "
             "to all.",
     .level = 5},
    {.name = "memory_max",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 8 * kMiB,
     .min = 0,
     .max = 1024 * kMiB,
     .help = "Memory for the collective buffers of all communicators of a process. It is registered as a whole when "
             "the first communicator needs it. A communicator that finds no room has no such buffers.",
     .level = 5},
    {.name = "node",
     .type = ParamType::kInt,
     .default_value = 2,
     .min = 0,
     .max = 2,
     .help =
         "0: all processes use the transports. 1: if all processes of a communicator are on one node, they exchange "
         "blocks through shared memory. 2: also if they share several nodes; then one process of each node uses the "
         "transports. The trials (tune) decide where that is done; without trials, always.",
     .level = 5},
    {.name = "node_slot",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = kMiB,
     .min = kKiB,
     .max = 16 * kMiB,
     .help = "Longest block that a process copies to shared memory for the others of its node. They read a longer one "
             "from its buffer. It is at most 16 KiB for two processes, and node_memory limits it, too.",
     .level = 5},
    {.name = "node_memory",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 16 * kMiB,
     .min = 4 * kKiB,
     .max = 512 * kMiB,
     .help = "Most shared memory for the blocks of a communicator on a node. It holds two blocks of each process, and "
             "exists only as far as it has been written.",
     .level = 5},
    {.name = "tune",
     .type = ParamType::kInt,
     .default_value = 10,
     .min = 0,
     .max = 10,
     .help =
         "Number of trials of each way: each algorithm that may be the fastest and the component of lower priority do "
         "this number of the first calls of a communicator, at most 20 calls in all, for each class of lengths (powers "
         "of two). Then the fastest one does all further calls. 0: no trials. There are none if "
         "coll_rdmaag_algorithm names an algorithm that fits.",
     .level = 5},
};

constexpr ParamPlace<Config> kPlaces[] = {
    {&Config::priority, nullptr},      {&Config::short_max, nullptr},
    {&Config::ring_min, nullptr},      {&Config::algorithm, &Config::algorithm_name},
    {&Config::report, nullptr},        {nullptr, &Config::fault},
    {&Config::row, &Config::row_name}, {&Config::memory_max, nullptr},
    {&Config::node, nullptr},          {&Config::node_slot, nullptr},
    {&Config::node_memory, nullptr},   {&Config::tune, nullptr},
};
constexpr ParamTable<Config> kTable(kParams, kPlaces);
static_assert(kTable.is_valid());

}  // namespace

const ParamTable<Config>& param_table() noexcept { return kTable; }

std::optional<ParamError> check(Config& config) { return kTable.check(config); }

}  // namespace coop::ag
