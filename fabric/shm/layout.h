// SPDX-License-Identifier: BSD-3-Clause
//
// What the shared memory of a subnet holds: tables of plain entries, found by
// index; no pointer ever. The header says where each table begins. Whoever maps
// it is of the same user and runs the same version (segment.cc checks both).
//
// Who writes what is said at each table. Fields that several processes write
// without a lock are atomics; the others belong to the entry's lock, or to the
// process that owns the entry. `used` counts on whenever an entry is taken or
// given back; it is in use while that is odd.
//
// Units: bytes, nanoseconds (`_ns`, CLOCK_MONOTONIC), bytes per second.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/shm/lock.h"

namespace coop::fabric {

inline constexpr std::uint64_t kMagic = 0x636f6f7066616231;  // "coopfab1"
inline constexpr std::uint32_t kLayoutVersion = 5;
inline constexpr std::uint32_t kNone = 0xffffffff;  // no index

inline constexpr int kMaxPortsPerHca = 4;
inline constexpr int kMaxGids = 4;  // per port
inline constexpr std::uint32_t kMaxPkeys = 8;  // per port
inline constexpr std::uint16_t kDefaultPkey = 0xffff;  // full member of the default partition
inline constexpr int kMaxSges = 16;
inline constexpr int kMaxHops = 8;          // links of a route
inline constexpr int kMaxReadsInFlight = 16;  // max_rd_atomic of the best profile
inline constexpr int kThreadsAtWork = 64;   // regions that the threads of a process may copy to or from at a time

template <class T>
using Shared = std::atomic<T>;
static_assert(Shared<std::uint64_t>::is_always_lock_free && Shared<std::int64_t>::is_always_lock_free);

// State of a sequence of random numbers (engine/dice.h); several processes throw.
using Dice = Shared<std::uint64_t>;

// --- the subnet: written once at creation; states, rates and faults later by the tool -------------------------------

struct Host {
    char name[64];
    std::uint32_t first_hca;
    std::uint32_t hcas;
};

// What a device can do; a row of the table of profiles (topo/profiles.h).
struct Profile {
    char name[16];
    std::uint32_t max_rd_atomic;  // outstanding RDMA reads and atomics per QP, 1..kMaxReadsInFlight
    std::uint32_t max_inline;     // bytes
    std::uint32_t max_qp_wr;
    std::uint32_t max_sge;        // 1..kMaxSges
    std::uint32_t max_cqe;
    std::uint32_t max_srq_wr;     // 0: no SRQ
    std::uint32_t max_message;    // bytes, but for datagrams; at most 2^31
    std::uint8_t apm;
    std::uint8_t atomics;
    std::uint8_t extended;        // ibv_wr_*, extended CQ
    std::uint8_t in_order;        // the last bytes of an RDMA write land last; 0: its packets land in any order
};

struct Hca {
    std::uint32_t host;
    char name[16];  // coop0, coop1, … of its host
    std::uint64_t guid;  // host byte order
    std::uint32_t first_port;
    std::uint32_t ports;
    Profile profile;
    Shared<std::uint32_t> down;  // 0: works
    Lock atomics;                // InfiniBand's atomicity is that of one HCA (IBV_ATOMIC_HCA)
    Dice landing;                // order in which packets land, if not profile.in_order
};

struct PortCounters {
    Shared<std::uint64_t> sent_bytes, received_bytes, sent_packets, received_packets;
    Shared<std::uint64_t> sent_messages, received_messages;
    Shared<std::uint64_t> discards;       // sent, and never arrived
    Shared<std::uint64_t> symbol_errors;  // damaged on the way
    Shared<std::uint64_t> wait_ns;        // ready to send, while the link was taken
    Shared<std::uint64_t> link_downed;
    Shared<std::uint64_t> bad_pkeys;      // arrived, and of another partition than the queue pair
};

struct Port {
    std::uint32_t hca;
    std::uint32_t number;      // 1..
    std::uint32_t link_layer;  // IBV_LINK_LAYER_*
    std::uint32_t lid;         // base LID; 0 with Ethernet
    std::uint32_t route_lid;   // what the forwarding tables know it by: the base LID; with Ethernet a LID that nobody sees
    std::uint32_t lmc;
    std::uint32_t mtu_bytes;
    std::uint32_t link_out;    // to the switch (index of a Link)
    std::uint32_t link_in;
    std::uint64_t gid_prefix;  // subnet prefix
    std::uint32_t grh_required;  // 1: what comes or goes without a global routing header is lost
    std::uint8_t gids[kMaxGids][16];
    std::uint32_t gid_count;
    std::uint16_t pkeys[kMaxPkeys];  // host byte order; 0: an empty place
    std::uint32_t pkey_count;
    Shared<std::uint32_t> down;        // 0: ACTIVE
    Shared<std::uint64_t> loopback_rate;  // bytes/s of what the port sends to itself; 0: unlimited
    Shared<std::int64_t> loopback_busy_until_ns;
    PortCounters counters;
};

struct Switch {
    char name[64];
};

enum class NodeKind : std::uint32_t { port, switch_ };
struct Node {
    NodeKind kind;
    std::uint32_t index;
};

inline constexpr std::uint32_t kCertainLoss = 0xffffffff;

// One direction of a cable.
struct Link {
    Node from, to;
    std::uint32_t cable;  // same number as the other direction; 0: the only one of its two ends, else counted from 1
    Shared<std::uint32_t> down;
    Shared<std::uint64_t> rate;        // bytes/s; 0: unlimited
    Shared<std::uint64_t> background;  // bytes/s that somebody else sends all the time: a hot spot
    Shared<std::int64_t> latency_ns;
    Shared<std::uint32_t> loss;        // packets lost, in 2^-32, or kCertainLoss
    Shared<std::int64_t> busy_until_ns;
    Shared<std::uint64_t> bytes, packets;  // of links between switches; others have their port's counters
    Shared<std::uint64_t> lost;
    Dice dice;                         // of losses
};

// Index: the LID.
struct Lid {
    std::uint32_t port;         // kNone: nobody's
    Shared<std::uint32_t> down;
};

// Linear forwarding tables: entry [switch * lid_capacity + dlid] is the link to take, plus 1; 0: no way.
using Forward = Shared<std::uint32_t>;

// A route by source and destination LID that stands above the forwarding tables.
struct PinnedRoute {
    std::uint16_t slid, dlid;
    std::uint32_t hops;  // 0: it leads nowhere
    std::uint32_t links[kMaxHops];
};

// --- processes --------------------------------------------------------------------------------------------------

struct Process {
    Shared<std::uint32_t> used;
    Shared<std::uint32_t> joined;      // 1: `life` says whether it lives
    Shared<std::uint32_t> generation;  // counts the processes that had this place
    Lock life;                         // held by the engine's thread from joining to its end
    std::int32_t pid;
    std::uint32_t host;
    char command[32];
    Shared<std::uint32_t> wake;        // futex: the engine's thread sleeps on it
    Shared<std::uint32_t> memory_report;  // strict: it is just hearing that memory was unmapped; its regions are to be asked later
    Shared<std::uint32_t> attention;   // one of its QPs was moved to the error state by somebody else
    Shared<std::int64_t> engine_cpu_ns;
    Shared<std::uint64_t> engine_wakeups;
    Shared<std::uint64_t> locked_bytes;  // of registered memory
    // The memory region that each thread of this process copies to or from just now, plus 1. Whoever deregisters
    // it waits for these.
    Shared<std::uint32_t> at_work[kThreadsAtWork];
};

// An open device: where its asynchronous events go.
struct Context {
    Shared<std::uint32_t> used;
    std::uint32_t process;
    std::uint32_t hca;
    std::int32_t event_fd;  // the process's own number of the writing end
};

// What is written to Context::event_fd and read by ibv_get_async_event.
struct EventRecord {
    std::uint32_t type;    // ibv_event_type
    std::uint32_t object;  // QP, CQ, SRQ: index; port: its number
    std::uint64_t tag;     // the object's `used` then: an object destroyed since is not reported
};

// --- objects of a process ----------------------------------------------------------------------------------------

struct MemoryRegion {
    Shared<std::uint32_t> used;
    std::uint32_t process;
    std::uint32_t pd;
    std::uint32_t hca;
    std::uint32_t access;
    std::uint32_t tag;     // low byte of both keys, changes with each use of the entry
    std::uint64_t address; // in the process
    std::uint64_t iova;    // as remote sides, and local SGEs, name it
    std::uint64_t bytes;
    Shared<std::uint32_t> stale;  // strict: what was there has been unmapped or replaced, or shared with a child
};

struct Completion {
    std::uint64_t wr_id;
    std::int64_t time_ns;
    std::uint32_t status;    // ibv_wc_status
    std::uint32_t opcode;    // ibv_wc_opcode
    std::uint32_t bytes;
    std::uint32_t imm;       // network byte order, as in ibv_wc
    std::uint32_t qp_number;
    std::uint32_t source_qp;
    std::uint32_t flags;     // ibv_wc_flags
    std::uint32_t vendor_error;
    std::uint16_t slid;
    std::uint8_t sl;
    std::uint8_t dlid_path_bits;
    std::uint16_t pkey_index;
    std::uint8_t solicited;
    std::uint8_t of_send_queue;
    std::uint32_t released;  // of_send_queue: the mark up to which requests give back their places when this is taken
};

enum class Armed : std::uint32_t { no, solicited, any };

// Completions lie in a ring of `capacity` (a power of two) at heap offset `ring`: many put, under `lock`; the owner takes.
struct CompletionQueue {
    Shared<std::uint32_t> used;
    std::uint32_t process;
    std::uint32_t context;
    std::int32_t notify_fd;     // writing end of the completion channel in the owner; -1: none
    Lock lock;
    std::uint64_t ring;
    std::uint32_t capacity;
    std::uint32_t depth;        // what was asked for, at most `capacity`; one more is an overflow
    Shared<std::uint32_t> put;  // counts on for ever
    Shared<std::uint32_t> taken;
    Shared<std::uint32_t> last_solicited;  // `put` just behind the last solicited completion
    Shared<std::uint32_t> notified;        // `put` just behind the completion that the last notification was for
    Shared<std::uint32_t> armed;           // Armed
    Shared<std::uint32_t> overflowed;
};

struct Sge {
    std::uint64_t address;
    std::uint32_t bytes;
    std::uint32_t lkey;
};

struct ReceiveRequest {
    std::uint64_t wr_id;
    std::uint32_t sges;
    std::uint32_t reserved;
    Sge sge[kMaxSges];  // in a ring: as many as its requests may have
};

// Receive requests of a QP or an SRQ, at heap offset `ring` (receive_ring.h): the owner puts, deliverers take under the QP's or
// SRQ's lock.
struct ReceiveRing {
    std::uint64_t ring;
    std::uint32_t capacity;  // a power of two
    std::uint32_t depth;
    std::uint32_t max_sges;
    Shared<std::uint32_t> put, taken;
};

struct SharedReceiveQueue {
    Shared<std::uint32_t> used;
    std::uint32_t process;
    std::uint32_t context;
    std::uint32_t pd;
    Lock lock;
    ReceiveRing receives;
    Shared<std::uint32_t> limit;  // 0: not armed
};

// One way between two ports, as a QP's address vector gives it.
struct Path {
    std::uint8_t port;  // local port number; 0: there is no such path
    std::uint8_t source_path_bits;
    std::uint8_t sl;
    std::uint8_t timeout;  // 4.096 us * 2^timeout; 0: for ever
    std::uint16_t dlid;
    std::uint16_t pkey_index;  // of the port
    std::uint8_t is_global;
    std::uint8_t sgid_index;
    std::uint32_t flow_label;
    std::uint8_t hop_limit;
    std::uint8_t traffic_class;
    std::uint8_t dgid[16];
};

struct AtomicResult {
    std::uint32_t psn;
    std::uint64_t value;
};

struct QueuePair {
    Shared<std::uint32_t> used;
    std::uint32_t number;         // unique on the subnet, 24 bits
    std::uint32_t type;           // ibv_qp_type
    std::uint32_t process;
    std::uint32_t context;
    std::uint32_t hca;
    std::uint32_t pd;
    std::uint32_t send_cq, receive_cq;
    std::uint32_t srq;            // kNone: its own ring
    ReceiveRing receives;

