// SPDX-License-Identifier: BSD-3-Clause
#include "params.h"

namespace coop::ag {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;

constexpr const char* kAlgorithms[] = {"auto", "doubling", "bruck", "ring", "neighbour"};

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
     .default_value = 12 * kKiB,
     .min = 64,
     .max = 64 * kKiB,
     .help = "Longest step of recursive doubling and of Bruck's algorithm that is copied through a buffer of its "
             "receiver; a longer step is written to the receive buffer of MPI_Allgather. The eager limit of the "
             "transports limits it, too. Each communicator takes eight such buffers for each step. (M_T of the paper)",
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
     .help = "Algorithm. auto: by the number of processes and the length of the result. An algorithm that does not fit "
             "the number of processes (doubling: a power of two, neighbour: even) is replaced by the automatic choice.",
     .level = 5},
    {.name = "report",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 1,
     .help = "1: at the end of the job each process prints how many calls went by which algorithm, and how many were "
             "left to another component, with the reason.",
     .level = 3},
    {.name = "fault",
     .type = ParamType::kString,
     .help = "For tests: makes chosen operations fail. Rules name:n (every n-th call) or name@k (the k-th call), "
             "separated by commas. Names: busy, alloc, sendi, register, put, put_busy, and corrupt_match (short "
             "packets), corrupt_rts (announcements), corrupt_frag (data), corrupt_fin (notices), to which =byte may be "
             "appended.",
     .level = 9},
};

constexpr ParamPlace<Config> kPlaces[] = {
    {&Config::priority, nullptr}, {&Config::short_max, nullptr},
    {&Config::ring_min, nullptr}, {&Config::algorithm, &Config::algorithm_name},
    {&Config::report, nullptr},   {nullptr, &Config::fault},
};
constexpr ParamTable<Config> kTable(kParams, kPlaces);
static_assert(kTable.is_valid());

}  // namespace

const ParamTable<Config>& param_table() noexcept { return kTable; }

std::optional<ParamError> check(Config& config) { return kTable.check(config); }

}  // namespace coop::ag
