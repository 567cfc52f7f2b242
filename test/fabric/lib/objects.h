// SPDX-License-Identifier: BSD-3-Clause
//
// RAII wrappers of verbs objects, with the checks that cases use often.
//
// Ownership: an object refers to those it was made from and must be destroyed before them (declare in that order).
// Errors: a verb that fails fails the case, except in functions that return an error number. Threading: as verbs.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verbs_test.h"

namespace verbstest {

inline constexpr int kPatienceMs = 8000;  // for events that must happen
inline constexpr int kQuietMs = 30;       // for events that must not happen

using Clock = std::chrono::steady_clock;
inline double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Polls `holds` until it is true or the time is over; returns its last value.
bool wait_until(const std::function<bool()>& holds, int ms = kPatienceMs);

struct Event {
    ibv_event_type type;
    void* element;  // the queue pair, completion queue or shared receive queue; null for port events
    int port;       // of port events
};

class Context {
public:
    explicit Context(int index = 0);  // index in the device list; -1: the last device
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context();

    operator ibv_context*() const { return context_; }
    ibv_context* operator->() const { return context_; }
    ibv_device_attr device() const;
    ibv_port_attr port(std::uint8_t number = 1) const;
    ibv_gid gid(std::uint8_t port = 1, int index = 0) const;
    bool ethernet(std::uint8_t port = 1) const { return this->port(port).link_layer == IBV_LINK_LAYER_ETHERNET; }
    std::string name() const { return ibv_get_device_name(context_->device); }

    // Takes the next event and acknowledges it; none if no event comes within this time.
    std::optional<Event> next_event(int ms) const;
    // Skips events of other types.
    Event wait_event(ibv_event_type type, int ms = kPatienceMs) const;
    bool has_event(ibv_event_type type, int ms = kQuietMs) const;
    void forget_events() const;

private:
    ibv_context* context_;
};

int devices();  // number of devices

class Pd {
public:
    explicit Pd(ibv_context* context);
    Pd(const Pd&) = delete;
    Pd& operator=(const Pd&) = delete;
    ~Pd();
    operator ibv_pd*() const { return pd_; }
    ibv_pd* operator->() const { return pd_; }

private:
    ibv_pd* pd_;
};

inline constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_ATOMIC;
inline constexpr std::size_t kRest = static_cast<std::size_t>(-1);

struct Remote {
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
};

// Registered memory between guard bytes that nothing may write to; only the part between them is registered. Its
// address is a multiple of 64. It is filled with kUntouched.
class Memory {
public:
    static constexpr unsigned char kUntouched = 0xa5;
    static constexpr std::size_t kGuard = 64;

    Memory(ibv_pd* pd, std::size_t bytes, int access = kAllAccess);
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();  // checks the guards

    unsigned char* data() const { return data_; }
    std::size_t size() const { return bytes_; }
    ibv_mr* mr() const { return mr_; }
    Remote remote(std::size_t at = 0) const { return {address(at), mr_->rkey}; }
    std::uint64_t address(std::size_t at = 0) const { return reinterpret_cast<std::uint64_t>(data_) + at; }
    ibv_sge sge(std::size_t at = 0, std::size_t bytes = kRest) const;

    void fill(std::uint64_t key, std::size_t at = 0, std::size_t bytes = kRest);
    void check(std::uint64_t key, std::size_t at = 0, std::size_t bytes = kRest) const;
    void check_untouched(std::size_t at = 0, std::size_t bytes = kRest) const;
    void wipe();  // fills it with kUntouched again
    void check_guards() const;
    std::uint64_t word(std::size_t at) const;
    void set_word(std::size_t at, std::uint64_t value);
    void deregister();  // before the destructor

private:
    std::size_t length(std::size_t at, std::size_t bytes) const { return bytes == kRest ? bytes_ - at : bytes; }

    std::size_t bytes_, mapped_;
    unsigned char* base_;
    unsigned char* data_;
    ibv_mr* mr_;
};

class ChannelOfCompletions {
public:
    explicit ChannelOfCompletions(ibv_context* context);
    ChannelOfCompletions(const ChannelOfCompletions&) = delete;
    ChannelOfCompletions& operator=(const ChannelOfCompletions&) = delete;
    ~ChannelOfCompletions();
    operator ibv_comp_channel*() const { return channel_; }
    ibv_comp_channel* operator->() const { return channel_; }
    bool readable(int ms) const;
    // The completion queue of the next event, which is acknowledged; null if no event comes within this time.
    ibv_cq* next(int ms) const;

private:
    ibv_comp_channel* channel_;
};

class Cq {
public:
    Cq(ibv_context* context, int cqe, ibv_comp_channel* channel = nullptr, void* user = nullptr);
    Cq(const Cq&) = delete;
    Cq& operator=(const Cq&) = delete;
    ~Cq();
    operator ibv_cq*() const { return cq_; }
    ibv_cq* operator->() const { return cq_; }

