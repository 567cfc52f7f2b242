// SPDX-License-Identifier: BSD-3-Clause
//
// The texts are printed directly, because opal_show_help loses messages when the job
// ends (seen with Open MPI 4.1.4).
//
// If all processes of a node would print the same message, only one prints it.
#include "diagnose.h"

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "module.h"
#include "progress.h"

namespace coop::ib {
namespace {

constexpr const char* kHelp = "help-mpi-btl-coopib.txt";

const char* host() { return opal_process_info.nodename; }

std::string name_of(const opal_proc_t* peer) {
    return peer == nullptr ? "an unknown process" : "rank " + std::to_string(peer->proc_name.vpid);
}

template <class... Arguments>
void say(const char* topic, Arguments... arguments) {
    char* text = opal_show_help_string(kHelp, topic, true, arguments...);
    std::fputs(text ? text : topic, stderr);
    std::fflush(stderr);
    std::free(text);
}

// One line, without a frame.
template <class... Arguments>
void say_line(const char* topic, Arguments... arguments) {
    char* text = opal_show_help_string(kHelp, topic, false, arguments...);
    std::fputs(text ? text : topic, stderr);
    std::fflush(stderr);
    std::free(text);
}

template <class... Arguments>
void say_once_per_node(const char* topic, Arguments... arguments) {
    if (local_rank() == 0) say(topic, arguments...);
}

// "coop0, coop1"
std::string names_of_hcas() {
    int count = 0;
    const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(ibv_get_device_list(&count), ibv_free_device_list);
    std::string names;
    for (int i = 0; list && i < count; ++i)
        names.append(names.empty() ? "" : ", ").append(ibv_get_device_name(list.get()[i]));
    return names.empty() ? "nothing: this host has no HCA" : names;
}

std::string limit_of_locked_memory() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "unlimited";
    return std::to_string(limit.rlim_cur / 1024) + " KiB";
}

// The upper layer ends the job. Without an error callback the process aborts.
[[noreturn]] void end_job(const opal_proc_t* peer) {
    if (module.on_error != nullptr) {
        static char info[] = "see the message of btl/coopib above";
        module.on_error(&module.base, MCA_BTL_ERROR_FLAGS_FATAL, const_cast<opal_proc_t*>(peer), info);
    }
    std::abort();
}

}  // namespace

void parameter_out_of_range(const ParamError& error) {
    say_once_per_node("parameter", ("btl_coopib_" + error.name).c_str(), error.value.c_str(), error.range.c_str(),
                      host());
}

void not_there(const Module& m, const std::string& why) {
    const bool include = m.given.if_include != nullptr && m.given.if_include[0] != '\0';
    say_once_per_node("interface", include ? "btl_coopib_if_include" : "btl_coopib_if_exclude",
                      include ? m.given.if_include : m.given.if_exclude, names_of_hcas().c_str(), host(), why.c_str());
}

void no_device(const std::string& why) { say_once_per_node("no-device", host(), why.c_str()); }

void memory_locked(const Module& m, std::uint64_t needed_bytes) {
    say_once_per_node("memlock", host(), static_cast<unsigned long long>(needed_bytes),
                      limit_of_locked_memory().c_str(), static_cast<long long>(m.given.receives),
                      static_cast<unsigned>(m.hcas.size()));
}

// Each process reports it, because the start may fail in one process only.
void cannot_start(const std::string& why) { say("cannot-start", host(), why.c_str()); }

void architectures_differ(const opal_proc_t* peer, std::uint32_t theirs) {
    say("architectures-differ", host(), opal_local_arch, name_of(peer).c_str(), theirs);
    end_job(peer);
}

void versions_differ(const opal_proc_t* peer, std::uint32_t theirs) {
    say("versions-differ", host(), static_cast<unsigned>(kWireVersion), name_of(peer).c_str(),
        static_cast<unsigned>(theirs));
    end_job(peer);
}

void sizes_differ(const opal_proc_t* peer, std::uint32_t theirs) {
    say("sizes-differ", host(), static_cast<unsigned long>(module.base.btl_max_send_size), name_of(peer).c_str(),
        static_cast<unsigned long>(theirs));
    end_job(peer);
}

