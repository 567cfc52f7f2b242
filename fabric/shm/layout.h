// SPDX-License-Identifier: BSD-3-Clause
//
// The layout of a subnet's shared memory: tables of plain entries that refer to
// each other by index, never by pointer. The header says where each table
// begins. Only processes of the same user and the same version map it
// (segment.cc checks both).
//
// Fields that several processes write without a lock are atomics; the others belong
// to the entry's lock, or to the process that owns the entry. `used` is incremented
// whenever an entry is claimed or released; the entry is in use while `used` is odd.
// Units: bytes, nanoseconds (`_ns`, CLOCK_MONOTONIC), bytes per second.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/shm/lock.h"

namespace coop::fabric {

inline constexpr std::uint64_t kMagic = 0x636f6f7066616231;  // "coopfab1"
inline constexpr std::uint32_t kLayoutVersion = 7;
inline constexpr std::uint32_t kNone = 0xffffffff;  // no index

inline constexpr int kMaxPortsPerHca = 4;
inline constexpr int kMaxGids = 4;                     // per port
inline constexpr std::uint32_t kMaxPkeys = 8;          // per port
inline constexpr std::uint16_t kDefaultPkey = 0xffff;  // full member of the default partition
inline constexpr int kMaxSges = 16;
inline constexpr int kMaxHops = 8;            // links of a route
inline constexpr int kMaxReadsInFlight = 16;  // max_rd_atomic of the best profile
inline constexpr int kThreadsAtWork =
    64;  // memory regions that threads of one process can copy to or from at the same time

template <class T>
using Shared = std::atomic<T>;
static_assert(Shared<std::uint64_t>::is_always_lock_free && Shared<std::int64_t>::is_always_lock_free);

// State of a random number sequence (engine/dice.h). Several processes draw from it.
using Dice = Shared<std::uint64_t>;

// --- the subnet -----------------------------------------------------------------------------------------------------
// Written once at creation. Later the tool changes states, rates, latencies, losses and loads; all processes write
// counters, dice and `busy_until_ns`.

// When an element of the subnet last went down and came back; 0: never. Set together with its `down`. Decides what became
// of packets that were under way (engine/outage.h).
struct Outage {
    Shared<std::int64_t> cut_ns, back_ns;
};

struct Host {
    char name[64];
    std::uint32_t first_hca;
    std::uint32_t hcas;
};

// The abilities and limits of a device; a row of the table of profiles (topo/profiles.h).
struct Profile {
    char name[16];
    std::uint32_t max_rd_atomic;  // outstanding RDMA reads and atomics per QP, 1..kMaxReadsInFlight
    std::uint32_t max_inline;     // bytes
    std::uint32_t max_qp_wr;
    std::uint32_t max_sge;  // 1..kMaxSges
    std::uint32_t max_cqe;
    std::uint32_t max_srq_wr;   // 0: no SRQ
    std::uint32_t max_message;  // bytes, except for datagrams; at most 2^31
    std::uint8_t apm;
    std::uint8_t atomics;
    std::uint8_t extended;  // ibv_wr_*, extended CQ
    std::uint8_t last_wqe;  // whether LAST_WQE_REACHED is raised
    std::uint8_t in_order;  // whether the last bytes of an RDMA write land last; 0: packets land in any order
};

// Processor time that a registration of memory takes from the calling thread: `base_ns`, and `page_ns` for each page.
struct RegisterCost {
    std::int64_t base_ns = 0;
    std::int64_t page_ns = 0;
    bool operator==(const RegisterCost&) const = default;
};

struct Hca {
    std::uint32_t host;
    char name[16];       // coop0, coop1, …; unique within the host
    std::uint64_t guid;  // host byte order
    std::uint32_t first_port;
    std::uint32_t ports;
    Profile profile;
    RegisterCost register_cost;
    Shared<std::uint32_t> down;  // 0: works
    Outage outage;
    Lock atomics;  // atomics are atomic within one HCA (IBV_ATOMIC_HCA)
    Dice landing;  // the order in which packets land, unless profile.in_order
};

struct PortCounters {
    Shared<std::uint64_t> sent_bytes, received_bytes, sent_packets, received_packets;
    Shared<std::uint64_t> sent_messages, received_messages;
    Shared<std::uint64_t> discards;       // sent but never arrived
    Shared<std::uint64_t> symbol_errors;  // damaged in transit
    Shared<std::uint64_t> wait_ns;        // time that chunks, also those of read responses, waited for their first link
    Shared<std::uint64_t> link_downed;
    Shared<std::uint64_t> bad_pkeys;  // packets that arrived with a P_Key other than the queue pair's
};

struct Port {
    std::uint32_t hca;
    std::uint32_t number;      // 1..
    std::uint32_t link_layer;  // IBV_LINK_LAYER_*
    // Base LID; 0 with Ethernet. The tool changes it (tool/readdress.h), and the next one.
    Shared<std::uint32_t> lid;
    Shared<std::uint32_t> route_lid;  // its LID in the forwarding tables: the base LID; with Ethernet a hidden one
    std::uint32_t lmc;
    std::uint32_t mtu_bytes;
    std::uint32_t link_out;  // index of the Link that leaves the port
    std::uint32_t link_in;
    std::uint64_t gid_prefix;    // subnet prefix
    std::uint32_t grh_required;  // 1: the port drops packets that lack a global routing header, in both directions
    std::uint8_t gids[kMaxGids]
                     [16];  // the tool changes them; who reads meanwhile finds neither the old nor the new one
    std::uint32_t gid_count;
    std::uint16_t pkeys[kMaxPkeys];  // host byte order; 0: an empty entry
    std::uint32_t pkey_count;
    Shared<std::uint32_t> down;  // 0: ACTIVE, provided that its cable and its HCA are up
    Outage outage;
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
    std::uint32_t
        cable;  // tells parallel cables apart, from 1; 0: the only cable between its ends; same in both directions
    Shared<std::uint32_t> down;
    Shared<std::uint64_t> rate;        // bytes/s; 0: unlimited
    Shared<std::uint64_t> background;  // bytes/s of constant background traffic
    Shared<std::int64_t> latency_ns;
    Shared<std::uint32_t> loss;  // packet loss probability in units of 2^-32, or kCertainLoss
    Shared<std::int64_t> busy_until_ns;
    Shared<std::uint64_t> bytes, packets;  // only of links between switches; the others use their port's counters
    Shared<std::uint64_t> lost;
    Dice dice;  // for losses
    Outage outage;
};

// Index: the LID.
struct Lid {
    Shared<std::uint32_t> port;  // kNone: no port has this LID
    Shared<std::uint32_t> down;
    Outage outage;
};

// Linear forwarding tables: entry [switch * lid_capacity + dlid] is the link to take, plus 1; 0: unreachable.
using Forward = Shared<std::uint32_t>;

// A route by source and destination LID that overrides the forwarding tables.
struct PinnedRoute {
    Shared<std::uint16_t> slid, dlid;
    std::uint32_t hops;  // 0: packets are lost
    std::uint32_t links[kMaxHops];
};

// --- processes --------------------------------------------------------------------------------------------------

struct Process {
    Shared<std::uint32_t> used;
    Shared<std::uint32_t> joined;      // 1: `life` is valid
    Shared<std::uint32_t> generation;  // counts the processes that have used this entry
    Lock life;                         // held by the engine's thread from joining until the thread ends
    std::int32_t pid;
    std::uint32_t host;
    char command[32];
    Shared<std::uint32_t> wake;  // futex on which the engine's thread sleeps
    // strict mode: 1 while the process handles a report of unmapped memory; look_up() waits until it is 0
    Shared<std::uint32_t> memory_report;
    Shared<std::uint32_t> attention;  // 1: one of its QPs has been moved to the error state; its engine flushes the QP
    Shared<std::int64_t> engine_cpu_ns;
    Shared<std::uint64_t> engine_wakeups;
    Shared<std::uint64_t> locked_bytes;  // of registered memory
    // The memory regions that threads of this process are copying to or from: index plus 1; 0: a free place. A thread
    // takes a place for each region. Deregistration of a region waits until no living process lists it.
    Shared<std::uint32_t> at_work[kThreadsAtWork];
};

// An open device: where its asynchronous events go.
struct Context {
    Shared<std::uint32_t> used;
    std::uint32_t process;
    std::uint32_t hca;
    std::int32_t event_fd;  // writing end of the event pipe, as the process's own descriptor number
};

// A record in the pipe Context::event_fd; ibv_get_async_event reads it.
struct EventRecord {
    std::uint32_t type;    // ibv_event_type
    std::uint32_t object;  // index of the QP, CQ or SRQ, or the port number
    std::uint64_t tag;     // the object's `used` at that time: events of objects destroyed since are dropped
};

// --- objects of a process ----------------------------------------------------------------------------------------

struct MemoryRegion {
    Shared<std::uint32_t> used;
    std::uint32_t process;
    std::uint32_t pd;
    std::uint32_t hca;
    std::uint32_t access;
    std::uint32_t tag;      // low byte of both keys; changes whenever the entry is claimed
    std::uint64_t address;  // in the process
    std::uint64_t iova;     // address by which remote peers and local SGEs refer to it
    std::uint64_t bytes;
    Shared<std::uint32_t> stale;  // strict mode: the memory has been unmapped, replaced, or shared with a child
};

struct Completion {
    std::uint64_t wr_id;
    std::int64_t time_ns;
    std::uint32_t status;  // ibv_wc_status
    std::uint32_t opcode;  // ibv_wc_opcode
    std::uint32_t bytes;
    std::uint32_t imm;  // network byte order, as in ibv_wc
    std::uint32_t qp_number;
    std::uint32_t source_qp;
    std::uint32_t flags;  // ibv_wc_flags
    std::uint32_t vendor_error;
    std::uint16_t slid;
    std::uint8_t sl;
    std::uint8_t dlid_path_bits;
    std::uint16_t pkey_index;
    std::uint8_t solicited;
    std::uint8_t of_send_queue;
    std::uint32_t released;  // with of_send_queue: taking this completion frees the send requests up to this mark
};

enum class Armed : std::uint32_t { no, solicited, any };

// Completions are in a ring of `capacity` (a power of two) at heap offset `ring`: any process puts, under `lock`; the
// owner takes.
struct CompletionQueue {
    Shared<std::uint32_t> used;
    std::uint32_t process;
    std::uint32_t context;
    std::int32_t notify_fd;  // writing end of the completion channel, as the owner's descriptor number; -1: none
    Lock lock;
    std::uint64_t ring;
    std::uint32_t capacity;
    std::uint32_t depth;        // as requested, at most `capacity`; one completion more is an overflow
    Shared<std::uint32_t> put;  // free-running; the low bits are the position in the ring
    Shared<std::uint32_t> taken;
    Shared<std::uint32_t> last_solicited;  // value of `put` just after the last solicited completion
    Shared<std::uint32_t> notified;        // value of `put` just after the completion that caused the last notification
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
    Sge sge[kMaxSges];  // in a ring only the first ReceiveRing::max_sges exist
};

// Receive requests of a QP or an SRQ, at heap offset `ring` (receive_ring.h). The owner puts; processes that deliver
// messages take, under the QP's or SRQ's lock.
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

// A path between two ports, as in a QP's address vector.
struct Path {
    std::uint8_t port;  // local port number; 0: no path
    std::uint8_t source_path_bits;
    std::uint8_t sl;
    std::uint8_t timeout;  // 4.096 us * 2^timeout; 0: infinite
    std::uint16_t dlid;
    std::uint16_t pkey_index;  // of the port
    std::uint8_t is_global;
    std::uint8_t sgid_index;
    std::uint32_t flow_label;
    std::uint8_t hop_limit;
    std::uint8_t traffic_class;
    std::uint8_t dgid[16];
};

// A QP that is mute neither sends nor answers, and nothing of it completes. Either that ends in the error state, where its
// requests are flushed, or it lasts until the QP is destroyed.
enum class Mute : std::uint32_t { no, until_error, for_good };

struct AtomicResult {
    std::uint32_t psn;
    std::uint64_t value;
};

struct QueuePair {
    Shared<std::uint32_t> used;
    std::uint32_t number;  // unique on the subnet, 24 bits
    std::uint32_t type;    // ibv_qp_type
    std::uint32_t process;
    std::uint32_t context;
    std::uint32_t hca;
    std::uint32_t pd;
    std::uint32_t send_cq, receive_cq;
    std::uint32_t srq;  // kNone: the QP has its own ring
    ReceiveRing receives;

