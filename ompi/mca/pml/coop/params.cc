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
    {.name = "priority",
     .type = ParamType::kInt,
     .default_value = 5,
     .min = 0,
     .max = 100,
     .help = "Priority among the components that the parameter pml names. Open MPI 4.1 considers pml/coop only if pml "
             "names it (--mca pml coop, or pml = coop in openmpi-mca-params.conf), whatever its priority.",
     .level = 4},
    {.name = "protocol",
     .type = ParamType::kChoice,
     .choices = rndv::kWishNames,
     .help = "Protocol of messages above the eager limit. hybrid: chosen for each message from the MPI calls and the "
             "load of both sides; rget: the receiver reads; rput: the sender writes; send: fragments, copied in and "
             "out. Inside a node also coop: both sides copy, chunk by chunk; coop_fixed: each side copies one half; "
             "coop_coll: chosen from the MPI calls of both sides (blocking or not); coop_load: the side that has less "
             "to copy copies. If a protocol is not possible, the next best is used, and the report says so. The "
             "sender's choice takes precedence over the receiver's, unless it is hybrid.",
     .level = 2,
     .settable_at_run_time = true},
    {.name = "eager_limit",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = kGiB,
     .min = 64,
     .max = kGiB,
     .help = "Largest message that is sent at once, without a handshake. If the transport's own eager limit is lower, "
             "that applies (btl_vader_eager_limit, btl_tcp_eager_limit, ...). The limit of the transport must have "
             "room for a control packet.",
     .level = 4},
    {.name = "rndv_inline",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = kGiB,
     .min = 0,
     .max = kGiB,
     .help = "Payload that is sent together with the RTS of a message that uses fragments. If the transport's "
             "rndv_eager_limit is lower, that applies.",
     .level = 5},
    {.name = "rdma_min",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 0,
     .min = 0,
     .max = 1024 * kGiB,
     .help = "Smallest message that uses RDMA; shorter ones use fragments. 0: all messages above the eager limit. If "
             "the parameter protocol is rget or rput, this limit does not apply.",
     .level = 5},
    {.name = "isend_rdma_min",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 0,
     .min = 0,
     .max = 1024 * kGiB,
     .help = "Smallest message between nodes that uses RDMA if its sender does not wait for it (MPI_Isend) and "
             "asynchronous progress is off (parameter async); shorter ones use fragments, the first of which is sent "
             "with the RTS. 1: all messages above the eager limit use RDMA. 0: these, or only those from 65536 bytes "
             "on, depending on the speed of the link, the measured speed of copies in this process, and the measured "
             "pace of such messages to the peer. If the parameter protocol is rget or rput, this limit does not apply.",
     .level = 5},
    {.name = "rdma_chunk",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = kGiB,
     .min = 4 * kKiB,
     .max = kGiB,
     .help = "Largest single RDMA operation between nodes (inside a node: copy_chunk). If the transport's get or put "
             "limit is lower, that applies.",
     .level = 5},
    {.name = "rdma_depth",
     .type = ParamType::kInt,
     .unit = "operations",
     .default_value = 4,
     .min = 1,
     .max = 1024,
     .help = "RDMA operations of one message that may be in flight at a time.",
     .level = 5},
    {.name = "coop_min",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 64 * kKiB,
     .min = 0,
     .max = 1024 * kGiB,
     .help = "Smallest message inside a node that both sides copy under the hybrid protocol; shorter ones are copied "
             "by the receiver. On a node with more processes than cores, twice this value applies.",
     .level = 4,
     .settable_at_run_time = true},
    {.name = "copy_chunk",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 512 * kKiB,
     .min = 16 * kKiB,
     .max = kGiB,
     .help = "Bytes of a copy inside a node after which other messages make progress. A cooperative copy of less than "
             "eight times this value is divided into eighths, but into parts of at least 256 KiB or half the message.",
     .level = 4,
     .settable_at_run_time = true},
    {.name = "patience",
     .type = ParamType::kInt,
     .unit = "microseconds",
     .default_value = 2000,
     .min = 0,
     .max = 1000000000,
     .help = "Inside a node: time without progress after which a side takes over the copy, or the half of it, that the "
             "other side should make.",
     .level = 5,
     .settable_at_run_time = true},
    {.name = "rtr_min",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 64 * kKiB,
     .min = 0,
     .max = 1024 * kGiB,
     .help = "Smallest posted receive that is offered to its sender, inside a node. The sender then writes without a "
             "handshake, even while the receiver computes (RTR). 0: no receive is offered.",
     .level = 4,
     .settable_at_run_time = true},
    {.name = "bounce_max",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = rndv::kBounceBytes,
     .min = 0,
     .max = rndv::kBounceBytes,
     .help = "Largest message inside a node that a blocking send leaves in shared memory, under the hybrid protocol. "
             "This applies to consecutive blocking sends in one direction. 0: none. Each process has 32 such buffers, "
             "whose memory is allocated at first use.",
     .level = 4,
     .settable_at_run_time = true},
    {.name = "lane",
     .type = ParamType::kInt,
     .default_value = 1,
     .min = 0,
     .max = 1,
     .help =
         "Whether messages inside a node go through a lane: memory that both processes share, without a transport. "
         "0: no; 1: short ones (lane_small_max) and medium ones (lane_max) do, after the first lane_after messages to "
         "the process, unless the parameter btl excludes btl/vader.",
     .level = 3},
    {.name = "lane_small_max",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 8 * kKiB,
     .min = 64,
     .max = 64 * kKiB,
     .help =
         "Largest message that always goes through the lane in one packet, without a handshake, up to three eighths of "
         "a ring (lane_memory); lane_max is the limit of longer ones. With lane_max -1, on a node with more processes "
         "than cores where the kernel can copy messages, contiguous ones above 8 KiB go so only after enough of them "
         "have been sent to pay for a longer ring, and synchronous ones never.",
     .level = 5},
    {.name = "lane_max",
     .type = ParamType::kInt,
     .unit = "bytes",
     .default_value = -1,
     .min = -1,
     .max = kGiB,
     .help =
         "Largest message above lane_small_max that goes through the lane, under the protocols send and hybrid: in one "
         "packet if the ring has room for it, otherwise in fragments if its sender waits (MPI_Send) or the kernel "
         "denies copies. 0: none. -1: each process measures up to which length the lane is quicker than a copy by "
         "the kernel, at most 128 KiB or half of a ring (lane_memory), and with more processes than cores at most "
         "32 KiB, and only in one packet; the report shows the result. With -1, messages of 64 KiB and more that both "
         "sides wait for use the lane, too, if "
         "trials show that this is quicker.",
     .level = 4,
     .settable_at_run_time = true},
    {.name = "lane_read_min",
     .type = ParamType::kInt,
     .unit = "bytes",
     .default_value = -1,
     .min = -1,
     .max = kGiB,
     .help =
         "Shortest message that its receiver copies from the sender's memory while the sender waits (MPI_Send): one "
         "copy by the kernel instead of two through the lane, without a handshake. If the receiver makes no call, "
         "the sender writes the message into the lane after 40 us or more. Messages below 2 KiB or above three "
         "eighths of a ring (lane_memory) never go so; nor do, with lane_max -1, those above 128 KiB, otherwise "
         "those above the larger of lane_max and lane_small_max. -1: those up to 128 KiB for which it is quickest, "
         "from what is measured for lane_max. Only under hybrid, between processes of a job that copy by CMA and "
         "do not outnumber the CPUs, below MPI_THREAD_MULTIPLE. 1g: no message.",
     .level = 5},
    {.name = "lane_memory",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 32 * 1024 * kKiB,
     .min = 16 * kKiB,
     .max = 8 * kGiB,
     .help = "Memory for the lane in each process, at most: one ring for each other process of the node, and 8 "
             "for processes of other jobs, of 16 KiB to twice the second-level cache (between 1 and 4 MiB). A ring "
             "uses no memory before its process sends through it. Beside each ring there are 2112 bytes for answers, "
             "which are not "
             "counted. Processes without a ring use the transports.",
     .level = 5},
    {.name = "lane_after",
     .type = ParamType::kInt,
     .unit = "messages",
     .default_value = 0,
     .min = 0,
     .max = 1 << 30,
     .help =
         "Messages to a process of the node that go through a transport before a lane to it is opened. To a process "
         "of another job at least 8, at most 16383.",
     .level = 6},
    {.name = "piece_min",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 8 * kKiB,
     .min = 64,
     .max = kGiB,
     .help = "Smallest average length of the contiguous pieces of a derived datatype that are copied directly, one by "
             "one, inside a node. Types with shorter pieces are packed by the sender and unpacked by the receiver.",
     .level = 5,
     .settable_at_run_time = true},
    {.name = "send_depth",
     .type = ParamType::kInt,
     .unit = "fragments",
     .default_value = 8,
     .min = 1,
     .max = 1024,
     .help = "Fragments of one message that may be in flight at a time.",
     .level = 5},
    {.name = "unexpected_inline",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 128,
     .min = 64,
     .max = 64 * kKiB,
     .help = "Space for header and payload in each record of an unexpected message; longer messages use memory from "
             "the heap.",
     .level = 8},
    {.name = "unexpected_idle",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 8 * 1024 * kKiB,
     .min = 0,
     .max = kGiB,
     .help =
         "Memory of unexpected messages that a process keeps for later ones after they have been received. More than "
         "that returns to the heap, and a part of that to the system, which makes bursts of such messages slower.",
     .level = 8},
    {.name = "free_list_num",
     .type = ParamType::kInt,
     .unit = "items",
     .default_value = 4,
     .min = 0,
     .max = 1 << 20,
     .help = "Requests and message records, each, that are allocated at start.",
     .level = 8},
    {.name = "free_list_max",
     .type = ParamType::kInt,
     .unit = "items",
     .default_value = -1,
     .min = -1,
     .max = 1 << 30,
     .help = "Largest number of requests and of message records; -1: no limit. A call that needs one more returns "
             "MPI_ERR_NO_MEM; if its message fits one packet, it waits instead. If more unexpected messages than this "
             "arrive, the job ends.",
     .level = 8},
    {.name = "free_list_inc",
     .type = ParamType::kInt,
     .unit = "items",
     .default_value = 64,
     .min = 1,
     .max = 1 << 20,
     .help = "Requests and message records, each, that are allocated whenever they run out.",
     .level = 8},
    {.name = "report",
     .type = ParamType::kInt,
     .default_value = 0,
     .min = 0,
     .max = 2,
     .help = "Report at MPI_Finalize. 1: rank 0 prints which protocol carried how many messages and bytes of which "
             "size, and why. 2: the same for each pair of processes, too.",
     .level = 1},
    {.name = "overlap",
     .type = ParamType::kChoice,
     .choices = kOverlaps,
     .help = "Whether this process computes while its messages inside a node travel. auto: deduced from the MPI calls "
             "(blocking calls wait, nonblocking ones compute); yes: it computes, so the other side should copy; no: it "
             "waits, so it should copy.",
     .level = 3,
     .settable_at_run_time = true},
    {.name = "async",
     .type = ParamType::kChoice,
     .choices = kAsyncs,
     .help = "Whether messages between nodes over btl/coopib make progress while this process computes. off: only "
             "during MPI calls; interrupt: a long message that arrives for a posted receive interrupts, and a thread "
             "that otherwise sleeps starts its transfer; auto: interrupt, unless the node has more processes than "
             "cores.",
     .level = 2},
    {.name = "fin",
     .type = ParamType::kChoice,
     .choices = kFins,
     .help = "When a receiver that reads a message (rget) between nodes over btl/coopib acknowledges it. after: when "
             "the process notices that the read is complete; fenced: the acknowledgement is posted together with the "
             "read, behind a fence, and sent by the HCA, which delays later sends of the same queue pair; auto: fenced "
             "if an interrupt started the read, else after.",
     .level = 5},
    {.name = "hca",
     .type = ParamType::kChoice,
     .choices = kHcas,
     .help = "Whether HCAs, through loopback over btl/coopib, copy a part of long messages inside a node that both "
             "sides copy. The part is the amount that they can copy while the CPUs copy the rest, according to "
             "measured rates. It requires btl/coopib next to btl/vader, a receiver that waits for the message "
             "(MPI_Recv, MPI_Wait, MPI_Waitall) and contiguous buffers. off: never; on: unless the HCAs are busy; "
             "auto: as on, but not on a node with more processes than cores.",
     .level = 3},
    {.name = "hca_min",
     .type = ParamType::kSize,
     .unit = "bytes",
     .default_value = 1024 * kKiB,
     .min = 128 * kKiB,
     .max = 1024 * kGiB,
     .help = "Smallest message inside a node of which HCAs copy a part.",
     .level = 5,
     .settable_at_run_time = true},
    {.name = "hca_load",
     .type = ParamType::kInt,
     .unit = "operations",
     .default_value = 32,
     .min = 0,
     .max = 1 << 20,
     .help = "Number of large operations in flight on an HCA, from all processes of the node, from which on it gets no "
             "more work inside the node. 0: it never gets any.",
     .level = 5,
     .settable_at_run_time = true},
    {.name = "copy_rate",
     .type = ParamType::kSize,
     .unit = "bytes/s",
     .default_value = 0,
     .min = 0,
     .max = 1024 * kGiB,
     .help = "For tests and measurements: limits the rate at which the CPU of this process copies from and to other "
             "processes of its node. 0: no limit.",
     .level = 9},
    {.name = "fault",
     .type = ParamType::kString,
     .help = "For tests: makes chosen operations fail. Rules name:n (every n-th call) or name@k (the k-th call), "
             "separated by commas. Names: busy, alloc, sendi, register, no_id, get, get_busy, put, put_busy, hca_get, "
             "hca_busy, hca_lost, hca_key (copies by HCAs), pages, offer (the lane), and corrupt_match, corrupt_rts, "
             "corrupt_cts, corrupt_frag, corrupt_fin, to which =byte or =byte.bit may be appended.",
     .level = 9},
};