const char* operation_of(const Work& work) noexcept {
    switch (work.kind) {
    case WorkKind::kSend:
    case WorkKind::kMark: return "send";
    case WorkKind::kPut: return "RDMA write";
    case WorkKind::kGet: return "RDMA read";
    case WorkKind::kAtomic: return "atomic operation";
    }
    return "?";
}

void rail_failed(const Module& m, const Endpoint& endpoint, const RailTrouble& trouble) {
    say("rail-failed", host(), name_of(endpoint.proc).c_str(), trouble.operation, m.hcas[trouble.hca].name().c_str(),
        trouble.status, static_cast<unsigned>(trouble.vendor_code));
    end_job(endpoint.proc);
}

void hca_failed(const Module& m, std::uint32_t hca, const rail::HcaEvent& event) {
    say("hca-failed", host(), m.hcas[hca].name().c_str(), ibv_event_type_str(event.type));
    end_job(nullptr);
}

namespace {

// A change of a port changes the rails to all peers, at about the same time. Only one of them is named.
class OneOfMany {
public:
    bool is_named(const Endpoint& peer) noexcept {
        const std::uint64_t now = now_ns();
        if (peer_ != nullptr && peer_ != &peer && now - said_ns_ < 1'000'000'000) return false;
        peer_ = &peer;
        said_ns_ = now;
        return true;
    }

private:
    const Endpoint* peer_ = nullptr;  // the last one that was named
    std::uint64_t said_ns_ = 0;
};

double seconds_of(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

void rail_lost(const Channel& channel, sched::RailIndex number, const char* why) {
    const Rail& rail = channel.rails[number];
    const unsigned port = channel.scheduler->rails()[number].info.port;
    static OneOfMany named[kMaxHcas][2];  // under Module::lock
    if (!named[rail.local_hca][port & 1].is_named(channel.endpoint)) return;
    const std::size_t left = sched::count_of(channel.rails.up() & ~sched::bit_of(number));
    say_line("rail-lost", host(), static_cast<unsigned>(number), channel.module.hcas[rail.local_hca].name().c_str(),
             port, name_of(channel.endpoint.proc).c_str(), why, static_cast<unsigned>(left));
}

void rail_back(const Channel& channel, sched::RailIndex number, std::uint64_t away_ns) {
    const Rail& rail = channel.rails[number];
    const unsigned port = channel.scheduler->rails()[number].info.port;
    static OneOfMany named[kMaxHcas][2];  // under Module::lock
    if (!named[rail.local_hca][port & 1].is_named(channel.endpoint)) return;
    say_line("rail-back", host(), static_cast<unsigned>(number), channel.module.hcas[rail.local_hca].name().c_str(),
             port, name_of(channel.endpoint.proc).c_str(), seconds_of(away_ns));
}

// `rail` knows the path that it has left.
void rail_moved(const Channel& channel, const Rail& rail, const Moved& moved) {
    static OneOfMany named[kMaxHcas][2];  // under Module::lock
    if (!named[rail.local_hca][rail.port & 1].is_named(channel.endpoint)) return;
    say_line("rail-moved", host(), &rail == channel.rails.find(rail.number()) ? "" : "the queue pair for reads of ",
             static_cast<unsigned>(rail.number()), channel.module.hcas[rail.local_hca].name().c_str(),
             static_cast<unsigned>(rail.port), static_cast<unsigned>(rail.path_bits),
             name_of(channel.endpoint.proc).c_str(), static_cast<unsigned>(moved.port),
             static_cast<unsigned>(moved.path_bits), path::describe(moved.cause));
}

void path_not_loaded(const Channel& channel, const Rail& rail, const char* why) {
    static bool said = false;  // under Module::lock
    if (std::exchange(said, true)) return;
    say("path-not-loaded", host(), name_of(channel.endpoint.proc).c_str(), static_cast<unsigned>(rail.number()),
        channel.module.hcas[rail.local_hca].name().c_str(), static_cast<unsigned>(rail.port), why,
        channel.repairs ? "If the path of this rail fails, failover goes on over other rails."
                        : "If the path of this rail fails, the job ends (btl_coopib_failover 0).");
}

void partitioned(const Endpoint& endpoint, std::int64_t seconds) {
    static OneOfMany named;  // under Module::lock
    if (!named.is_named(endpoint)) return;
    const std::string limit = seconds == 0 ? "without a limit" : "for at most " + std::to_string(seconds) + " s";
    say_line("partitioned", host(), name_of(endpoint.proc).c_str(), limit.c_str());
}

void partition_over(const Endpoint& endpoint, std::uint64_t lasted_ns) {
    static OneOfMany named;  // under Module::lock
    if (named.is_named(endpoint))
        say_line("partition-over", host(), name_of(endpoint.proc).c_str(), seconds_of(lasted_ns));
}

void partition_too_long(const Endpoint& endpoint, std::int64_t seconds) {
    say("partition-too-long", host(), name_of(endpoint.proc).c_str(), static_cast<long long>(seconds));
    end_job(endpoint.proc);
}

void atomic_in_doubt(const Endpoint& endpoint) {
    say("atomic-in-doubt", host(), name_of(endpoint.proc).c_str());
    end_job(endpoint.proc);
}

void cannot_repeat(const Endpoint& endpoint) {
    say("cannot-repeat", host(), name_of(endpoint.proc).c_str());
    end_job(endpoint.proc);
}

void port_changed(const Module& m, std::uint32_t hca, const rail::HcaEvent& event) {
    say_once_per_node("port-changed", host(), m.hcas[hca].name().c_str(), static_cast<unsigned>(event.number),
                      ibv_event_type_str(event.type));
}

void damaged(const char* field, const opal_proc_t* peer, std::uint64_t value) {
    say("damaged", host(), name_of(peer).c_str(), field, static_cast<unsigned long long>(value));
    end_job(peer);
}

void no_atomics(const Endpoint& endpoint) {
    say("no-atomics", host(), name_of(endpoint.proc).c_str(), static_cast<unsigned>(endpoint.atomic_hca));
    end_job(endpoint.proc);
}

void rails_differ(const opal_proc_t* peer, const ParamError& error) {
    say("rails", ("btl_coopib_" + error.name).c_str(), error.value.c_str(), error.range.c_str(), host(),
        name_of(peer).c_str());
    end_job(peer);
}

void fewer_rails(const opal_proc_t* peer, std::size_t open, std::size_t all) {
    static bool said = false;  // under Module::lock
    if (!std::exchange(said, true))
        say("fewer-rails", host(), name_of(peer).c_str(), static_cast<unsigned>(open), static_cast<unsigned>(all));
}

void rail_is_silent(const opal_proc_t* peer, const std::string& rail, std::size_t silent) {
    static bool said = false;  // under Module::lock
    if (!std::exchange(said, true))
        say("silent-rail", host(), name_of(peer).c_str(), rail.c_str(), static_cast<unsigned>(silent));
}

void peer_is_late(const opal_proc_t* peer, std::int64_t seconds) {
    static bool said = false;  // under Module::lock
    if (!std::exchange(said, true)) say("late", host(), name_of(peer).c_str(), static_cast<long long>(seconds));
}

void too_many_hcas(std::size_t all, const std::string& used, const std::string& left_out) {
    say_once_per_node("many-hcas", host(), static_cast<unsigned>(all), static_cast<unsigned>(kMaxHcas), used.c_str(),
                      left_out.c_str());
}

void answers_by_polling(const std::string& why) { say_once_per_node("no-thread", host(), why.c_str()); }

void interrupts_lost(const char* hca) noexcept {
    static bool said = false;  // only the asynchronous handler uses this
    if (!std::exchange(said, true)) say("interrupts-lost", host(), hca);
}

// Each process reports it: the first process that is left without a transport ends the job, perhaps before others have
// reported.
void other_partition(const opal_proc_t* peer, const std::string& why) {
    static bool said = false;  // under Module::lock
    if (!std::exchange(said, true)) say("partition", host(), name_of(peer).c_str(), why.c_str());
}

void cannot_connect(const opal_proc_t* peer, const std::string& why) {
    say("cannot-connect", host(), name_of(peer).c_str(), why.c_str());
    end_job(peer);
}

}  // namespace coop::ib