    std::optional<ibv_wc> poll(int ms = 0) const;
    ibv_wc wait() const;  // fails if no completion comes
    // The next completion must have this ID and status.
    ibv_wc expect(std::uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS) const;
    void expect_none(int ms = kQuietMs) const;
    void arm(bool solicited_only = false) const;

private:
    ibv_cq* cq_;
};

// A work request for the send queue; cases change its fields before posting it.
struct Wr {
    std::uint64_t id = 0;
    ibv_wr_opcode opcode = IBV_WR_SEND;
    std::vector<ibv_sge> list;
    unsigned flags = IBV_SEND_SIGNALED;
    Remote remote;                        // RDMA and atomics
    std::uint32_t imm = 0;                // host byte order
    std::uint64_t operand = 0, swap = 0;  // atomics: the value to add or to compare with; the value to store
    ibv_ah* ah = nullptr;                 // datagrams, with the next two
    std::uint32_t qpn = 0, qkey = 0;

    Wr with(unsigned more_flags) const {
        Wr wr = *this;
        wr.flags |= more_flags;
        return wr;
    }
    Wr unsignaled() const {
        Wr wr = *this;
        wr.flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
        return wr;
    }
};
Wr send(std::uint64_t id, ibv_sge from);
Wr send_imm(std::uint64_t id, ibv_sge from, std::uint32_t imm);
Wr write(std::uint64_t id, ibv_sge from, Remote to);
Wr write_imm(std::uint64_t id, ibv_sge from, Remote to, std::uint32_t imm);
Wr read(std::uint64_t id, ibv_sge to, Remote from);
Wr fetch_add(std::uint64_t id, ibv_sge old, Remote at, std::uint64_t add);
Wr compare_swap(std::uint64_t id, ibv_sge old, Remote at, std::uint64_t compare, std::uint64_t swap);

struct QpShape {
    ibv_qp_type type = IBV_QPT_RC;
    std::uint32_t send_wrs = 64, recv_wrs = 64, sges = 1, inline_bytes = 0;
    int sig_all = 0;
};

class Qp {
public:
    Qp(ibv_pd* pd, ibv_cq* send_cq, ibv_cq* recv_cq, const QpShape& shape = {}, ibv_srq* srq = nullptr);
    explicit Qp(ibv_qp* qp) : qp_(qp) {}  // takes ownership
    Qp(const Qp&) = delete;
    Qp& operator=(const Qp&) = delete;
    ~Qp();
    operator ibv_qp*() const { return qp_; }
    ibv_qp* operator->() const { return qp_; }
    std::uint32_t number() const { return qp_->qp_num; }
    const ibv_qp_cap& cap() const { return cap_; }  // as granted

    ibv_qp* release() { return std::exchange(qp_, nullptr); }  // the caller takes ownership

    int modify(ibv_qp_attr attr, int mask) const { return ibv_modify_qp(qp_, &attr, mask); }
    int to(ibv_qp_state state) const;  // without further attributes
    ibv_qp_attr query(ibv_qp_init_attr* init = nullptr) const;
    ibv_qp_state state() const { return query().qp_state; }
    void wait_state(ibv_qp_state state) const;

    int try_post(const Wr& wr) const;
    void post(const Wr& wr) const;
    // Posts them as one list; on an error `bad` is the index of the refused request.
    int try_post(const std::vector<Wr>& wrs, std::size_t* bad = nullptr) const;
    void post(const std::vector<Wr>& wrs) const;
    int try_receive(std::uint64_t id, const std::vector<ibv_sge>& list) const;
    void receive(std::uint64_t id, const std::vector<ibv_sge>& list) const;
    void receive(std::uint64_t id, ibv_sge to) const { receive(id, std::vector<ibv_sge>{to}); }

private:
    ibv_qp* qp_;
    ibv_qp_cap cap_{};
};

class Srq {
public:
    Srq(ibv_pd* pd, std::uint32_t wrs, std::uint32_t sges = 1, void* user = nullptr);
    Srq(const Srq&) = delete;
    Srq& operator=(const Srq&) = delete;
    ~Srq();
    operator ibv_srq*() const { return srq_; }
    const ibv_srq_attr& granted() const { return granted_; }
    int try_receive(std::uint64_t id, const std::vector<ibv_sge>& list) const;
    void receive(std::uint64_t id, ibv_sge to) const;
    int modify(ibv_srq_attr attr, int mask) const { return ibv_modify_srq(srq_, &attr, mask); }
    ibv_srq_attr query() const;

private:
    ibv_srq* srq_;
    ibv_srq_attr granted_{};
};

class Ah {
public:
    Ah(ibv_pd* pd, ibv_ah_attr attr);
    explicit Ah(ibv_ah* ah);
    Ah(const Ah&) = delete;
    Ah& operator=(const Ah&) = delete;
    ~Ah();
    operator ibv_ah*() const { return ah_; }

private:
    ibv_ah* ah_;
};

// Whether the device supports the feature that a case needs.
bool has_srq(const Context& context);
bool has_apm(const Context& context);
bool has_atomics(const Context& context);

}  // namespace verbstest