    Lock lock;                    // all below, unless atomic; taken by whoever delivers to it
    Shared<std::uint32_t> state;  // ibv_qp_state
    Shared<std::uint32_t> migration;  // ibv_mig_state
    std::uint32_t port;           // of INIT
    std::uint32_t qkey;
    std::uint32_t access;
    std::uint32_t destination;    // the peer's number
    std::uint32_t path_mtu_bytes;
    Path primary, alternate;      // of a UD queue pair only the P_Key index of the first
    Shared<std::uint32_t> path_epoch;  // counts changes of `primary` and `alternate`
    std::uint32_t expected_psn;   // of the next new request, 24 bits
    std::uint32_t max_dest_rd_atomic;
    std::uint32_t min_rnr_timer;  // code, as in the attribute
    // A message that has begun to arrive keeps the receive it was given, through every retry.
    std::uint32_t held;           // 0: none
    ReceiveRequest held_receive;
    AtomicResult atomic_results[kMaxReadsInFlight];  // answers to repeated requests
    std::uint32_t next_atomic_result;
    std::uint32_t established;    // COMM_EST was raised

    Shared<std::uint32_t> released;  // requests of the send queue whose completion has been taken; counts on for ever

    Shared<std::uint64_t> sent_messages, sent_bytes, received_messages, received_bytes;
    Shared<std::uint64_t> retries, rnr_retries, duplicates, migrations;
};

// A QP's number says where its entry is, and is another one when the entry is taken again. Never 0 or 1, which are special.
inline std::uint32_t make_qp_number(std::uint32_t index, std::uint32_t used) {
    return ((used / 2 % 255) + 1) << 16 | index;
}
inline std::uint32_t index_of_qp(std::uint32_t number) { return number & 0xffff; }

// --- faults and what happened ---------------------------------------------------------------------------------------

enum class FaultKind : std::uint32_t { drop, corrupt, lose_ack, rnr, reorder, kill_qp, kill_process };
enum class FaultScope : std::uint32_t { all, hca, port, link, lid, qp };

// A rule for messages that meet its scope: after `after` of them it holds for `count`, or until `until_ns`.
struct Fault {
    Shared<std::uint32_t> used;
    FaultKind kind;
    FaultScope scope;
    std::uint32_t target;             // an index, a LID, or a QP's number
    Shared<std::int64_t> after;       // counts down
    Shared<std::int64_t> count;       // counts down
    Shared<std::int64_t> until_ns;    // 0: no end in time
};

enum class TraceKind : std::uint32_t {
    created, joined, left, reaped,
    hca_down, hca_up, port_down, port_up, lid_down, lid_up, link_down, link_up, rate, latency, loss, background,
    fault_set, fault_hit, retry, rnr, retry_exceeded, rnr_exceeded, migrated, migration_failed, armed,
    qp_error, access_error, cq_overflow, stale_memory, event, message_begun, message_ended, message_arrived,
};

struct Trace {
    Shared<std::uint64_t> sequence;  // 1.. when the entry is whole
    std::int64_t time_ns;
    TraceKind kind;
    std::uint32_t a, b, c;  // their meaning depends on the kind: trace.cc
    std::uint64_t value;
};

// --- header ------------------------------------------------------------------------------------------------------

enum Table : std::uint32_t {
    kHosts, kHcas, kPorts, kSwitches, kLinks, kLids, kForwards, kPinnedRoutes, kFaults, kTraces,  // reserved at creation
    kProcesses, kContexts, kMemoryRegions, kCompletionQueues, kSharedReceiveQueues, kQueuePairs,  // as they are used
    kTables
};
// The table that an entry is of.
inline constexpr Table table_of(const Fault&) { return kFaults; }
inline constexpr Table table_of(const Process&) { return kProcesses; }
inline constexpr Table table_of(const Context&) { return kContexts; }
inline constexpr Table table_of(const MemoryRegion&) { return kMemoryRegions; }
inline constexpr Table table_of(const CompletionQueue&) { return kCompletionQueues; }
inline constexpr Table table_of(const SharedReceiveQueue&) { return kSharedReceiveQueues; }
inline constexpr Table table_of(const QueuePair&) { return kQueuePairs; }

struct TableAt {
    std::uint64_t offset;
    std::uint32_t capacity;
    std::uint32_t stride;  // of an entry: sizeof(T) of whoever created it
};

struct Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t tables;
    std::uint64_t bytes;
    std::uint32_t owner;       // user
    Shared<std::uint32_t> ready;
    char name[64];
    std::uint64_t seed;
    std::uint64_t subnet_prefix;
    std::int64_t created_ns;
    std::uint8_t strict_memory, strict_arm, trace_messages, has_keeper, strict_fork;
    std::uint8_t islands;      // as the topology says it: not every port reaches every other one
    std::uint8_t reserved[2];
    Lock keeper;                     // with has_keeper: held by the 'coop-fabric run' that will remove the subnet, while it lives
    Shared<std::uint64_t> memory_lock_limit;  // 0: RLIMIT_MEMLOCK of each process
    TableAt table[kTables];
    std::uint64_t heap, heap_bytes;
    Lock lock;                       // taking and giving back entries and heap
    std::uint64_t heap_top;          // under lock
    std::uint64_t heap_free[40];     // offset + 1 of the first free block of 2^i bytes; its first word is the next. Under lock.
    Shared<std::uint32_t> hint[kTables];     // where to look for a free entry first
    Shared<std::uint32_t> highest[kTables];  // entries behind this were never taken
    Shared<std::uint32_t> taken[kTables];    // entries in use
    Shared<std::uint32_t> next_pd;
    Shared<std::uint32_t> faults;    // rules in force; 0 keeps the hot path away from them
    Shared<std::uint64_t> traced;    // entries written since creation
};

}  // namespace coop::fabric
