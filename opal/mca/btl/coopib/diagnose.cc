// SPDX-License-Identifier: BSD-3-Clause
//
// What is said when something cannot be, or cannot go on. The texts are in the
// help file; they are printed here and not through opal_show_help, which loses
// messages of jobs that end (seen with Open MPI 4.1.4).
#include <cstdio>
#include <cstdlib>
#include <string>

#include "component.h"

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

// The upper layer ends the job; if it has not said how, this does.
[[noreturn]] void end_job(const opal_proc_t* peer) {
    if (module.on_error != nullptr) {
        static char info[] = "btl/coopib";
        module.on_error(&module.base, MCA_BTL_ERROR_FLAGS_FATAL, const_cast<opal_proc_t*>(peer), info);
    }
    std::abort();
}

const char* word_of(const Work* work) {
    if (work == nullptr) return "receive";
    switch (work->kind) {
    case WorkKind::kSend:
    case WorkKind::kMark: return "send";
    case WorkKind::kPut: return "RDMA write";
    case WorkKind::kGet: return "RDMA read";
    case WorkKind::kAtomic: return "atomic operation";
    }
    return "?";
}

}  // namespace

void parameter_out_of_range(const ParamError& error) {
    say("parameter", ("btl_coopib_" + error.name).c_str(), error.value.c_str(), error.range.c_str(), host());
}

void not_used(const rail::Said& said) { say("interface", host(), said.sentence.c_str()); }
void no_device() { say("no-device", host()); }
void cannot_start(const std::string& why) { say("cannot-start", host(), why.c_str()); }

void versions_differ(const opal_proc_t* peer, std::uint32_t theirs) {
    say("versions-differ", host(), static_cast<unsigned>(kWireVersion), name_of(peer).c_str(), static_cast<unsigned>(theirs));
    end_job(peer);
}

void sizes_differ(const opal_proc_t* peer, std::uint32_t theirs) {
    say("sizes-differ", host(), static_cast<unsigned long>(module.base.btl_max_send_size), name_of(peer).c_str(), static_cast<unsigned long>(theirs));
    end_job(peer);
}

void rail_failed(Module& m, Endpoint& endpoint, const Work* work, const ibv_wc& wc) {
    const Rail* rail = work != nullptr && endpoint.channel ? endpoint.channel->rails[work->rail].get() : nullptr;
    const std::string device = rail != nullptr ? m.hcas[rail->local_hca].name() : "?";
    say("rail-failed", host(), name_of(endpoint.proc).c_str(), word_of(work), device.c_str(), ibv_wc_status_str(wc.status),
        static_cast<unsigned>(wc.vendor_err));
    end_job(endpoint.proc);
}

void damaged(const char* field, const opal_proc_t* peer, std::uint64_t value) {
    say("damaged", host(), name_of(peer).c_str(), field, static_cast<unsigned long long>(value));
    end_job(peer);
}

void cannot_connect(const opal_proc_t* peer, const std::string& why) {
    say("cannot-connect", host(), name_of(peer).c_str(), why.c_str());
    end_job(peer);
}

}  // namespace coop::ib