    Lock lock;                        // guards the non-atomic fields below; a process that delivers to the QP takes it
    Shared<std::uint32_t> state;      // ibv_qp_state
    Shared<std::uint32_t> migration;  // ibv_mig_state
    Shared<Mute> mute;
    std::uint32_t port;  // set on the transition to INIT
    std::uint32_t qkey;
    std::uint32_t access;
    std::uint32_t destination;  // the peer's QP number
    std::uint32_t path_mtu_bytes;
    Path primary, alternate;           // a UD queue pair uses only the P_Key index of `primary`
    Shared<std::uint32_t> path_epoch;  // counts changes of `primary` and `alternate`
    std::uint32_t expected_psn;        // of the next new request, 24 bits
    std::uint32_t max_dest_rd_atomic;
    std::uint32_t min_rnr_timer;  // as encoded in the attribute
    // A message that has begun to arrive keeps the receive it took through every retry.
    std::uint32_t held;  // 0: no receive is held
    ReceiveRequest held_receive;
    AtomicResult atomic_results[kMaxReadsInFlight];  // answers to repeated requests
    std::uint32_t next_atomic_result;
    std::uint32_t established;  // COMM_EST has been raised

    // Mark of the send queue (LocalQp): the places of the requests before it are free, because a completion that covers
    // them has been taken. 0 after RESET.
    Shared<std::uint32_t> released;

