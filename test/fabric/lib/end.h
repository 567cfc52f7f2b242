// SPDX-License-Identifier: BSD-3-Clause
//
// Pairs of connected queue pairs. A Node is one side, in this process. A case holds side a as a Node and controls side
// b through End, which is either another Node here, on the last device of this host (Near), or one in another process
// on host h1 (Far, with --far). Every case that needs of b only what End offers therefore runs both ways.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "objects.h"
#include "process.h"

namespace verbstest {

// The properties of a side.
struct Shape {
    int device = 0;  // -1: the last device
    std::uint8_t port = 1;
    QpShape qp;
    std::size_t bytes = 1 << 16;
    int access = kAllAccess;  // of the memory
    int cqe = 512;
    std::uint32_t srq_wrs = 0;  // receives come from a shared receive queue of this size; 0: no SRQ
};

Shape on_last_device(Shape shape = {});  // unless the shape names a device

// The address of a side.
struct Address {
    std::uint16_t lid = 0;
    std::uint8_t lmc = 0;
    std::uint8_t port = 1;
    std::uint16_t lid_of_port_2 = 0;  // 0: no second port
    bool global = false;              // address by GID: RoCE
    bool header = false;              // address by LID and GID: the port requires a global routing header
    ibv_gid gid{};
    std::uint32_t qpn = 0;
    ibv_mtu mtu = IBV_MTU_256;
    int max_rd_atomic = 0;  // how many the device answers at a time
    Remote memory;
    std::size_t bytes = 0;

    Remote remote(std::size_t at = 0) const { return {memory.address + at, memory.rkey}; }
};

inline constexpr std::uint32_t kPsnOfA = 0xfffff0;  // close to the wrap-around
inline constexpr std::uint32_t kPsnOfB = 0x000123;
inline constexpr std::uint32_t kQkey = 0x11112222;

// The attributes of a side's queue pair for its connection. Timeouts are short: 4.096 us * 2^timeout, about 1 ms.
struct Path {
    std::uint8_t timeout = 8, retry = 2;
    std::uint8_t rnr_retry = 7, min_rnr = 1;        // infinite; 0.01 ms
    int max_rd_atomic = 4, max_dest_rd_atomic = 4;  // limited to what the devices support
    int access = kAllAccess;                        // of the queue pair
    ibv_mtu mtu = IBV_MTU_4096;                     // limited to what the ports support
    std::uint8_t src_path_bits = 0;
    std::uint16_t dlid_offset = 0;
    std::uint16_t pkey_index = 0;
    std::uint32_t my_psn = kPsnOfA, peer_psn = kPsnOfB;
};

Path reversed(Path path);  // with the sequence numbers swapped

ibv_ah_attr way_to(const Address& peer, const Path& path, std::uint8_t my_port);

// For a single queue pair: its address, and its transitions to RTS.
Address address_of(const Context& context, const Qp& qp, std::uint8_t port = 1);
int to_init(const Qp& qp, const Path& path = {}, std::uint8_t port = 1);
int to_rtr(const Context& context, const Qp& qp, const Address& peer, const Path& path = {}, std::uint8_t port = 1);
int to_rts(const Context& context, const Qp& qp, const Path& path = {});
void connect(const Context& context, const Qp& qp, const Address& peer, const Path& path = {}, std::uint8_t port = 1);

// One side: everything from the context to the queue pair.
class Node {
public:
    explicit Node(const Shape& shape = {});

    Address address() const;
    int to_init(const Path& path = {}) const { return verbstest::to_init(qp, path, shape.port); }
    int to_rtr(const Address& peer, const Path& path = {}) const {
        return verbstest::to_rtr(context, qp, peer, path, shape.port);
    }
    int to_rts(const Path& path = {}) const { return verbstest::to_rts(context, qp, path); }
    void connect(const Address& peer, const Path& path = {}) const {
        verbstest::connect(context, qp, peer, path, shape.port);
    }
    std::string port_name() const;  // as in the tool: h0/coop0/1

    const Shape shape;
    Context context;
    Pd pd;
    Cq scq, rcq;  // for sends, for receives
    Memory memory;
    std::unique_ptr<Srq> srq;
    Qp qp;
};

// The other side: its memory, receive queue, send queue (to us) and events.
class End {
public:
    virtual ~End() = default;
    virtual Address address() = 0;
    virtual std::string port_name() = 0;
    virtual void connect(const Address& peer, const Path& path) = 0;
    virtual int modify(const ibv_qp_attr& attr, int mask) = 0;
    virtual ibv_qp_attr query() = 0;
    virtual void receive(std::uint64_t id, std::size_t at, std::size_t bytes) = 0;
    virtual void post_send(std::uint64_t id, std::size_t at, std::size_t bytes) = 0;
    virtual std::optional<ibv_wc> poll_receive(int ms) = 0;
    virtual std::optional<ibv_wc> poll_send(int ms) = 0;
    virtual void fill(std::uint64_t key, std::size_t at, std::size_t bytes) = 0;
    virtual void check(std::uint64_t key, std::size_t at, std::size_t bytes) = 0;
    virtual void check_untouched(std::size_t at, std::size_t bytes) = 0;
    virtual std::uint64_t word(std::size_t at) = 0;
    virtual void set_word(std::size_t at, std::uint64_t value) = 0;
    virtual bool has_event(ibv_event_type type, int ms) = 0;  // skips other events

    ibv_wc expect_receive(std::uint64_t id, ibv_wc_status status = IBV_WC_SUCCESS);
    void expect_send(std::uint64_t id, ibv_wc_status status = IBV_WC_SUCCESS);
    void expect_event(ibv_event_type type);
    void expect_no_event(ibv_event_type type) { CHECK(!has_event(type, kQuietMs)); }
    void expect_no_receive(int ms = kQuietMs) { CHECK(!poll_receive(ms)); }
    int to(ibv_qp_state state);
    void wait_state(ibv_qp_state state);
};

std::unique_ptr<End> make_near(const Shape& shape);
std::unique_ptr<End> make_far(const Shape& shape, const char* host = "h1");
std::unique_ptr<End> make_end(const Shape& shape);  // Near or Far, as the program's options say

// Two connected sides.
struct Pair {
    Node a;
    std::unique_ptr<End> b;
    Address at_a, at_b;

    struct Options {
        Shape a, b;
        Path from_a, from_b;
    };
    Pair() : Pair(Options{}) {}
    explicit Pair(const Options& options);

    // Sends one message a -> b with the bytes [at, at + bytes) and checks it.
    void exchange(std::uint64_t key, std::size_t bytes = 256, std::size_t at = 0);
};

// Two connected sides in this process, on the first and the last device, for cases that need direct access to both.
struct Two {
    Node a, b;
    explicit Two(const Pair::Options& options = {});
};

// Kills the process at the far end with SIGKILL and waits for its end.
void kill_far(End& far_end);

}  // namespace verbstest