// Where the value of each row is stored: a number or a text, and for a kChoice also the index as Open MPI has it.
constexpr ParamPlace<Config, Setting> kPlaces[] = {
    {&Config::priority, nullptr},
    {&Config::protocol, nullptr, &Config::protocol_index},
    {&Config::eager_limit, nullptr},
    {&Config::rndv_inline, nullptr},
    {&Config::rdma_min, nullptr},
    {&Config::isend_rdma_min, nullptr},
    {&Config::rdma_chunk, nullptr},
    {&Config::rdma_depth, nullptr},
    {&Config::coop_min, nullptr},
    {&Config::copy_chunk, nullptr},
    {&Config::patience, nullptr},
    {&Config::rtr_min, nullptr},
    {&Config::bounce_max, nullptr},
    {&Config::lane, nullptr},
    {&Config::lane_small_max, nullptr},
    {&Config::lane_max, nullptr},
    {&Config::lane_read_min, nullptr},
    {&Config::lane_memory, nullptr},
    {&Config::lane_after, nullptr},
    {&Config::piece_min, nullptr},
    {&Config::send_depth, nullptr},
    {&Config::unexpected_inline, nullptr},
    {&Config::unexpected_idle, nullptr},
    {&Config::free_list_num, nullptr},
    {&Config::free_list_max, nullptr},
    {&Config::free_list_inc, nullptr},
    {&Config::report, nullptr},
    {&Config::overlap, nullptr, &Config::overlap_index},
    {&Config::async, &Config::async_name},
    {&Config::fin, &Config::fin_name},
    {&Config::hca, &Config::hca_name},
    {&Config::hca_min, nullptr},
    {&Config::hca_load, nullptr},
    {&Config::copy_rate, nullptr},
    {nullptr, &Config::fault},
};
constexpr ParamTable<Config, Setting> kTable(kParams, kPlaces);
static_assert(kTable.is_valid());

