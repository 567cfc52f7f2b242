// SPDX-License-Identifier: BSD-3-Clause
#include "params.h"

#include <algorithm>
#include <array>

#include "coop/rndv/bounce.h"

namespace coop::pml {
namespace {

constexpr std::int64_t kKiB = 1024, kGiB = 1024 * 1024 * kKiB;

constexpr const char* kOverlaps[] = {"auto", "yes", "no"};
constexpr const char* kFins[] = {"auto", "after", "fenced"};
constexpr const char* kHcas[] = {"off", "on", "auto"};
constexpr const char* kAsyncs[] = {"off", "interrupt", "auto"};

constexpr ParamRow kParams[] = {
    {.name = "priority", .type = ParamType::kInt, .default_value = 5, .min = 0, .max = 100,
     .help = "Priority among the pmls that the parameter pml names. Open MPI 4.1 considers pml/coop only where it is "
             "named there (--mca pml coop, or pml = coop in openmpi-mca-params.conf), whatever its priority.",
     .level = 4},
    {.name = "protocol", .type = ParamType::kChoice, .choices = rndv::kWishNames,
     .help = "How messages beyond the eager limit travel. hybrid: chosen for each message from the calls and the load "
             "of both sides; rget: the receiver reads; rput: the sender writes; send: fragments, copied in and out. "
             "Inside a node also coop: both sides copy, chunk by chunk; coop_fixed: each copies one half; coop_coll: "
             "chosen by the calls of both sides (blocking or not); coop_load: who has less to copy copies. Where "
             "something is not possible the next best is taken and the report says so. A sender's wish goes before "
             "the receiver's, unless it is hybrid.",
     .level = 2, .settable_at_run_time = true},
    {.name = "eager_limit", .type = ParamType::kSize, .unit = "bytes", .default_value = kGiB, .min = 64, .max = kGiB,
     .help = "Largest message that is sent at once, with no handshake. The transport's own eager limit applies "
             "where that is lower (btl_vader_eager_limit, btl_tcp_eager_limit, ...). It cannot be below the size "
             "of a control header.",
     .level = 4},
    {.name = "rndv_inline", .type = ParamType::kSize, .unit = "bytes", .default_value = kGiB, .min = 0, .max = kGiB,
     .help = "Payload that travels beside the RTS of a message which goes by fragments. The transport's "
             "rndv_eager_limit applies where that is lower.",
     .level = 5},
    {.name = "rdma_min", .type = ParamType::kSize, .unit = "bytes", .default_value = 0, .min = 0, .max = 1024 * kGiB,
     .help = "Smallest message that goes by RDMA (rget, rput); shorter ones go by fragments. 0: all that are beyond "
             "the eager limit.",
     .level = 5},
    {.name = "isend_rdma_min", .type = ParamType::kSize, .unit = "bytes", .default_value = 64 * kKiB, .min = 0, .max = 1024 * kGiB,
     .help = "Smallest message that goes by RDMA where its sender does not wait for it (MPI_Isend), between nodes, and nothing "
             "interrupts (async off); shorter ones go by fragments, the first one with the RTS. 0: all that are beyond the eager limit.",
     .level = 5},
    {.name = "rdma_chunk", .type = ParamType::kSize, .unit = "bytes", .default_value = kGiB, .min = 4 * kKiB,
     .max = kGiB,
     .help = "Largest single RDMA operation. The transport's get or put limit applies where that is lower.",
     .level = 5},
    {.name = "rdma_depth", .type = ParamType::kInt, .unit = "operations", .default_value = 4, .min = 1, .max = 1024,
     .help = "RDMA operations of one message that are under way at a time.", .level = 5},
    {.name = "coop_min", .type = ParamType::kSize, .unit = "bytes", .default_value = 32 * kKiB, .min = 0, .max = 1024 * kGiB,
     .help = "Smallest message inside a node that both sides copy under the hybrid protocol; shorter ones are copied by "
             "the receiver. With more processes than cores on the node: four times that.",
     .level = 4, .settable_at_run_time = true},
    {.name = "copy_chunk", .type = ParamType::kSize, .unit = "bytes", .default_value = 512 * kKiB, .min = 16 * kKiB, .max = kGiB,
     .help = "Largest piece of a copy inside a node; between two pieces other messages get their turn. Cooperative "
             "copies of less than eight such pieces are cut into eighths, of 256 KiB or half the message at least.",
     .level = 4, .settable_at_run_time = true},
    {.name = "patience", .type = ParamType::kInt, .unit = "microseconds", .default_value = 2000, .min = 0, .max = 1000000000,
     .help = "Inside a node: how long a side waits for the other one, which is to copy a message or a half of it and makes no progress "
             "with it, before it copies that itself.",
     .level = 5, .settable_at_run_time = true},
    {.name = "rtr_min", .type = ParamType::kSize, .unit = "bytes", .default_value = 64 * kKiB, .min = 0, .max = 1024 * kGiB,
     .help = "Smallest posted receive that is offered to its sender, inside a node: the sender then writes without "
             "asking, even while the receiver computes (RTR). 0: none is offered.",
     .level = 4, .settable_at_run_time = true},
    {.name = "bounce_max", .type = ParamType::kSize, .unit = "bytes", .default_value = rndv::kBounceBytes, .min = 0, .max = rndv::kBounceBytes,
     .help = "Largest message inside a node that a blocking send leaves in shared memory, under the hybrid protocol, where such "
             "messages follow each other with none back in between. 0: none. Each process has 32 such buffers, in memory that is taken "
             "when they are first used.",
     .level = 4, .settable_at_run_time = true},
    {.name = "piece_min", .type = ParamType::kSize, .unit = "bytes", .default_value = 8 * kKiB, .min = 64, .max = kGiB,
     .help = "Average length of the contiguous pieces of a derived datatype from which on they are copied directly, one "
             "by one, inside a node; shorter ones are packed by the sender and unpacked by the receiver.",
     .level = 5, .settable_at_run_time = true},
    {.name = "send_depth", .type = ParamType::kInt, .unit = "fragments", .default_value = 8, .min = 1, .max = 1024,
     .help = "Fragments of one message that are under way at a time when it goes by fragments.", .level = 5},
    {.name = "unexpected_inline", .type = ParamType::kSize, .unit = "bytes", .default_value = 128, .min = 64,
     .max = 64 * kKiB,
     .help = "Room for header and payload in each record of an unexpected message; longer ones take memory from the "
             "heap.",
     .level = 8},
    {.name = "free_list_num", .type = ParamType::kInt, .unit = "items", .default_value = 4, .min = 0, .max = 1 << 20,
     .help = "Requests and message records allocated at start, each.", .level = 8},
    {.name = "free_list_max", .type = ParamType::kInt, .unit = "items", .default_value = -1, .min = -1, .max = 1 << 30,
     .help = "Most requests and message records, each; -1: no limit. A call that would need one more returns MPI_ERR_NO_MEM, unless its "
             "message fits one packet: that waits for room. Beyond that many messages that no receive has asked for, the job ends.",
     .level = 8},
    {.name = "free_list_inc", .type = ParamType::kInt, .unit = "items", .default_value = 64, .min = 1, .max = 1 << 20,
     .help = "Requests and message records allocated when they run out, each time.", .level = 8},
    {.name = "report", .type = ParamType::kInt, .default_value = 0, .min = 0, .max = 2,
     .help = "Report at MPI_Finalize. 1: rank 0 prints which protocol carried how many messages and bytes of which "
             "size, and why. 2: the same per pair of processes.",
     .level = 1},
    {.name = "overlap", .type = ParamType::kChoice, .choices = kOverlaps,
     .help = "Whether this process computes while its messages inside a node travel. auto: as its calls look (blocking ones "
             "wait, nonblocking ones compute); yes: it computes, the other side is to copy; no: it waits, and copies.",
     .level = 3, .settable_at_run_time = true},
    {.name = "async", .type = ParamType::kChoice, .choices = kAsyncs,
     .help = "Whether messages make progress while this process computes, between nodes, over btl/coopib. off: in calls of the "
             "library alone; interrupt: a long message that arrives for a posted receive interrupts, and a thread that sleeps "
             "otherwise starts its transfer; auto: interrupt, unless the node has more processes than cores.",
     .level = 2},
    {.name = "fin", .type = ParamType::kChoice, .choices = kFins,
     .help = "When a receiver that reads a message (rget) tells its sender that it is over, between nodes, over btl/coopib. "
             "after: when the read is complete, which it has to notice; fenced: it posts that message with the read, behind a fence, "
             "and the HCA sends it, but also holds back what is sent later; auto: fenced where an interrupt has started the read.",
     .level = 5},
    {.name = "hca", .type = ParamType::kChoice, .choices = kHcas,
     .help = "Whether HCAs, by loopback over btl/coopib, copy a part of long messages inside a node that both sides copy: as much as they "
             "can do while the CPUs copy the rest, by the rates measured so far. It needs btl/coopib beside btl/vader, a receiver that "
             "waits for that message (MPI_Recv, MPI_Wait, MPI_Waitall), and contiguous buffers. off: never; on: whenever the HCAs have not "
             "enough to do already; auto: likewise, but not where the node has more processes than cores.",
     .level = 3},
    {.name = "hca_min", .type = ParamType::kSize, .unit = "bytes", .default_value = 1024 * kKiB, .min = 128 * kKiB, .max = 1024 * kGiB,
     .help = "Smallest message inside a node of which HCAs copy a part.", .level = 5, .settable_at_run_time = true},
    {.name = "hca_load", .type = ParamType::kInt, .unit = "operations", .default_value = 32, .min = 0, .max = 1 << 20,
     .help = "Large operations that all processes of the node together may have on an HCA, to other nodes and inside this one, before "
             "nothing more inside the node is given to it. 0: nothing ever is.",
     .level = 5, .settable_at_run_time = true},
    {.name = "copy_rate", .type = ParamType::kSize, .unit = "bytes/s", .default_value = 0, .min = 0, .max = 1024 * kGiB,
     .help = "For tests and measurements: the CPU of this process copies no faster than that from and to other processes of its node. "
             "0: as fast as it can.",
     .level = 9},
    {.name = "fault", .type = ParamType::kString,
     .help = "For tests: makes chosen operations fail. Rules name:n (every n-th call) or name@k (the k-th call), "
             "separated by commas; names: busy, alloc, sendi, register, no_id, get, get_busy, put, put_busy, "
             "hca_get, hca_busy, hca_lost, hca_key (copies by HCAs), and "
             "corrupt_match, corrupt_rts, corrupt_cts, corrupt_frag, corrupt_fin, which may end in =byte.",
     .level = 9},
};

// Row by row where the value lies: a number or a text, and for a kChoice the index that counts, and what was given.
constexpr ParamPlace<Config, Setting> kPlaces[] = {
    {&Config::priority, nullptr},          {&Config::protocol, nullptr, &Config::protocol_index},  {&Config::eager_limit, nullptr},
    {&Config::rndv_inline, nullptr},       {&Config::rdma_min, nullptr},       {&Config::isend_rdma_min, nullptr},
    {&Config::rdma_chunk, nullptr},
    {&Config::rdma_depth, nullptr},        {&Config::coop_min, nullptr},       {&Config::copy_chunk, nullptr},
    {&Config::patience, nullptr},
    {&Config::rtr_min, nullptr},           {&Config::bounce_max, nullptr},    {&Config::piece_min, nullptr},      {&Config::send_depth, nullptr},     {&Config::unexpected_inline, nullptr},
    {&Config::free_list_num, nullptr},     {&Config::free_list_max, nullptr},  {&Config::free_list_inc, nullptr},
    {&Config::report, nullptr},            {&Config::overlap, nullptr, &Config::overlap_index}, {&Config::async, &Config::async_name},
    {&Config::fin, &Config::fin_name},     {&Config::hca, &Config::hca_name},  {&Config::hca_min, nullptr},
    {&Config::hca_load, nullptr},          {&Config::copy_rate, nullptr},      {nullptr, &Config::fault},
};
constexpr ParamTable<Config, Setting> kTable(kParams, kPlaces);
static_assert(kTable.is_valid());

// The rows that may be written while the job runs.
constexpr std::size_t kSettableCount = std::count_if(std::begin(kParams), std::end(kParams), [](const ParamRow& row) { return row.settable_at_run_time; });
constexpr auto kSettable = [] {
    std::array<std::size_t, kSettableCount> rows{};
    for (std::size_t i = 0, n = 0; i < std::size(kParams); ++i)
        if (kParams[i].settable_at_run_time) rows[n++] = i;
    return rows;
}();

// Of a row that may be written while the job runs, as Open MPI has it. That writes 4 or 8 aligned bytes at once, under a lock that
// nobody else can take: they are read whole, which ThreadSanitizer cannot know.
__attribute__((no_sanitize("thread"))) std::int64_t given_value(const ParamPlace<Config, Setting>& place, const Config& given) noexcept {
    if (place.index) return *static_cast<const volatile int*>(&(given.*place.index));
    return *reinterpret_cast<const volatile std::int64_t*>(&(given.*place.number));
}

}  // namespace

const ParamTable<Config, Setting>& param_table() noexcept { return kTable; }

std::optional<ParamError> check(Config& config) { return kTable.check(config); }

bool is_rewritten(const Config& given, const Config& config) noexcept {
    return std::any_of(kSettable.begin(), kSettable.end(), [&](std::size_t i) { return given_value(kPlaces[i], given) != config.*kPlaces[i].number; });
}

std::optional<ParamError> take_rewritten(const Config& given, Config& config) {
    std::optional<ParamError> first;
    for (std::size_t i : kSettable) {
        const std::int64_t value = given_value(kPlaces[i], given);
        auto error = check(kParams[i], value);
        if (!error) config.*kPlaces[i].number = value;
        else if (!first) first = std::move(error);
    }
    return first;
}

}  // namespace coop::pml