    Shared<std::uint64_t> sent_messages, sent_bytes, received_messages, received_bytes;
    Shared<std::uint64_t> retries, rnr_retries, duplicates, migrations;
};

// A QP's number contains the index of its entry and changes when the entry is claimed again. It is never 0 or 1, which
// are reserved.
inline std::uint32_t make_qp_number(std::uint32_t index, std::uint32_t used) {
    return ((used / 2 % 255) + 1) << 16 | index;
}
inline std::uint32_t index_of_qp(std::uint32_t number) { return number & 0xffff; }

// --- faults and trace -----------------------------------------------------------------------------------------------

enum class FaultKind : std::uint32_t {
    drop,
    corrupt,
    lose_ack,
    rnr,
    reorder,
    cut,
    mute_qp,
    mute_qp_for_good,
    late,
    ack_and_die,
    double_datagram,
    kill_qp,
    kill_process
};
enum class FaultScope : std::uint32_t { all, hca, port, link, lid, qp };

// A rule for messages within its scope: it spares the first `after` of them, then applies to at most `count`, and not
// after `until_ns`. Each chunk of a long message counts as one.
struct Fault {
    Shared<std::uint32_t> used;
    FaultKind kind;
    FaultScope scope;
    std::uint32_t target;           // an index, a LID, or a QP number, depending on `scope`
    Shared<std::int64_t> after;     // counts down
    Shared<std::int64_t> count;     // counts down
    Shared<std::int64_t> until_ns;  // 0: no time limit
    std::int64_t delay_ns;          // of `late`
};

enum class TraceKind : std::uint32_t {
    created,
    joined,
    left,
    reaped,
    hca_down,
    hca_up,
    port_down,
    port_up,
    lid_down,
    lid_up,
    lid_changed,
    gid_changed,
    link_down,
    link_up,
    rate,
    latency,
    loss,
    background,
    fault_set,
    fault_hit,
    retry,
    rnr,
    retry_exceeded,
    rnr_exceeded,
    migrated,
    migration_failed,
    armed,
    qp_error,
    access_error,
    cq_overflow,
    stale_memory,
    event,
    late_arrived,
    late_dropped,
    wrong_path,
    message_begun,
    message_ended,
    message_arrived,
};

struct Trace {
    Shared<std::uint64_t> sequence;  // from 1; set when the entry is complete
    std::int64_t time_ns;
    TraceKind kind;
    std::uint32_t a, b, c;  // their meaning depends on the kind: trace.cc
    std::uint64_t value;
};

// --- header ------------------------------------------------------------------------------------------------------

enum Table : std::uint32_t {
    kHosts,
    kHcas,
    kPorts,
    kSwitches,
    kLinks,
    kLids,
    kForwards,
    kPinnedRoutes,
    kFaults,
    kTraces,  // all entries of the tables up to here are reserved in the file at creation
    kProcesses,
    kContexts,
    kMemoryRegions,
    kCompletionQueues,
    kSharedReceiveQueues,
    kQueuePairs,  // entries of the tables from kProcesses to here are reserved as they are claimed
    kTables
};
// The table that holds entries of this type.
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
    std::uint32_t stride;  // size of an entry: sizeof(T) in the creating process
};