// The rows that may be written while the job runs.
constexpr std::size_t kSettableCount = std::count_if(std::begin(kParams), std::end(kParams),
                                                     [](const ParamRow& row) { return row.settable_at_run_time; });
constexpr auto kSettable = [] {
    std::array<std::size_t, kSettableCount> rows{};
    for (std::size_t i = 0, n = 0; i < std::size(kParams); ++i)
        if (kParams[i].settable_at_run_time) rows[n++] = i;
    return rows;
}();

// The value that Open MPI holds for a row that can change while the job runs. Open MPI writes 4 or 8 aligned bytes at
// once, under a lock that is not accessible here. The read is therefore atomic, but ThreadSanitizer cannot know that.
__attribute__((no_sanitize("thread"))) std::int64_t given_value(const ParamPlace<Config, Setting>& place,
                                                                const Config& given) noexcept {
    if (place.index) return *static_cast<const volatile int*>(&(given.*place.index));
    return *reinterpret_cast<const volatile std::int64_t*>(&(given.*place.number));
}

}  // namespace

const ParamTable<Config, Setting>& param_table() noexcept { return kTable; }

std::optional<ParamError> check(Config& config) { return kTable.check(config); }

bool is_rewritten(const Config& given, const Config& config) noexcept {
    // Every long message asks, so all values are compared without a loop and without branches.
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return (... | (given_value(kPlaces[kSettable[I]], given) ^ config.*kPlaces[kSettable[I]].number)) != 0;
    }
    (std::make_index_sequence<kSettableCount>());
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