struct Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t tables;
    std::uint64_t bytes;
    std::uint32_t owner;  // user ID
    Shared<std::uint32_t> ready;
    char name[64];
    std::uint64_t seed;
    std::uint64_t subnet_prefix;
    std::int64_t created_ns;
    std::uint8_t strict_memory, strict_arm, trace_messages, has_keeper, strict_fork;
    std::uint8_t islands;  // the topology permits ports that cannot reach each other
    std::uint8_t reserved[2];
    Lock keeper;  // with has_keeper: held, while it lives, by the 'coop-fabric run' that will remove the subnet
    Shared<std::uint64_t> memory_lock_limit;  // 0: RLIMIT_MEMLOCK of each process
    TableAt table[kTables];
    std::uint64_t heap, heap_bytes;
    Lock lock;               // for claiming entries, and for allocating and freeing heap
    std::uint64_t heap_top;  // under lock
    std::uint64_t
        heap_free[40];  // offset + 1 of the first free block of 2^i bytes; its first word leads to the next; under lock
    Shared<std::uint32_t> hint[kTables];     // where to begin the search for a free entry
    Shared<std::uint32_t> highest[kTables];  // entries beyond this have never been claimed
    Shared<std::uint32_t> taken[kTables];    // entries in use
    Shared<std::uint32_t> next_pd;
    Shared<std::uint32_t> faults;  // number of rules in force; the hot path looks for rules only if it is not 0
    // The last time that anything on the subnet went down or came back; 0: never. The hot path looks at outages only if it
    // is later than the message.
    Shared<std::int64_t> last_change_ns;
    // Counts the changes of LIDs and GIDs. Routes that were found before a change have to be found again.
    Shared<std::uint32_t> addresses;
    Shared<std::uint64_t> traced;  // entries written since creation
};

}  // namespace coop::fabric
